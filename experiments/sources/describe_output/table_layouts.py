"""Parsers of the headers and cells of tables. The header defines the kind of the table.

Columns, widths and separators differ between releases. See docs/formats.md for the layouts.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kassay.reference.documents.text_files import error_at

_OFFSET_COLUMNS = "TOPIC PARTITION( LEADER-EPOCH)? CURRENT-OFFSET LOG-END-OFFSET LAG"
_NAME = re.compile(r"COORDINATOR \(ID\)|CURRENT OFFSET|LOG END OFFSET|[^\s,]+")
# Release 0.9 writes these names with spaces.
_CURRENT_SPELLING = {"CURRENT OFFSET": "CURRENT-OFFSET", "LOG END OFFSET": "LOG-END-OFFSET"}
_MIN_KNOWN_COLUMNS = 2
_FIRST_COLUMNS = ("GROUP", "TOPIC", "CONSUMER-ID", "COORDINATOR (ID)", "Group")
Cells = dict[str, str]
"""Cell of a row by column."""
# Empty for a dynamic member beside static members, no client id, an empty group.
_MAY_BE_BLANK = frozenset({"GROUP-INSTANCE-ID", "CLIENT-ID", "ASSIGNMENT-STRATEGY"})
# The tool prints several spaces inside this cell.
_MAY_CONTAIN_GAPS = "COORDINATOR (ID)"
_GAP = re.compile(r" {2,}")
_COORDINATOR_GAP = re.compile(r" +(?=\(-?[0-9]+\)( |$))")
_JOINED_ID_AND_HOST = re.compile(
    r"(?P<id>.+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?P<host>/.*)"
)
# Releases 0.10.2 to 1.0 print no space after an id of at least this length.
_JOINED_LENGTH = 50


class TableKind(StrEnum):
    """Kind of a table that ``kafka-consumer-groups.sh`` prints."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"
    OFFSET_CHECKER = "offset-checker"
    RESET = "reset"
    LISTING = "listing"
    DELETION = "deletion"


# All sequences of columns that a release prints. Any other header is cut or unknown.
_LAYOUTS = {
    TableKind.OFFSETS: f"(GROUP )?{_OFFSET_COLUMNS} (OWNER|CONSUMER-ID( HOST CLIENT-ID)?)",
    TableKind.MEMBERS: (
        r"(GROUP )?CONSUMER-ID( GROUP-INSTANCE-ID)? HOST CLIENT-ID #PARTITIONS( ASSIGNMENT|"
        r" CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT( UPGRADED)?)?"
    ),
    TableKind.STATE: (
        r"(GROUP )?COORDINATOR \(ID\) ASSIGNMENT-STRATEGY STATE"
        r"( GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH)? #MEMBERS"
    ),
    TableKind.OFFSET_CHECKER: "Group Topic Pid Offset logSize Lag Owner",
    TableKind.RESET: "(GROUP )?TOPIC PARTITION NEW-OFFSET",
    TableKind.DELETION: "TOPIC PARTITION STATUS",
    TableKind.LISTING: "GROUP( TYPE)?( PROTOCOL)?( STATE)?",
}
KNOWN_COLUMNS = frozenset(
    name for layout in _LAYOUTS.values() for name in re.findall("#?[A-Za-z-]{3,}", layout)
) | {"COORDINATOR (ID)"}
"""Names of all columns."""


@dataclass(frozen=True, slots=True)
class Header:
    """Header line of a table that ``kafka-consumer-groups.sh`` prints."""

    kind: TableKind
    names: tuple[str, ...]
    starts: tuple[int, ...]  # offsets of the columns in the line
    commas: bool  # separate the columns (release 0.9)
    line: int


def read_header(text: str, *, name: str, line: int) -> Header | None:
    """Parse the header line of a table, or return None if the line is not a header."""
    columns = list(_NAME.finditer(text))
    names = tuple(_CURRENT_SPELLING.get(match.group(), match.group()) for match in columns)
    known = [word for word in names if word in KNOWN_COLUMNS]
    if len(known) < _MIN_KNOWN_COLUMNS or names[0] not in _FIRST_COLUMNS:
        return None
    unknown = next((word for word in names if word not in KNOWN_COLUMNS), None)
    if unknown is not None:
        raise error_at(name, line, f"unknown column {unknown!r} in the header of a table", text)
    layout_text = " ".join(names)
    kind = next(
        (kind for kind, layout in _LAYOUTS.items() if re.fullmatch(layout, layout_text)), None
    )
    if kind is None:
        raise error_at(
            name, line, "the header of a table is truncated or has an unknown layout", text
        )
    return Header(kind, names, tuple(match.start() for match in columns), "," in text, line)


def split_row(text: str, header: Header, is_valid: Callable[[Cells], bool]) -> Cells | None:
    """Split a table row into cells, or return None if no split gives valid cells.

    Release 0.9 separates cells by commas. Other rows are split by the first of these methods
    that gives valid cells: at the column offsets of the header; at spaces, if there are as many
    words as columns (fixed widths overflow); at spaces, with a consumer id joined to its host.
    The text includes the spaces at its end.
    """
    if header.commas:
        # Groups and owners may contain commas. The split must be unambiguous.
        valid = [cells for cells in _by_commas(text.strip(), header) if is_valid(cells)]
        return valid[0] if len(valid) == 1 else None
    splits = (
        _by_offsets(text, header),
        _by_words(text, header),
        _by_words_with_joined_host(text, header),
    )
    return next((cells for cells in splits if cells is not None and is_valid(cells)), None)


def _by_commas(text: str, header: Header) -> Iterator[Cells]:
    values = text.split(", ")
    width = len(values) - len(header.names) + 1
    if width < 1:
        return
    for first in range(1, width + 1):
        middle = first + len(header.names) - 2
        parts = [", ".join(values[:first]), *values[first:middle], ", ".join(values[middle:])]
        yield dict(zip(header.names, (part.strip() for part in parts), strict=True))


def _by_offsets(text: str, header: Header) -> Cells | None:
    if "\t" in text or text[: header.starts[0]].strip():
        return None
    values: list[str] = []
    for name, start, stop in zip(
        header.names, header.starts, [*header.starts[1:], len(text)], strict=True
    ):
        if start > 0 and (start > len(text) or text[start - 1] != " "):
            return None
        value = text[start : max(stop, start)]
        if value.startswith(" ") and value.strip():
            return None
        value = value.strip()
        if (not value and name not in _MAY_BE_BLANK) or (
            name != _MAY_CONTAIN_GAPS and _GAP.search(value)
        ):
            return None
        values.append(value)
    return _named(header, values)


def _by_words(text: str, header: Header) -> Cells | None:
    if _MAY_CONTAIN_GAPS in header.names:
        text = _COORDINATOR_GAP.sub("", text)
    return _named(header, text.split())


def _by_words_with_joined_host(text: str, header: Header) -> Cells | None:
    words = text.split()
    if "HOST" not in header.names or len(words) != len(header.names) - 1:
        return None
    for index, word in enumerate(words):
        match = _JOINED_ID_AND_HOST.fullmatch(word)
        if match and len(match["id"]) >= _JOINED_LENGTH:
            return _named(header, [*words[:index], match["id"], match["host"], *words[index + 1 :]])
    return None


def _named(header: Header, values: list[str]) -> Cells | None:
    if len(values) != len(header.names):
        return None
    return dict(zip(header.names, values, strict=True))
