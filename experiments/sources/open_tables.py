"""Store tables while a capture is read, and find damaged rows."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kassay.experiments.sources import table_rows
from kassay.experiments.sources.clean_lines import FORMS, Line
from kassay.experiments.sources.kind_captures import is_share_cell, read_tasks
from kassay.experiments.sources.line_account import Problem
from kassay.experiments.sources.recognise_library import client_id_of
from kassay.experiments.sources.table_headers import Header, TableKind

_SHARE_COLUMNS = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT")
_LOG_MESSAGE = FORMS["log message"]
_INDEX = re.compile(r"\s*\d+(?=\s)")
_MARK = re.compile(r"\s*([$#>%;*~+]+|//|\[?(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|Warning)[:\]])\s")
"""Pattern of a prompt, comment sign or message level in front of a row."""
MAY_BE_CUT = "the last line may be cut; end it with a newline if it is complete"
_NO_CONSUMER = ("none", "-", "unknown")
# A cut cell of these columns fails another check.
_CHECKED_COLUMNS = ("ASSIGNMENT", "UPGRADED")
_ID_COLUMNS = ("CLIENT-ID", "CONSUMER-ID", "OWNER", "Owner")
_MARKUP = re.compile(r"</?\w+>")
_SIGNS = "-+*~\"'`[(<|#"
"""Signs of diffs and of emphasis that can stand in front of a name."""
_OFFSET_NAMES = frozenset({"CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"})
_INDENTATION = 4
"""Minimum number of blanks in front of the lines of a code block."""


@dataclass(slots=True)
class OpenTable:
    """Table of a capture to which the reader adds rows."""

    header: Header
    group: str | None
    rows: list[table_rows.TableRow] = field(default_factory=list)
    cells: list[table_rows.Cells] = field(default_factory=list)  # of the rows
    shifted: list[int] = field(default_factory=list)  # lines that start left of their column
    has_aligned: bool = False  # a row whose second cell stands below its name

    def split(self, text: str) -> table_rows.Cells | None:
        """Split a line into cells, or return None if it is no row of this table."""
        if _MARK.match(text) or not re.search(r"\w", text):
            return None
        if self.header.kind is TableKind.OTHER_OFFSETS:
            return None
        index = _INDEX.match(text)  # of a data frame, left of the header
        if index is not None and index.end() < min(self.header.starts, default=0):
            text = " " * index.end() + text[index.end() :]
        cells = table_rows.split_row(text, self.header)
        if cells is None or self.header.is_csv:
            return cells
        if _LOG_MESSAGE.search(cells[self.header.names[-1]]):
            return None
        if "ASSIGNMENTS" in cells and (
            read_tasks(cells["ASSIGNMENTS"]) is None
            or not (cells["ASSIGNMENTS"] or text.endswith((" ", "\t", "|")))
        ):
            return None
        return cells

    def add(self, cells: table_rows.Cells, line: int, text: str = "") -> None:
        """Add a row. ``text`` is empty if the terminal has wrapped the row."""
        self.rows.append(table_rows.build_row(self.header.kind, cells, line=line))
        self.cells.append(cells)
        if text and self.header.gap > 1:
            start, first = self.header.starts[1], cells[self.header.names[0]]
            is_aligned = (
                text[start - 1 : start + 1].startswith(" ") and text[start : start + 1] > " "
            )
            self.has_aligned |= is_aligned
            if not is_aligned and len(text) - len(text.lstrip()) + len(first) < start - 1:
                self.shifted.append(line)

    @property
    def rule(self) -> str:
        """Return the name of the table in the account of lines."""
        return f"{self.header.kind} table"


def names_group(table: OpenTable) -> bool:
    """Return whether a table has a column for the group id."""
    return table.header.names[0] in ("GROUP", "Group") or "GROUP" in table.header.names


def has_blank(cells: table_rows.Cells) -> bool:
    """Return whether a name in a row contains a blank."""
    return any(
        " " in value
        for name, value in cells.items()
        if name not in ("ASSIGNMENT", "ASSIGNMENTS", "COORDINATOR (ID)")
    )


def parsed_table(table: OpenTable) -> table_rows.ParsedTable:
    """Convert a table of text cells to a table of typed rows.

    Old releases of ``kafka-consumer-groups.sh`` print the columns of share groups, with assignments
    such as ``orders(0,1)`` instead of ``orders:0,1``.
    """
    header = table.header
    kind, rows = header.kind, tuple(table.rows)
    if kind is TableKind.CLIENTS:
        expanded = tuple(
            row
            for cells, one in zip(table.cells, rows, strict=True)
            for row in _owned(cells, one.line)
        )
        return table_rows.ParsedTable(
            TableKind.OFFSETS, ("TOPIC", "PARTITION", "OWNER"), expanded, header.line, table.group
        )
    if header.names == _SHARE_COLUMNS and any(
        is_share_cell(cells["ASSIGNMENT"]) for cells in table.cells
    ):
        kind = TableKind.SHARE
        rows = tuple(
            table_rows.OtherRow(row.line, tuple(cells.values()))
            for row, cells in zip(table.rows, table.cells, strict=True)
        )
    # Kafka's tool does, kafkactl does not.
    warns = not header.is_csv and "LEAD" not in header.names
    return table_rows.ParsedTable(
        kind, header.names, rows, header.line, table.group, states_rebalances=warns
    )


def _owned(cells: table_rows.Cells, line: int) -> Iterator[table_rows.OffsetRow]:
    """Yield one row per partition for a row that kafkactl prints."""
    host, client = cells["CLIENT_HOST"], cells["CLIENT_ID"]
    for number in cells["ASSIGNED_PARTITIONS"].split(","):
        owner = f"{client}_{host}"
        yield table_rows.OffsetRow(
            line, None, cells["TOPIC"], int(number), host=host, client_id=client, owner=owner
        )


def contradictions(tables: Sequence[OpenTable]) -> Iterator[Problem]:
    """Yield a problem for each row that contradicts another row."""
    names = {cells[table.header.names[0]] for table in tables for cells in table.cells}
    plain = Counter(name.lstrip(_SIGNS) for name in names)  # such as -orders and +orders
    names |= {name for name, number in plain.items() if number > 1}
    for table in tables:
        yield from _other_starts(table, names)
        consumers: dict[tuple[str | None, str], table_rows.OffsetRow] = {}
        seen: set[tuple[str | None, str]] = set()
        for row in table.rows:
            message = None
            if isinstance(row, table_rows.MemberRow):
                message = _wrong_count(row)
                title = f"member {row.consumer_id!r}"
            elif isinstance(row, table_rows.OffsetRow):
                message = _other_consumer(row, consumers)
                title = "" if row.topic is None else f"{row.topic}-{row.partition}"
            else:
                continue
            if title and (row.group, title) in seen:
                message = message or f"{title} has two rows"
            seen.add((row.group, title))
            if message is not None:
                yield Problem(row.line, message, row.group or table.group)


def _other_starts(table: OpenTable, names: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each row whose first name may be damaged."""
    group = None if names_group(table) else table.group
    for row, cells in zip(table.rows, table.cells, strict=True):
        name = cells[table.header.names[0]]
        known = _MARKUP.sub("", name).lstrip(_SIGNS)
        known = known.rpartition(" ")[2] if table.header.is_csv else known
        if known != name and known in names:
            message = f"{name!r} may be {known!r} with other text in front of it"
            yield Problem(row.line, message, group)
        is_end = any(other != name and other.endswith(name) for other in names)
        if is_end and row.line in table.shifted and not table.has_aligned:
            yield Problem(row.line, f"the start of {name!r} may be missing", group)
    for line in table.shifted if table.has_aligned else ():
        yield Problem(line, "the start of the row may be missing", group)


