"""Parse the output of ``kafka-consumer-groups.sh``, Kafka 0.9 and later, and reject damaged output.

Programs that export the tool's tables write CSV files: one table, any order of its columns,
separated by commas, semicolons or tabs.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from io import StringIO

from kassay.experiments.sources.recognise_library import client_id_of
from kassay.experiments.sources.table_rows import (
    FIELDS,
    KNOWN_COLUMNS,
    Cells,
    Header,
    MemberRow,
    Notice,
    OffsetRow,
    ParsedTable,
    ParsedText,
    TableKind,
    TableRow,
    build_row,
    matches_columns,
    read_header,
    split_row,
)
from kassay.reference.documents.input_files import error_at

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
    # A blank after the separators indicates the output of release 0.9, which is not CSV.
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


_NOTICES = (
    ("empty", re.compile(r".*Consumer group [`'\"](?P<group>.*)[`'\"] has no active members\.?")),
    ("rebalancing", re.compile(r".*Consumer group [`'\"](?P<group>.*)[`'\"] is rebalancing\.?")),
    ("missing", re.compile(r".*Consumer group [`'\"](?P<group>.*)[`'\"] does not exist\.?")),
    ("missing", re.compile(r"Error: .*GroupIdNotFoundException: Group (?P<group>.*) not found\.")),
    ("error", re.compile(r"Error: (?P<group>).*")),
)
_LINE_END = re.compile(r"\r?\n|\r")
_NO_CONSUMER = ("none", "-", "unknown")
# A cut cell of these columns fails another check.
_CHECKED_COLUMNS = ("ASSIGNMENT", "UPGRADED")
_ID_COLUMNS = ("CLIENT-ID", "CONSUMER-ID", "OWNER", "Owner")
# First words of messages on standard error, which 2>&1 adds to the output.
_MESSAGE_STARTS = (
    "TRACE DEBUG INFO WARN WARNING Warning ERROR Error FATAL Note NOTE Option Could.not Picked.up "
    "SLF4J log4j OpenJDK Java.HotSpot Exception.in.thread Caused.by Suppressed No.topic"
).replace(" ", "|")
_IGNORABLE = re.compile(
    r"\s*(\[?\d{2,4}[-/:]\d\d[-/:]\d\d|[A-Z][a-z]{2} \d{1,2}, \d{4} \d|"
    rf"({_MESSAGE_STARTS})(?=[\s:(]|$)|"
    r"at [\w.$/<>]+\(|[\w.$]+(Exception|Error)(?=[\s:]|$)|\.\.\. \d+ more|[$>#] )"
)
_LOG_MESSAGE = re.compile(r" (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) |\((org|kafka)\.[\w.$]+\)\s*$")
_TIMESTAMP = re.compile(r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d")
_NUMBER = re.compile(r"-|-?[0-9]+,?")
_MIN_NUMBERS = 3


@dataclass(slots=True)
class _OpenTable:
    """Table to which the parser still adds rows."""

    header: Header
    rows: list[TableRow] = field(default_factory=list)
    closed: bool = False  # an empty line followed its rows
    first_words: set[str] = field(default_factory=set)
    last: Cells = field(default_factory=dict)

    def table(self) -> ParsedTable:
        return ParsedTable(self.header.kind, self.header.names, tuple(self.rows), self.header.line)


def parse_text(text: str, *, name: str) -> ParsedText:
    r"""Parse the output of ``kafka-consumer-groups.sh --describe``.

    The text may include standard error, or be a table in CSV with the same columns.
    ``name`` is the file name in errors.

    Examples
    --------
    >>> parsed = parse_text("TOPIC  PARTITION  NEW-OFFSET\nt      0          7\n", name="x")
    >>> parsed.tables[0].rows
    (OtherRow(line=2, cells=('t', '0', '7')),)
    """
    csv = parse_csv(text, name=name)
    if csv is not None:
        _require_consistent(csv, name)
        return csv
    tables: list[_OpenTable] = []
    notices: list[Notice] = []
    lines = _LINE_END.split(text)
    for line, content in enumerate(lines, start=1):
        notice = _notice(content, line)
        header = None if notice else read_header(content, name=name, line=line)
        if notice:
            notices.append(notice)
        elif header:
            tables.append(_OpenTable(header))
        elif tables:
            _read_row(tables[-1], content, name, line)
    if not tables and not notices:
        raise error_at(
            name, 1, "the text contains no table and no notice of kafka-consumer-groups.sh"
        )
    if tables and lines[-1].strip() and not _is_last_line_complete(tables, lines[-1], len(lines)):
        message = "the last line may be cut; end it with a newline if it is complete"
        raise error_at(name, len(lines), message, lines[-1])
    parsed = ParsedText(tuple(table.table() for table in tables), tuple(notices))
    _require_consistent(parsed, name)
    return parsed


def _notice(content: str, line: int) -> Notice | None:
    for kind, form in _NOTICES:
        match = form.fullmatch(content.strip())
        if match:
            return Notice(line, kind, match["group"] or None, content.strip())
    return None


def _read_row(table: _OpenTable, content: str, name: str, line: int) -> None:
    if not content.strip():
        table.closed = bool(table.rows)
        return
    cells = split_row(content, table.header, matches_columns)
    if cells is not None and not _contains_log_text(cells[table.header.names[-1]]):
        table.rows.append(build_row(table.header.kind, cells, line=line))
        table.first_words.add(content.split(maxsplit=1)[0])
        table.last = cells
    elif (
        cells is not None
        or _resembles_row(content, table.header, table.first_words)
        or not (table.closed or _IGNORABLE.match(content))
    ):
        raise error_at(
            name,
            line,
            f"the line is not a complete row of the {table.header.kind} table above it",
            content,
        )


def _is_last_line_complete(tables: list[_OpenTable], content: str, line: int) -> bool:
    table = tables[-1]
    if not table.rows or table.rows[-1].line != line:
        return table.header.line != line
    column = table.header.names[-1]
    if content.endswith(" ") and table.last[column]:
        return True
    others = [row for each in tables for row in each.rows if row is not table.rows[-1]]
    return _is_cell_complete(table.last, column, others)


def _is_cell_complete(cells: Cells, column: str, others: Iterable[TableRow]) -> bool:
    """Return whether the cell at the end of the text is certainly complete, that is, not cut."""
    value = cells[column]
    if column in _CHECKED_COLUMNS:
        return True
    if column not in _ID_COLUMNS:
        return False
    # A cut value does not occur in another row.
    if value in _NO_CONSUMER or value in {getattr(row, FIELDS[column][0], None) for row in others}:
        return True
    # The member id of the classic protocol is the client id and a UUID.
    return column == "CLIENT-ID" and value == client_id_of(cells.get("CONSUMER-ID", ""))


def _require_consistent(parsed: ParsedText, name: str) -> None:
    """Raise InputError if rows contradict each other, which indicates damaged rows."""
    for table in parsed.tables:
        consumers: dict[tuple[str | None, str], OffsetRow] = {}
        seen: set[tuple[str | None, str]] = set()
        for row in table.rows:
            if isinstance(row, MemberRow):
                _require_count(row, name)
                title = f"member {row.consumer_id!r}"
            elif isinstance(row, OffsetRow):
                _require_same_consumer(row, consumers, name)
                title = "" if row.topic is None else f"{row.topic}-{row.partition}"
            else:
                continue
            if title and (row.group, title) in seen:
                raise error_at(name, row.line, f"{title} has two rows")
            seen.add((row.group, title))


def _require_count(row: MemberRow, name: str) -> None:
    if row.partitions is None or (row.assignment is None and row.unnamed is None):
        return
    named = [numbers for _, numbers in row.assignment or ()]
    listed = sum(map(len, (*named, *(row.unnamed or ()))))
    if listed != row.partitions:
        message = f"member {row.consumer_id!r} has {row.partitions} partitions but lists {listed}"
        raise error_at(name, row.line, message)


def _require_same_consumer(
    row: OffsetRow, consumers: dict[tuple[str | None, str], OffsetRow], name: str
) -> None:
    if row.consumer_id is None:
        return
    first = consumers.setdefault((row.group, row.consumer_id), row)
    if (first.host, first.client_id) != (row.host, row.client_id):
        message = (
            f"consumer {row.consumer_id!r} has host and client id {row.host!r}, "
            f"{row.client_id!r} here but {first.host!r}, {first.client_id!r} in line {first.line}"
        )
        raise error_at(name, row.line, message)


def _contains_log_text(last_cell: str) -> bool:
    return bool(_LOG_MESSAGE.search(last_cell) or _TIMESTAMP.search(last_cell))


def _resembles_row(content: str, header: Header, first_words: AbstractSet[str]) -> bool:
    """Return whether a line may be a damaged row of the table above, and must not be ignored."""
    words = content.split()
    if words[0] in first_words:
        return True
    numbers = sum(bool(_NUMBER.fullmatch(word)) for word in words)
    return numbers >= min(_MIN_NUMBERS, len(header.names) - 1) and not _IGNORABLE.match(content)
