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
from kassay.experiments.sources.describe_output.headers import TableKind
from kassay.experiments.sources.topic_descriptions import Counts


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
