"""A whole text: tables, notices, and what lies around them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from kassay.experiments.sources.describe_output.headers import Header, TableKind, read_header
from kassay.experiments.sources.describe_output.other_lines import (
    is_ignorable,
    resembles_a_row,
    runs_into_a_row,
)
from kassay.experiments.sources.describe_output.row_cells import Cells, split_row
from kassay.experiments.sources.describe_output.truncation import is_complete
from kassay.experiments.sources.describe_output.typed_rows import (
    MemberRow,
    OffsetRow,
    TableRow,
    fits,
    typed,
)
from kassay.experiments.sources.errors import located

_NOTICES = (
    ("empty", re.compile(r".*Consumer group [`'\"](?P<group>.*)[`'\"] has no active members\.?")),
    ("rebalancing", re.compile(r".*Consumer group [`'\"](?P<group>.*)[`'\"] is rebalancing\.?")),
    ("missing", re.compile(r".*Consumer group [`'\"](?P<group>.*)[`'\"] does not exist\.?")),
    ("missing", re.compile(r"Error: .*GroupIdNotFoundException: Group (?P<group>.*) not found\.")),
    ("error", re.compile(r"Error: (?P<group>).*")),
)
_LINE_END = re.compile(r"\r?\n|\r")


@dataclass(frozen=True, slots=True)
class Notice:
    """What the tool says in a sentence: ``empty``, ``rebalancing``, ``missing``, ``error``."""

    line: int
    kind: str
    group: str | None
    text: str


@dataclass(frozen=True, slots=True)
class ParsedTable:
    """One table of the text."""

    kind: TableKind
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ParsedText:
    """All that a text says."""

    tables: tuple[ParsedTable, ...]
    notices: tuple[Notice, ...]


@dataclass(slots=True)
class _Open:
    """The table that rows are being read into."""

    header: Header
    rows: list[TableRow] = field(default_factory=list)
    closed: bool = False  # a blank line came after its rows
    first_words: set[str] = field(default_factory=set)
    last: Cells = field(default_factory=dict)

    def table(self) -> ParsedTable:
        return ParsedTable(self.header.kind, self.header.names, tuple(self.rows), self.header.line)


def parse_text(text: str, *, name: str) -> ParsedText:
    r"""Read what ``kafka-consumer-groups.sh --describe`` printed.

    Parameters
    ----------
    text
        The capture, with standard error in it or not.
    name
        Its name, for errors.

    Raises
    ------
    SourceError
        If a row or a header is cut or damaged, two rows contradict each other, or there
        is neither a table nor a notice.

    Examples
    --------
    >>> parsed = parse_text("TOPIC  PARTITION  NEW-OFFSET\nt      0          7\n", name="x")
    >>> parsed.tables[0].rows
    (ResetRow(line=2, topic='t', partition=0, new_offset=7),)
    """
    tables: list[_Open] = []
    notices: list[Notice] = []
    lines = _LINE_END.split(text)
    for line, content in enumerate(lines, start=1):
        notice = _notice(content, line)
        header = None if notice else read_header(content, name=name, line=line)
        if notice:
            notices.append(notice)
        elif header:
            tables.append(_Open(header))
        elif tables:
            _read_row(tables[-1], content, name, line)
    if not tables and not notices:
        raise located(name, 1, "neither a table nor a notice of kafka-consumer-groups.sh in it")
    if tables and lines[-1].strip() and not _ends_whole(tables, lines[-1], len(lines)):
        message = "the text ends within a line, end it with a newline if it is whole"
        raise located(name, len(lines), message, lines[-1])
    parsed = ParsedText(tuple(table.table() for table in tables), tuple(notices))
    _require_consistent(parsed, name)
    return parsed


def _notice(content: str, line: int) -> Notice | None:
    for kind, form in _NOTICES:
        match = form.fullmatch(content.strip())
        if match:
            return Notice(line, kind, match["group"] or None, content.strip())
    return None


def _read_row(table: _Open, content: str, name: str, line: int) -> None:
    if not content.strip():
        table.closed = bool(table.rows)
        return
    kind = table.header.kind
    cells = split_row(content, table.header, partial(fits, kind))
    if cells is not None and not runs_into_a_row(cells[table.header.names[-1]]):
        table.rows.append(typed(kind, cells, line=line))
        table.first_words.add(content.split(maxsplit=1)[0])
        table.last = cells
    elif (
        cells is not None
        or resembles_a_row(content, table.header, table.first_words)
        or not (table.closed or is_ignorable(content))
    ):
        raise located(name, line, f"not a whole row of the {kind} table above it", content)


def _ends_whole(tables: list[_Open], content: str, line: int) -> bool:
    """Whether a last line that no newline ends is whole for sure."""
    table = tables[-1]
    if not table.rows or table.rows[-1].line != line:
        return table.header.line != line
    column = table.header.names[-1]
    if content.endswith(" ") and table.last[column]:
        return True
    others = [row for each in tables for row in each.rows if row is not table.rows[-1]]
    return is_complete(table.last, column, others)


def _require_consistent(parsed: ParsedText, name: str) -> None:
    """Refuse what a cut row leaves behind: counts and ids that disagree."""
    for table in parsed.tables:
        seen: dict[tuple[str | None, str], OffsetRow] = {}
        places: set[tuple[object, ...]] = set()
        members: set[tuple[str | None, str]] = set()
        for row in table.rows:
            if isinstance(row, MemberRow):
                _require_count(row, name)
                if (row.group, row.consumer_id) in members:
                    raise located(name, row.line, f"a second row for member {row.consumer_id!r}")
                members.add((row.group, row.consumer_id))
            if isinstance(row, OffsetRow):
                _require_same_consumer(row, seen, name)
            for place in _place(row):
                if place in places:
                    raise located(name, row.line, f"a second row for {place[-2]}-{place[-1]}")
                places.add(place)


def _place(row: TableRow) -> Iterator[tuple[object, ...]]:
    if isinstance(row, OffsetRow) and row.topic is not None:
        yield (row.group, row.topic, row.partition)


def _require_count(row: MemberRow, name: str) -> None:
    if row.assignment is None or row.partitions is None:
        return
    listed = sum(len(numbers) for _, numbers in row.assignment)
    if listed != row.partitions:
        raise located(
            name,
            row.line,
            f"member {row.consumer_id!r} has {row.partitions} partitions but lists {listed}",
        )


def _require_same_consumer(
    row: OffsetRow, seen: dict[tuple[str | None, str], OffsetRow], name: str
) -> None:
    if row.consumer_id is None:
        return
    first = seen.setdefault((row.group, row.consumer_id), row)
    if (first.host, first.client_id) != (row.host, row.client_id):
        raise located(
            name,
            row.line,
            f"consumer {row.consumer_id!r} has host and client id {row.host!r}, "
            f"{row.client_id!r} here but {first.host!r}, {first.client_id!r} in line {first.line}",
        )
