"""Headers: which table this is, and where its columns begin.

Releases differ in columns, widths and separators; a header tells all three. See
docs/formats.md for the layouts by release.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from kassay.experiments.sources.errors import located


class TableKind(StrEnum):
    """What a table is about."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"
    OFFSET_CHECKER = "offset-checker"
    RESET = "reset"
    LISTING = "listing"
    DELETION = "deletion"


_OFFSET_COLUMNS = "TOPIC PARTITION( LEADER-EPOCH)? CURRENT-OFFSET LOG-END-OFFSET LAG"
# Every sequence of columns that some release prints; a header that is none is cut or new.
_LAYOUTS: tuple[tuple[TableKind, re.Pattern[str]], ...] = (
    (
        TableKind.OFFSETS,
        re.compile(f"(GROUP )?{_OFFSET_COLUMNS} (OWNER|CONSUMER-ID( HOST CLIENT-ID)?)"),
    ),
    (
        TableKind.MEMBERS,
        re.compile(
            r"(GROUP )?CONSUMER-ID( GROUP-INSTANCE-ID)? HOST CLIENT-ID #PARTITIONS( ASSIGNMENT|"
            r" CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT( UPGRADED)?)?"
        ),
    ),
    (
        TableKind.STATE,
        re.compile(
            r"(GROUP )?COORDINATOR \(ID\) ASSIGNMENT-STRATEGY STATE"
            r"( GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH)? #MEMBERS"
        ),
    ),
    (TableKind.OFFSET_CHECKER, re.compile("Group Topic Pid Offset logSize Lag Owner")),
    (TableKind.RESET, re.compile("(GROUP )?TOPIC PARTITION NEW-OFFSET")),
    (TableKind.DELETION, re.compile("TOPIC PARTITION STATUS")),
    (TableKind.LISTING, re.compile("GROUP( TYPE)?( PROTOCOL)?( STATE)?")),
)
_KNOWN = frozenset(
    name for _, layout in _LAYOUTS for name in re.findall("#?[A-Za-z-]{3,}", layout.pattern)
) | {"COORDINATOR (ID)"}
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

    kind: TableKind
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
    if unknown is not None:
        raise located(name, line, f"unknown column {unknown!r} in the header of a table", text)
    columns = " ".join(names)
    kind = next((kind for kind, layout in _LAYOUTS if layout.fullmatch(columns)), None)
    if kind is None:
        raise located(name, line, "the header of a table is cut or of an unknown layout", text)
    return Header(kind, names, tuple(match.start() for match in matches), "," in text, line)


def _begins_like_a_header(names: tuple[str, ...]) -> bool:
    return names[0] in ("GROUP", "TOPIC", "CONSUMER-ID", "COORDINATOR (ID)", "Group")
