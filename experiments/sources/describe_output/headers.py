"""Parser of table headers, which define the kind of a table and where its columns start.

Columns, widths and separators differ between releases. See docs/formats.md for the layouts.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from kassay.experiments.sources.located_error import error_at


class TableKind(StrEnum):
    """Kind of a table that ``kafka-consumer-groups.sh`` prints."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"
    OFFSET_CHECKER = "offset-checker"
    RESET = "reset"
    LISTING = "listing"
    DELETION = "deletion"


_OFFSET_COLUMNS = "TOPIC PARTITION( LEADER-EPOCH)? CURRENT-OFFSET LOG-END-OFFSET LAG"
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
_NAME = re.compile(r"COORDINATOR \(ID\)|CURRENT OFFSET|LOG END OFFSET|[^\s,]+")
# Release 0.9 writes these names with spaces.
_CURRENT_SPELLING = {"CURRENT OFFSET": "CURRENT-OFFSET", "LOG END OFFSET": "LOG-END-OFFSET"}
_MIN_KNOWN_COLUMNS = 2
_FIRST_COLUMNS = ("GROUP", "TOPIC", "CONSUMER-ID", "COORDINATOR (ID)", "Group")


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
