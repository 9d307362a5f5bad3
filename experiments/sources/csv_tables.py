"""Tables in CSV: any order of the columns, separated by commas, semicolons or tabs."""

import csv
from collections.abc import Callable, Sequence
from io import StringIO

from kassay.experiments.sources.table_rows import KNOWN_COLUMNS, Cells, Header, Separator, TableKind

_SEPARATORS = ",;\t|"
_KEYS = {
    TableKind.OFFSETS: ("TOPIC", "PARTITION"),
    TableKind.MEMBERS: ("CONSUMER-ID", "CLIENT-ID"),
    TableKind.STATE: ("GROUP", "STATE"),
}
"""Columns that define the kind of a table."""
_SPELLINGS = {
    **dict.fromkeys(("CONSUMER-GROUP", "GROUPID", "GROUP-ID"), "GROUP"),
    "CONSUMER": "CONSUMER-ID",
    "CLIENT": "CLIENT-ID",
    "INSTANCE": "GROUP-INSTANCE-ID",
    "MEMBER-ID": "CONSUMER-ID",
    "PARTITION-ASSIGNOR": "ASSIGNMENT-STRATEGY",
}
_UNUSED = frozenset({"CLUSTER", "SIMPLE"})
"""Columns of Confluent CLI without data about members."""
_MIN_COLUMNS = 2


def read_csv_header(text: str, *, line: int) -> Header | str | None:
    """Parse the header of a CSV table.

    Return the problem of a header that is not complete, and None for other lines. Names of columns
    may be in lower case and have ``_`` or a blank instead of ``-``. A blank after the separators
    indicates the output of release 0.9, which is not CSV.

    Examples
    --------
    >>> read_csv_header("topic;partition;consumer_id", line=1).names
    ('TOPIC', 'PARTITION', 'CONSUMER-ID')
    >>> read_csv_header("topic,lag,topic", line=1)
    "column 'TOPIC' is repeated in the header"
    """
    for separator in _SEPARATORS:
        if separator not in text or (separator != "|" and f"{separator} " in text):
            continue
        names = tuple(map(_column, _cells(text.strip(), separator) or ()))
        known = [name in KNOWN_COLUMNS or name in _UNUSED for name in names]
        if sum(known) < _MIN_COLUMNS or not known[0]:
            continue
        if not all(known):
            return f"unknown column {names[known.index(False)]!r} in the header of a table"
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            return f"column {repeated!r} is repeated in the header"
        kind = next((kind for kind, keys in _KEYS.items() if set(keys) <= set(names)), None)
        if kind is not None:
            return Header(kind, names, (), Separator.CSV, line, delimiter=separator)
        expected = "; ".join(" and ".join(keys) for keys in _KEYS.values())
        return f"columns are missing from the table, expected {expected}"
    return None


def csv_row_problem(text: str, header: Header) -> str:
    """Return why a line is no complete row of a table."""
    values = _cells(text, header.delimiter)
    if values is None:
        return "not valid CSV"
    if len(values) != len(header.names):
        return f"a row of {len(values)} cells under a header of {len(header.names)}"
    return f"not a complete row of the {header.kind} table"


def split_csv_row(text: str, header: Header, is_valid: Callable[[Cells], bool]) -> Cells | None:
    """Split a row in CSV into cells, or return None if it is no complete row. Blank is a dash."""
    values = _cells(text, header.delimiter)
    if values is None or len(values) != len(header.names):
        return None
    cells = {name: value.strip() or "-" for name, value in zip(header.names, values, strict=True)}
    return cells if is_valid(cells) else None


def _cells(text: str, separator: str) -> Sequence[str] | None:
    if separator == "|":
        inside = text.strip().removeprefix("|").removesuffix("|")
        return [cell.strip() for cell in inside.split("|")]
    try:
        return next(csv.reader(StringIO(text), delimiter=separator, strict=True), None)
    except csv.Error:
        return None


def _column(cell: str) -> str:
    name = cell.strip().strip('"').upper()
    if name in KNOWN_COLUMNS:
        return name
    name = name.replace("_", "-").replace(" ", "-")
    return _SPELLINGS.get(name, name)