def rows_after_damage(
    problems: Sequence[Problem], tables: Sequence[OpenTable]
) -> Iterator[Problem]:
    """Yield a problem for each row that may belong to a damaged row above it."""
    damaged = {
        one.line + one.count + gap: one
        for one in problems
        if one.group is not None
        for gap in (1, 0)
    }
    seen: set[str | None] = set()
    for table in tables:
        for row in table.rows:
            group = getattr(row, "group", None)
            problem = damaged.get(row.line)
            if problem is not None and group not in seen | {problem.group, None}:
                message = "the row may be the rest of the damaged line above it"
                yield Problem(row.line, message, group)
            seen.add(group)


def headers_without_rows(tables: Sequence[OpenTable]) -> Iterator[Problem]:
    """Yield a problem for each header if no table has a row."""
    kinds = (TableKind.OFFSETS, TableKind.MEMBERS, TableKind.STATE)
    for table in tables if not any(table.rows for table in tables) else ():
        if table.header.kind in kinds:
            message = "the table has no rows"
            yield Problem(table.header.line, message, table.group)


def consumers_of_two_groups(tables: Sequence[OpenTable]) -> Iterator[Problem]:
    """Yield a problem for each row with a member id that occurs in two groups."""
    groups: dict[str, str | None] = {}
    for table in tables:
        for row in table.rows:
            id = getattr(row, "consumer_id", None)
            if id is None or not table_rows.UNIQUE_ID.fullmatch(id):
                continue
            group = getattr(row, "group", None) or table.group
            first = groups.setdefault(id, group)
            if group is not None and first not in (None, group):
                message = f"consumer {id!r} is also in group {first!r}"
                for each in (first, group):
                    yield Problem(row.line, message, each)


