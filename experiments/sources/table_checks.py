"""Check that the table rows of a capture are complete and consistent."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from kassay.experiments.sources import table_rows
from kassay.experiments.sources.clean_lines import Line
from kassay.experiments.sources.line_account import LineProblem
from kassay.experiments.sources.recognise_library import client_id_of
from kassay.experiments.sources.table_headers import TableKind
from kassay.experiments.sources.unfinished_table import UnfinishedTable, names_group

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


def contradictions(tables: Sequence[UnfinishedTable]) -> Iterator[LineProblem]:
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
                yield LineProblem(row.line, message, row.group or table.group)


def _other_starts(table: UnfinishedTable, names: Collection[str]) -> Iterator[LineProblem]:
    """Yield a problem for each row in which the first name may be damaged."""
    group = None if names_group(table) else table.group
    for row, cells in zip(table.rows, table.cells, strict=True):
        name = cells[table.header.names[0]]
        known = _MARKUP.sub("", name).lstrip(_SIGNS)
        known = known.rpartition(" ")[2] if table.header.is_csv else known
        if known != name and known in names:
            message = f"{name!r} may be {known!r} with other text in front of it"
            yield LineProblem(row.line, message, group)
        is_end = any(other != name and other.endswith(name) for other in names)
        if is_end and row.line in table.shifted and not table.has_aligned:
            yield LineProblem(row.line, f"the start of {name!r} may be missing", group)
    for line in table.shifted if table.has_aligned else ():
        yield LineProblem(line, "the start of the row may be missing", group)


def rows_after_damage(
    problems: Sequence[LineProblem], tables: Sequence[UnfinishedTable]
) -> Iterator[LineProblem]:
    """Yield a problem for each row that may be a part of a damaged row above it."""
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
                yield LineProblem(row.line, message, group)
            seen.add(group)


def headers_without_rows(tables: Sequence[UnfinishedTable]) -> Iterator[LineProblem]:
    """Yield a problem for each header if no table has a row."""
    kinds = (TableKind.OFFSETS, TableKind.MEMBERS, TableKind.STATE)
    for table in tables if not any(table.rows for table in tables) else ():
        if table.header.kind in kinds:
            message = "the table has no rows"
            yield LineProblem(table.header.line, message, table.group)


def consumers_of_two_groups(tables: Sequence[UnfinishedTable]) -> Iterator[LineProblem]:
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
                    yield LineProblem(row.line, message, each)


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


def wrong_lags(tables: Sequence[UnfinishedTable]) -> Iterator[tuple[LineProblem, bool]]:
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
                yield LineProblem(row.line, message, row.group or table.group), is_shown


def _wrong_lag(row: table_rows.OffsetRow) -> str | None:
    """Return the reason why a row's lag does not match its offsets, or None if it does."""
    title = f"{row.topic}-{row.partition}"
    if row.current is None or row.end is None:
        message = f"{title} has lag {row.lag}, but one of its offsets is missing"
        return None if row.lag is None else message
    expected = row.end - row.current
    if row.lag == expected or (row.lag == 0 and expected < 0) or row.current < 0:
        return None
    shown = "no lag" if row.lag is None else f"lag {row.lag}"
    return f"{title} has {shown}, but LOG-END-OFFSET - CURRENT-OFFSET is {expected}"


def cut_row(
    lines: Sequence[Line], tables: Sequence[UnfinishedTable], table: UnfinishedTable
) -> LineProblem | None:
    """Return a problem if the last line of a text may be truncated, else None."""
    line = lines[-1]
    if not line.text.strip():
        return _start_of_row(lines, table)
    last = table.rows[-1] if table.rows else None
    if table.header.line != line.number:
        others = [row for each in tables for row in each.rows if row is not last]
        if last is None or last.line != line.number or _is_complete(line.text, table, others):
            return None
    return LineProblem(line.number, MAY_BE_CUT, text=line.text)


def _is_complete(text: str, table: UnfinishedTable, others: Iterable[table_rows.TableRow]) -> bool:
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


def _start_of_row(lines: Sequence[Line], table: UnfinishedTable) -> LineProblem | None:
    """Return a problem if the last line has only the blanks at the start of a row, else None."""
    start = lines[-1].text
    last = table.rows[-1].line if table.rows else table.header.line
    filled = (one.text for one in lines if one.text.strip())
    is_indented = len(start) >= _INDENTATION and all(text.startswith(start) for text in filled)
    if is_indented or not start or not lines[last - 1].text.startswith(start):
        return None
    message = "the last line has the start of a row; end it with a newline or remove it"
    return LineProblem(lines[-1].number, message)
