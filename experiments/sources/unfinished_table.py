"""Represent a table while the reader adds rows to it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kassay.experiments.sources import table_rows
from kassay.experiments.sources.clean_lines import FORMS
from kassay.experiments.sources.kind_captures import is_share_cell, read_tasks
from kassay.experiments.sources.table_headers import Header, TableKind

_SHARE_COLUMNS = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT")
_LOG_MESSAGE = FORMS["log message"]
_INDEX = re.compile(r"\s*\d+(?=\s)")
_MARK = re.compile(r"\s*([$#>%;*~+]+|//|\[?(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|Warning)[:\]])\s")
"""Pattern of a prompt, comment sign or message level in front of a row."""


@dataclass(slots=True)
class UnfinishedTable:
    """Table in a capture to which the reader adds rows."""

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
        """Add a row. ``text`` is its line, or empty if the terminal has wrapped the row."""
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
        """Return the name of the rule under which the `Account` lists the lines of this table."""
        return f"{self.header.kind} table"


def names_group(table: UnfinishedTable) -> bool:
    """Return whether a table has a column for the group id."""
    return table.header.names[0] in ("GROUP", "Group") or "GROUP" in table.header.names


def has_blank(cells: table_rows.Cells) -> bool:
    """Return whether a name in a row contains a blank."""
    return any(
        " " in value
        for name, value in cells.items()
        if name not in ("ASSIGNMENT", "ASSIGNMENTS", "COORDINATOR (ID)")
    )


def parsed_table(table: UnfinishedTable) -> table_rows.ParsedTable:
    """Convert a table of text cells to a table of typed rows.

    Tables of old releases of ``kafka-consumer-groups.sh`` have the same columns as those of share
    groups, but another form of assignments: ``orders(0,1)`` instead of ``orders:0,1``.
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
    """Yield one row per partition from a row that kafkactl prints."""
    host, client = cells["CLIENT_HOST"], cells["CLIENT_ID"]
    for number in cells["ASSIGNED_PARTITIONS"].split(","):
        owner = f"{client}_{host}"
        yield table_rows.OffsetRow(
            line, None, cells["TOPIC"], int(number), host=host, client_id=client, owner=owner
        )
