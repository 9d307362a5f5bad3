"""Parse the headers of tables from Kafka's tools, other tools and CSV files.

The header defines the kind of a table. Columns, widths and separators differ between releases. In
CSV, the order of columns is arbitrary, and commas, semicolons, tabs or bars separate them.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from io import StringIO

from kassay.reference.documents.files import read_data_file

_NAME = re.compile(r"COORDINATOR \(ID\)|CURRENT OFFSET|LOG END OFFSET|[^\s,|]+")
_SPELLINGS = {
    (where, name): column
    for where, name, column in read_data_file(__package__, "column_spellings.txt")
}
"""Name of a column in kassay, by format (``layout`` or ``CSV``) and name in the input."""
_MIN_KNOWN_COLUMNS = 2
_FIRST_COLUMNS = ("GROUP", "TOPIC", "CONSUMER-ID", "COORDINATOR (ID)", "Group", "CLIENT_HOST")


class TableKind(StrEnum):
    """Kind of a table in the output of tools, such as offsets or members."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"
    OFFSET_CHECKER = "offset-checker"
    RESET = "reset"
    LISTING = "listing"
    DELETION = "deletion"
    SHARE = "share members"
    STREAMS = "streams members"
    CLIENTS = "clients"  # of kafkactl
    OTHER_OFFSETS = "other offsets"
    OTHER_STATE = "other state"


_LAYOUTS = {
    TableKind(kind): layout for kind, layout in read_data_file(__package__, "table_layouts.txt")
}
"""Pattern of all valid sequences of columns, by kind of table."""
_COLUMNS = {
    kind: frozenset({*re.findall("#?[A-Za-z_-]{3,}", layout), "COORDINATOR (ID)"})
    for kind, layout in _LAYOUTS.items()
}
_KNOWN_COLUMNS = frozenset().union(*_COLUMNS.values())
_OTHER_KINDS = (TableKind.SHARE, TableKind.STREAMS)
_CSV_SEPARATORS = ",;\t|"
_CSV_KEYS = {
    TableKind.OFFSETS: ("TOPIC", "PARTITION"),
    TableKind.MEMBERS: ("CONSUMER-ID", "CLIENT-ID"),
    TableKind.STATE: ("GROUP", "STATE"),
}
"""Columns that a CSV table of a kind must have."""
_UNUSED = frozenset({"CLUSTER", "SIMPLE", "", "#", "INDEX", "NO", "NO.", "UNNAMED:-0"})
"""Ignored columns: those of Confluent CLI without member data, and row numbers."""
MAX_PARTS = 6
"""Maximum number of lines into which a terminal wraps one header or row."""


@dataclass(frozen=True, slots=True)
class Header:
    """Header line of a table, with the names and the positions of the columns."""

    kind: TableKind
    names: tuple[str, ...]
    starts: tuple[int, ...]  # offsets of the columns in the line, none in CSV
    delimiter: str
    line: int
    parts: int = 1  # lines that a terminal made of the header

    @property
    def is_csv(self) -> bool:
        """Return whether the table is in CSV."""
        return not self.starts

    @property
    def gap(self) -> int:
        """Return the number of blanks after the first column name, or 0 if widths are not fixed."""
        if self.delimiter or len(self.starts) < _MIN_KNOWN_COLUMNS:
            return 0
        return self.starts[1] - self.starts[0] - len(self.names[0])


def starts_table(text: str) -> bool:
    """Return whether a line is a table header, even if it is truncated or unknown."""
    return _starts_layout(text) or isinstance(_csv_header(text, line=1), Header)


def _starts_layout(text: str) -> bool:
    names = _names(text)
    if "|" in text and "|" not in text.strip().strip("|"):
        return False  # a bar on each side of a line
    known = sum(name in _KNOWN_COLUMNS for name in names)
    return known >= _MIN_KNOWN_COLUMNS and names[0] in _FIRST_COLUMNS