def _wrong_count(row: table_rows.MemberRow) -> str | None:
    if row.partitions is None or (row.assignment is None and row.unnamed is None):
        return None
    named = [numbers for _, numbers in row.assignment or ()]
    listed = sum(map(len, (*named, *(row.unnamed or ()))))
    if listed == row.partitions:
        return None
    return f"member {row.consumer_id!r} has {row.partitions} partitions but lists {listed}"


def _other_consumer(
    row: table_rows.OffsetRow, consumers: dict[tuple[str | None, str], table_rows.OffsetRow]
) -> str | None:
    if row.consumer_id is None:
        return None
    first = consumers.setdefault((row.group, row.consumer_id), row)
    if (first.host, first.client_id) == (row.host, row.client_id):
        return None
    return (
        f"consumer {row.consumer_id!r} has host and client id {row.host!r}, {row.client_id!r} "
        f"here but {first.host!r}, {first.client_id!r} in line {first.line}"
    )


def wrong_lags(tables: Sequence[OpenTable]) -> Iterator[tuple[Problem, bool]]:
    """Yield a problem for each lag that does not match its offsets."""
    for table in tables:
        if not _OFFSET_NAMES.issubset(table.header.names):
            continue
        # rpk shows the whole topic as lag, and no lag of an empty one.
        is_rpk = "LOG-START-OFFSET" in table.header.names
        for row in table.rows:
            message = _wrong_lag(row) if isinstance(row, table_rows.OffsetRow) else None
            if message is None or not isinstance(row, table_rows.OffsetRow):
                continue
            if not (is_rpk and None in (row.current, row.lag)):
                is_shown = None not in (row.current, row.end, row.lag)
                yield Problem(row.line, message, row.group or table.group), is_shown


def _wrong_lag(row: table_rows.OffsetRow) -> str | None:
    """Return why the lag of a row does not match its offsets, or None if it does."""
    title = f"{row.topic}-{row.partition}"
    if row.current is None or row.end is None:
        message = f"{title} has lag {row.lag}, but one of its offsets is missing"
        return None if row.lag is None else message
    expected = row.end - row.current
    if row.lag == expected or (row.lag == 0 and expected < 0) or row.current < 0:
        return None
    shown = "no lag" if row.lag is None else f"lag {row.lag}"
    return f"{title} has {shown}, but LOG-END-OFFSET - CURRENT-OFFSET is {expected}"


def cut_row(lines: Sequence[Line], tables: Sequence[OpenTable], table: OpenTable) -> Problem | None:
    """Return a problem if the last line of a text may be truncated, else None."""
    line = lines[-1]
    if not line.text.strip():
        return _start_of_row(lines, table)
    last = table.rows[-1] if table.rows else None
    if table.header.line != line.number:
        others = [row for each in tables for row in each.rows if row is not last]
        if last is None or last.line != line.number or _is_complete(line.text, table, others):
            return None
    return Problem(line.number, MAY_BE_CUT, text=line.text)


def _is_complete(text: str, table: OpenTable, others: Iterable[table_rows.TableRow]) -> bool:
    """Return whether the last row of a text is certainly complete."""
    if table.header.is_csv:
        return False
    column, cells = table.header.names[-1], table.split(text) or {}
    is_wide = not table.header.starts or len(text) > table.header.starts[-1]
    if text.endswith(" ") and cells.get(column) and column != "ASSIGNMENTS" and is_wide:
        return True
    value = cells[column]
    if column in _CHECKED_COLUMNS and ("#PARTITIONS" in cells or cells[column]):
        return True
    if column not in _ID_COLUMNS:
        return False
    # A cut value does not occur in another row.
    if value in _NO_CONSUMER or value in {
        getattr(row, table_rows.FIELDS[column][0], None) for row in others
    }:
        return True
    # The member id of the classic protocol is the client id and a UUID.
    return column == "CLIENT-ID" and value == client_id_of(cells.get("CONSUMER-ID", ""))


def _start_of_row(lines: Sequence[Line], table: OpenTable) -> Problem | None:
    """Return a problem if the last line has only the blanks of a row start, else None."""
    start = lines[-1].text
    last = table.rows[-1].line if table.rows else table.header.line
    filled = (one.text for one in lines if one.text.strip())
    is_indented = len(start) >= _INDENTATION and all(text.startswith(start) for text in filled)
    if is_indented or not start or not lines[last - 1].text.startswith(start):
        return None
    message = "the last line has the start of a row; end it with a newline or remove it"
    return Problem(lines[-1].number, message)
