"""Topic partitions, and immutable lists of topic partitions that use little memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from operator import index as as_integer
from typing import NamedTuple, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.display import first_items
from kassay.reference.model.errors import InputError, UsageError

Column = NDArray[np.int32]
UNKNOWN = -1
"""Index of a topic without metadata."""


class TopicPartition(NamedTuple):
    """One partition of a topic. Partition numbers start at 0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Partitions(Sequence[TopicPartition]):
    """An ordered, immutable list of topic partitions, stored in columns.

    A million partitions take 8 MB, as tuples about 100 MB. The order is part of the value,
    because Kafka's assignors use and return lists.

    Examples
    --------
    >>> owned = Partitions.of([("orders", 3), ("audit", 0)])
    >>> len(owned), owned[0].topic, list(owned)[1].partition
    (2, 'orders', 0)
    >>> owned == [("orders", 3), ("audit", 0)]
    True
    """

    __slots__ = ("codes", "numbers", "topics")

    topics: tuple[str, ...]  # distinct names
    codes: Column  # index in ``topics`` per partition
    numbers: Column  # partition number per partition

    def __init__(self, topics: tuple[str, ...], codes: Column, numbers: Column) -> None:
        if len(codes) != len(numbers):
            raise UsageError(
                f"columns must have equal lengths, got {len(codes)} and {len(numbers)}"
            )
        object.__setattr__(self, "topics", topics)
        object.__setattr__(self, "codes", _read_only(codes))
        object.__setattr__(self, "numbers", _read_only(numbers))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Partitions is immutable: {name!r} cannot be set; build a new list")

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, int]], *, name: str = "partitions") -> Self:
        """Build the list from (topic, partition) pairs, in their order."""
        if isinstance(pairs, cls):
            return pairs
        pairs = tuple(pairs)
        try:
            return cls.from_columns(*(tuple(zip(*pairs, strict=True)) or ((), ())))
        except (TypeError, ValueError, OverflowError):
            bad = next((one for one in pairs if not _is_pair(one)), pairs)
            raise InputError(f"{name} must contain (topic, partition) pairs, got {bad!r}") from None

    @classmethod
    def from_columns(cls, topics: Sequence[str], numbers: Sequence[int]) -> Self:
        """Build the list from topic names and partition numbers, one entry per partition."""
        code = dict(zip(dict.fromkeys(topics), range(len(topics)), strict=False))
        if not all(isinstance(topic, str) for topic in code):
            raise InputError(f"topics must be strings, got {list(code)}")
        codes = np.fromiter(map(code.__getitem__, topics), dtype=np.int32, count=len(topics))
        # Without the conversion, NumPy accepts texts and fractions.
        integers = map(as_integer, numbers)
        columns = codes, np.fromiter(integers, dtype=np.int32, count=len(numbers))
        for column in columns:
            column.flags.writeable = False
        return cls(tuple(code), *columns)

    def split(self, ends: Sequence[int]) -> list["Partitions"]:
        """Split the list into consecutive lists that end before the indices ``ends``."""
        return [self[start:end] for start, end in pairwise([0, *ends])]

    def rename_topics(self, rename: Callable[[str], str]) -> "Partitions":
        """Return the list with other topic names."""
        return Partitions(tuple(map(rename, self.topics)), self.codes, self.numbers)

    def to_list(self) -> list[TopicPartition]:
        """Return the partitions as a list of `TopicPartition`."""
        topics = map(self.topics.__getitem__, self.codes.tolist())
        pairs = zip(topics, self.numbers.tolist(), strict=True)
        # Without a Python call per partition this takes a third less time.
        return list(map(tuple.__new__, repeat(TopicPartition), pairs))

    def distinct_topics(self) -> list[str]:
        """Return the topics of the partitions without repetitions."""
        # np.unique imports numpy.ma, which takes a tenth of a second.
        return [self.topics[code] for code in np.flatnonzero(np.bincount(self.codes))]

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self.to_list())

    @overload
    def __getitem__(self, index: int) -> TopicPartition: ...
    @overload
    def __getitem__(self, index: slice) -> "Partitions": ...
    def __getitem__(self, index: int | slice) -> "TopicPartition | Partitions":
        if isinstance(index, slice):
            return Partitions(self.topics, self.codes[index], self.numbers[index])
        return TopicPartition(self.topics[self.codes[index]], int(self.numbers[index]))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Partitions) and self.topics == other.topics:
            # Short lists compare ten times as fast as bytes, long lists half as fast.
            return (
                self.numbers.tobytes() == other.numbers.tobytes()
                and self.codes.tobytes() == other.codes.tobytes()
            )
        if isinstance(other, Sequence) and not isinstance(other, str | bytes):
            return self.to_list() == list(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.to_list()))

    def __repr__(self) -> str:
        return f"Partitions([{first_items(self)}])"

    def __reduce__(self) -> tuple[type["Partitions"], tuple[tuple[str, ...], Column, Column]]:
        return (Partitions, (self.topics, self.codes, self.numbers))


