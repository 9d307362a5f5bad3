"""What a tool's document gives: rows as a table would hold them, and partition counts."""

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
from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.topic_metadata import Counts
from kassay.reference.documents.document_fields import (
    as_array,
    as_integer,
    as_object,
    as_text,
    format_value,
)

_MOST = 2**31


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """What one document says.

    Parameters
    ----------
    offsets, members, states
        Rows, in the order of the document.
    shows_owners
        Whether it could show who has a partition.
    counts
        Partition counts by topic.
    at_least
        By topic, a number of partitions that it has and may exceed.
    sizes
        Bytes of partitions.
    """

    offsets: Sequence[OffsetRow] = ()
    members: Sequence[MemberRow] = ()
    states: Sequence[StateRow] = ()
    shows_owners: bool = True
    counts: Counts = field(default_factory=dict)
    at_least: Counts = field(default_factory=dict)
    sizes: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def parsed(self) -> ParsedText:
        """Give the rows the form that captures of the command line tools have."""
        owners = ("CONSUMER-ID",) if self.shows_owners else ()
        tables = (
            ParsedTable(
                TableKind.OFFSETS, ("TOPIC", "PARTITION", "LAG", *owners), tuple(self.offsets), 1
            ),
            ParsedTable(TableKind.MEMBERS, ("CONSUMER-ID",), tuple(self.members), 1),
            ParsedTable(TableKind.STATE, ("STATE",), tuple(self.states), 1),
        )
        return ParsedText(tuple(table for table in tables if table.rows), ())


@dataclass(frozen=True, slots=True)
class Fields:
    """Typed access to an object of a document, with errors that say where and what.

    Examples
    --------
    >>> Fields({"partition": -1}, "lag.json: status").count("partition")
    Traceback (most recent call last):
    kassay...SourceError: lag.json: status.partition: not a partition number: -1
    """

    table: Mapping[str, object]
    where: str

    def inner(self, key: str) -> "Fields":
        """Take an object within."""
        where = f"{self.where}.{key}"
        return Fields(as_object(self._required(key), where), where)

    def each(self, key: str) -> list["Fields"]:
        """Take a list of objects within."""
        where = f"{self.where}.{key}"
        values = as_array(self._required(key), where)
        return [
            Fields(as_object(value, f"{where}[{index}]"), f"{where}[{index}]")
            for index, value in enumerate(values)
        ]

    def text(self, key: str) -> str:
        """Take a string that must not be empty."""
        value = as_text(self._required(key), f"{self.where}.{key}")
        if not value:
            raise SourceError(f"{self.where}.{key}: must not be empty")
        return value

    def optional_text(self, key: str) -> str | None:
        """Take a string; null, an empty one or no such key is None."""
        value = self.table.get(key)
        return None if value is None else as_text(value, f"{self.where}.{key}") or None

    def integer(self, key: str) -> int:
        """Take an integer."""
        return as_integer(self._required(key), f"{self.where}.{key}")

    def optional_integer(self, key: str) -> int | None:
        """Take an integer; null or no such key is None."""
        value = self.table.get(key)
        return None if value is None else as_integer(value, f"{self.where}.{key}")

    def count(self, key: str) -> int:
        """Take a partition number or a number of partitions."""
        value = self.integer(key)
        if not 0 <= value < _MOST:
            raise SourceError(f"{self.where}.{key}: not a partition number: {format_value(value)}")
        return value

    def _required(self, key: str) -> object:
        if key not in self.table:
            raise SourceError(f"{self.where}: missing key {key!r}")
        return self.table[key]


def offset_row(
    line: int,
    group: str,
    place: tuple[str, int],
    *,
    lag: int | None,
    consumer_id: str | None = None,
    client_id: str | None = None,
    owner: str | None = None,
    current: int | None = None,
    end: int | None = None,
    host: str | None = None,
) -> OffsetRow:
    """Build the row of one partition."""
    return OffsetRow(
        line=line,
        group=group,
        topic=place[0],
        partition=place[1],
        current=current,
        end=end,
        lag=lag,
        consumer_id=consumer_id,
        host=host,
        client_id=client_id,
        owner=owner,
    )


def state_row(line: int, group: str, *, state: str, members: int | None) -> StateRow:
    """Build the row of a group's state."""
    return StateRow(
        line=line,
        group=group,
        coordinator=None,
        coordinator_id=None,
        strategy=None,
        state=state,
        members=members,
    )
