"""Data from one document of a tool: table rows, partition counts and sizes."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kassay.experiments.sources.describe_output import (
    MemberRow,
    OffsetRow,
    ParsedTable,
    ParsedText,
    StateRow,
)
from kassay.experiments.sources.describe_output.table_layouts import TableKind
from kassay.reference.model.errors import InputError

Counts = dict[str, int]
"""Partition count by topic."""


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """Table rows, partition counts and sizes that one document of a tool contains.

    Partition counts are by topic.
    """

    offsets: Sequence[OffsetRow] = ()
    members: Sequence[MemberRow] = ()
    states: Sequence[StateRow] = ()
    shows_owners: bool = True  # the format can show owners
    partition_counts: Counts = field(default_factory=dict)
    minimum_counts: Counts = field(default_factory=dict)  # lower bounds of partition counts
    sizes: Mapping[tuple[str, int], int] = field(default_factory=dict)  # bytes per partition
    topic_ids: Mapping[str, uuid.UUID] = field(default_factory=dict)

    def parsed(self) -> ParsedText:
        """Convert the rows to tables, like those that ``kafka-consumer-groups.sh`` prints."""
        owners = ("CONSUMER-ID",) if self.shows_owners else ()
        columns = ("TOPIC", "PARTITION", "LAG", *owners)
        tables = (
            ParsedTable(TableKind.OFFSETS, columns, tuple(self.offsets), 1),
            ParsedTable(TableKind.MEMBERS, ("CONSUMER-ID",), tuple(self.members), 1),
            ParsedTable(TableKind.STATE, ("STATE",), tuple(self.states), 1),
        )
        return ParsedText(tuple(table for table in tables if table.rows), ())


NO_ROWS = DocumentRows()


def merge_counts(left: Counts, right: Mapping[str, int], *, where: str) -> Counts:
    """Merge two dicts of partition counts by topic. Raise InputError if counts differ."""
    merged = dict(left)
    for topic, count in right.items():
        add_count(merged, topic, count, where)
    return merged


def add_count(counts: Counts, topic: str, count: int, where: str) -> None:
    """Add the partition count of a topic. Raise InputError if the topic has another count."""
    if counts.setdefault(topic, count) != count:
        raise InputError(
            f"{where}: topic {topic!r} has {count} partitions here, "
            f"but {counts[topic]} in another part of the input"
        )