def read_header(texts: Sequence[str], *, line: int) -> Header | str | None:
    """Parse a table header that spans one or more lines.

    Return an error message for a header that is truncated or unknown, and None for other lines.
    ``line`` is the number of the first line.
    """
    text = texts[0]
    found = _csv_header(text, line=line)
    layout = _layout_header(text, line=line) if "|" in text else None
    has_index = layout and isinstance(found, Header) and len(found.names) > len(layout.names)
    if found is not None and (layout is None or has_index):
        return found
    if not _starts_layout(text):
        return None
    # The first part of a wrapped header can be the header of another release.
    for count in range(min(MAX_PARTS, len(texts)), 0, -1):
        for gap in ("", " "):
            header = _layout_header(gap.join(texts[:count]), line=line)
            if header is not None:
                return replace(header, parts=count)
    unknown = next((name for name in _names(text) if name not in _KNOWN_COLUMNS), None)
    if unknown is not None:
        return f"unknown column {unknown!r} in the header of a table"
    return "the header of a table is truncated or has an unknown layout"


def _layout_header(text: str, *, line: int) -> Header | None:
    """Parse a header line that is not CSV, or return None for an unknown sequence of columns."""
    names = tuple(_names(text))
    layout_text = " ".join(names)
    kind = next(
        (kind for kind, layout in _LAYOUTS.items() if re.fullmatch(layout, layout_text)), None
    )
    if kind is None:
        return None
    starts = tuple(match.start() for match in _NAME.finditer(text))
    delimiter = next((sign for sign in "|\t," if sign in text.strip()), "")
    return Header(kind, names, starts, delimiter, line)


def _names(text: str) -> list[str]:
    words = [match.group() for match in _NAME.finditer(text)]
    return [_SPELLINGS.get(("layout", word), word) for word in words]


def _csv_header(text: str, *, line: int) -> Header | str | None:
    """Parse a CSV header. Return an error message if it is invalid, and None for other lines.

    A blank after the separators indicates the output of release 0.9, which is not CSV.
    """
    for separator in _CSV_SEPARATORS:
        if separator not in text or (separator != "|" and f"{separator} " in text):
            continue
        shown = text.strip(" \r\n").rstrip(f"{separator} ")
        names = tuple(map(_csv_column, csv_cells(shown, separator) or ()))
        known = [name in _KNOWN_COLUMNS or name in _UNUSED for name in names]
        if sum(known) < _MIN_KNOWN_COLUMNS or not known[0]:
            continue
        kind = next((kind for kind, keys in _CSV_KEYS.items() if set(keys) <= set(names)), None)
        kind = next(
            (one for one in _OTHER_KINDS if re.fullmatch(_LAYOUTS[one], " ".join(names))), kind
        )
        columns = _UNUSED | (_KNOWN_COLUMNS if kind is None else _COLUMNS[kind])
        unknown = next((name for name in names if name not in columns), None)
        if unknown is not None:
            return f"unknown column {unknown!r} in the header of a table"
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            return f"column {repeated!r} is repeated in the header"
        if kind is not None:
            return Header(kind, names, (), separator, line)
        expected = "; ".join(" and ".join(keys) for keys in _CSV_KEYS.values())
        return f"columns are missing from the table, expected {expected}"
    return None


def csv_cells(text: str, separator: str) -> Sequence[str] | None:
    """Split a line of CSV, or a line with bars, into cells. Return None if it is invalid."""
    if separator == "|":
        inside = text.strip().removeprefix("|").removesuffix("|")
        return [cell.strip() for cell in inside.split("|")]
    try:
        return next(csv.reader(StringIO(text), delimiter=separator, strict=True), None)
    except csv.Error:
        return None


def _csv_column(cell: str) -> str:
    written = cell.strip().strip('"').upper()
    name = written.replace("_", "-").replace(" ", "-")
    name = _SPELLINGS.get(("CSV", name), name)
    return written if written in _KNOWN_COLUMNS and name not in _KNOWN_COLUMNS else name


def csv_row_problem(text: str, header: Header) -> str:
    """Return the reason why a line is not a complete row of a CSV table."""
    values = csv_cells(text, header.delimiter)
    if values is None:
        return "the line is not valid CSV"
    if len(values) != len(header.names):
        return f"a row of {len(values)} cells under a header of {len(header.names)}"
    return f"the line is not a complete row of the {header.kind} table"
