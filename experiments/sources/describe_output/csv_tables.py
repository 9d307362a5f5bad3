"""Parser of CSV tables with the columns of ``kafka-consumer-groups.sh``.

Programs that export the tool's tables write such files: one table, any order of its columns,
separated by commas, semicolons or tabs.
"""

import csv
from collections.abc import Iterator
from io import StringIO

from kassay.experiments.sources.describe_output.table_layouts import KNOWN_COLUMNS, Cells, TableKind
from kassay.experiments.sources.describe_output.typed_rows import (
    ParsedTable,
    ParsedText,
    TableRow,
    build_row,
    matches_columns,
)
from kassay.reference.documents.text_files import error_at

_SEPARATORS = ",;\t"
_KEYS = {
    TableKind.OFFSETS: ("TOPIC", "PARTITION"),
    TableKind.MEMBERS: ("CONSUMER-ID", "#PARTITIONS"),
    TableKind.STATE: ("GROUP", "STATE"),
}
"""Columns that define the kind of a table."""
_MIN_COLUMNS = 2


def parse_csv(text: str, *, name: str) -> ParsedText | None:
    r"""Parse a CSV table, or return None if the first line is not a header with known columns.

    Names of columns may be in lower case and have ``_`` or a blank instead of ``-``.

    Examples
    --------
    >>> parsed = parse_csv("topic,partition,consumer_id\nt,0,c-1\n", name="x")
    >>> [(row.topic, row.partition, row.consumer_id) for row in parsed.tables[0].rows]
    [('t', 0, 'c-1')]
    """
    start = text.lstrip().partition("\n")[0]
    separator = next((each for each in _SEPARATORS if _is_header(start, each)), None)
    if separator is None:
        return None
    lines = _cells(text, separator, name=name)
    header_line, cells = next(lines)
    names = list(map(_column, cells))
    kind = _kind(names, name=name, line=header_line, header=start)
    if not text.endswith(("\n", "\r")):
        last = text.rpartition("\n")[2]
        message = "the last line may be cut; end it with a newline if it is complete"
        raise error_at(name, text.count("\n") + 1, message, last)
    rows = tuple(_rows(lines, names, kind, name=name))
    return ParsedText((ParsedTable(kind, tuple(names), rows, header_line),), ())


def _is_header(line: str, separator: str) -> bool:
    """Return whether a line is a CSV header, which has at least two known column names.

    A blank after the separators indicates the output of release 0.9, which is not CSV.
    """
    if f"{separator} " in line:
        return False
    names = [_column(cell) for cell in line.split(separator)]
    known = [each in KNOWN_COLUMNS for each in names]
    return sum(known) >= _MIN_COLUMNS and known[0]


def _column(cell: str) -> str:
    name = cell.strip().strip('"').upper()
    return name if name in KNOWN_COLUMNS else name.replace("_", "-").replace(" ", "-")


def _kind(names: list[str], *, name: str, line: int, header: str) -> TableKind:
    unknown = next((each for each in names if each not in KNOWN_COLUMNS), None)
    if unknown is not None:
        raise error_at(name, line, f"unknown column {unknown!r} in the header of a table", header)
    repeated = next((each for each in names if names.count(each) > 1), None)
    if repeated is not None:
        raise error_at(name, line, f"column {repeated!r} is repeated in the header", header)
    for kind, keys in _KEYS.items():
        if set(keys) <= set(names):
            return kind
    expected = "; ".join(" and ".join(keys) for keys in _KEYS.values())
    raise error_at(name, line, f"columns are missing from the table, expected {expected}", header)


def _cells(text: str, separator: str, *, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each CSV row that is not blank."""
    rows = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for values in rows:
            if any(value.strip() for value in values):
                yield rows.line_num, values
    except csv.Error as error:
        raise error_at(name, rows.line_num, f"not valid CSV: {error}") from None


def _rows(
    lines: Iterator[tuple[int, list[str]]], names: list[str], kind: TableKind, *, name: str
) -> Iterator[TableRow]:
    for line, values in lines:
        shown = ",".join(values)
        if len(values) != len(names):
            message = f"a row of {len(values)} cells under a header of {len(names)}"
            raise error_at(name, line, message, shown)
        cells: Cells = {
            column: value.strip() or "-" for column, value in zip(names, values, strict=True)
        }
        if not matches_columns(cells):
            raise error_at(name, line, f"not a complete row of the {kind} table", shown)
        yield build_row(kind, cells, line=line)