def _is_pair(value: object) -> bool:
    match value:
        case [str(), SupportsIndex() as number]:
            return -(2**31) <= as_integer(number) < 2**31
    return False


def _read_only(column: Column) -> Column:
    if column.dtype == np.int32 and not column.flags.writeable:
        return column
    view = np.asarray(column, dtype=np.int32).view()
    view.flags.writeable = False
    return view


NO_PARTITIONS = Partitions.of(())


class PartitionColumns(NamedTuple):
    """Members' lists of partitions as columns: member, topic and partition number.

    The rows are in the order of the lists. ``topic`` is `UNKNOWN` for a topic without metadata;
    ``number`` may be out of range.
    """

    member: Column
    topic: Column
    number: Column


EMPTY_COLUMNS = PartitionColumns(*[np.zeros(0, dtype=np.int32)] * 3)


class TopicStarts:
    """Consecutive numbering of a group's partitions from 0, in the order of the topics."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts: NDArray[np.int64] = np.array(list(counts.values()), dtype=np.int64)
        self.starts: NDArray[np.int64] = np.concatenate([[0], np.cumsum(self.counts)])
        self.index = {name: index for index, name in enumerate(counts)}

    @property
    def size(self) -> int:
        """Return the number of partitions of all topics."""
        return int(self.starts[-1])

    def exist(self, rows: PartitionColumns) -> NDArray[np.bool_]:
        """Return whether the partition of each row exists."""
        known: NDArray[np.bool_] = rows.topic != UNKNOWN
        if len(self.counts):
            known &= (rows.number >= 0) & (rows.number < self.counts[rows.topic])
        return known

    def flat(self, rows: PartitionColumns) -> NDArray[np.int64]:
        """Return the consecutive number of the partition of each row."""
        return self.starts[rows.topic] + rows.number

    def rows(self, lists: Iterable[tuple[int, Partitions]]) -> PartitionColumns:
        """Convert (member index, partitions) pairs to a `PartitionColumns` in the same order."""
        # Topic indices of all name tables in one list, and the start of each table in it.
        table: list[int] = []
        starts_of_tables: dict[tuple[str, ...], int] = {}
        runs: list[tuple[int, int, int]] = []
        codes: list[Column] = []
        numbers: list[Column] = []
        for member, partitions in lists:
            size = len(partitions)
            if not size:
                continue
            names = partitions.topics
            if names not in starts_of_tables:
                starts_of_tables[names] = len(table)
                table.extend([self.index.get(name, UNKNOWN) for name in names])
            runs.append((member, starts_of_tables[names], size))
            codes.append(partitions.codes)
            numbers.append(partitions.numbers)
        if not runs:
            return EMPTY_COLUMNS
        members, starts, sizes = np.array(runs, dtype=np.int32).T
        topics = np.array(table, dtype=np.int32)
        return PartitionColumns(
            members.repeat(sizes),
            topics[np.concatenate(codes) + starts.repeat(sizes)],
            np.concatenate(numbers),
        )

    def by_topic(self, column: Column) -> dict[str, Column]:
        """Split an array with one value per partition into read-only arrays, by topic name."""
        column.flags.writeable = False
        bounds = pairwise(self.starts.tolist())
        return {
            name: column[start:stop] for name, (start, stop) in zip(self.index, bounds, strict=True)
        }


def select(rows: PartitionColumns, mask: NDArray[np.bool_]) -> PartitionColumns:
    """Return the rows of the columns that a mask selects."""
    return PartitionColumns(rows.member[mask], rows.topic[mask], rows.number[mask])
