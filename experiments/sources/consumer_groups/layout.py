"""Headers: which table this is, and where its columns begin.

Releases differ in columns, widths and separators; a header tells all three. See
docs/formats.md for the layouts by release.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from experiments.sources.errors import located


class Kind(StrEnum):
    """What a table is about."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"
    OFFSET_CHECKER = "offset-checker"
    RESET = "reset"
    LISTING = "listing"


# Column names that a header may have, by the kind of table they show; the first of a kind
# that has all of its names wins.
_SIGNATURES: tuple[tuple[Kind, frozenset[str]], ...] = (
    (Kind.OFFSET_CHECKER, frozenset({"Group", "Topic", "Pid", "Offset", "logSize", "Lag"})),
    (Kind.RESET, frozenset({"TOPIC", "PARTITION", "NEW-OFFSET"})),
    (Kind.OFFSETS, frozenset({"TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"})),
    (Kind.MEMBERS, frozenset({"CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"})),
    (Kind.STATE, frozenset({"COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"})),
)
# What --list prints with --state or --type has these columns and no others.
_LISTING = frozenset({"GROUP", "TYPE", "PROTOCOL", "STATE"})
_KNOWN = frozenset().union(*(names for _, names in _SIGNATURES)) | {
    "GROUP",
    "OWNER",
    "Owner",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
    "LEADER-EPOCH",
    "GROUP-INSTANCE-ID",
    "ASSIGNMENT",
    "CURRENT-EPOCH",
    "CURRENT-ASSIGNMENT",
    "TARGET-EPOCH",
    "TARGET-ASSIGNMENT",
    "UPGRADED",
    "GROUP-EPOCH",
    "TARGET-ASSIGNMENT-EPOCH",
    *_LISTING,
}
_NAME = re.compile(r"COORDINATOR \(ID\)|CURRENT OFFSET|LOG END OFFSET|[^\s,]+")
# Release 0.9 writes these with blanks.
_SPELT = {"CURRENT OFFSET": "CURRENT-OFFSET", "LOG END OFFSET": "LOG-END-OFFSET"}
_LEAST_KNOWN = 2


@dataclass(frozen=True, slots=True)
class Header:
    """One table's header.

    Parameters
    ----------
    kind
        Which table it heads.
    names, starts
        Columns and the offsets in the line at which they begin.
    commas
        Whether columns are separated by commas (release 0.9).
    line
        Its line, from 1.
    """

    kind: Kind
    names: tuple[str, ...]
    starts: tuple[int, ...]
    commas: bool
    line: int


def read_header(text: str, *, name: str, line: int) -> Header | None:
    """Read a header; None if the line is none.

    Raises
    ------
    SourceError
        If the line begins like a header but has columns that no release prints, or
        lacks some that every release does: it is cut, or of a release still unknown.

    Examples
    --------
    >>> header = read_header("TOPIC  PARTITION  NEW-OFFSET", name="x", line=1)
    >>> str(header.kind), header.starts
    ('reset', (0, 7, 18))
    """
    matches = list(_NAME.finditer(text))
    names = tuple(_SPELT.get(match.group(), match.group()) for match in matches)
    known = [word for word in names if word in _KNOWN]
    if len(known) < _LEAST_KNOWN or not _begins_like_a_header(names):
        return None
    unknown = next((word for word in names if word not in _KNOWN), None)
    kind = next((kind for kind, needed in _SIGNATURES if needed <= set(names)), None)
    if set(names) <= _LISTING:
        kind = Kind.LISTING
    if unknown is not None:
        raise located(name, line, f"unknown column {unknown!r} in the header of a table", text)
    if kind is None:
        raise located(name, line, "the header of a table is cut or of an unknown layout", text)
    return Header(kind, names, tuple(match.start() for match in matches), "," in text, line)


def _begins_like_a_header(names: tuple[str, ...]) -> bool:
    return names[0] in ("GROUP", "TOPIC", "CONSUMER-ID", "COORDINATOR (ID)", "Group")
