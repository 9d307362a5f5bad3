"""Members' lists of partitions as columns of members, topics and partition numbers."""

from collections.abc import Iterable
from itertools import pairwise, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.group import Group, cached
from kassay.reference.model.topic_partitions import Column, Partitions

UNKNOWN = -1


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
    """Consecutive numbering of a group's partitions: the start number of each topic.

    The partitions of a group are numbered consecutively from 0, in the order of the topics.
    """

    def __init__(self, group: Group) -> None:
        self.counts: NDArray[np.int64] = np.array(
            [topic.partitions for topic in group.topics], dtype=np.int64
        )
        self.starts: NDArray[np.int64] = np.concatenate([[0], np.cumsum(self.counts)])
        self.index = {topic.name: index for index, topic in enumerate(group.topics)}

    @property
    def size(self) -> int:
        """Return the number of partitions of all topics."""
        return int(self.starts[-1])

    def exist(self, rows: PartitionColumns) -> NDArray[np.bool_]:
        """Return, for each row of the columns, whether the partition exists."""
        known: NDArray[np.bool_] = rows.topic != UNKNOWN
        if len(self.counts):
            known &= (rows.number >= 0) & (rows.number < self.counts[rows.topic])
        return known

    def flat(self, rows: PartitionColumns) -> NDArray[np.int64]:
        """Return the consecutive number of the partition in each row. All partitions must exist."""
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


# Larger tables of members and topics take more time and memory than the subscriptions.
_MAX_CELLS = 2**24


@cached
def topic_starts(group: Group) -> TopicStarts:
    """Return the position of the first partition of each topic in a list of all partitions."""
    return TopicStarts(group)


def select(rows: PartitionColumns, mask: NDArray[np.bool_]) -> PartitionColumns:
    """Return the rows of the columns that a mask selects."""
    return PartitionColumns(rows.member[mask], rows.topic[mask], rows.number[mask])


@cached
def subscription_mask(group: Group) -> NDArray[np.bool_]:
    """Return a boolean matrix: whether a member (row) subscribes to a topic (column)."""
    starts = topic_starts(group)
    table = np.zeros((len(group.members), len(group.topics)), dtype=np.bool_)
    known: dict[tuple[str, ...], Column] = {}  # topic indices per distinct subscription
    for row, member in enumerate(group.members):
        names = member.subscription
        if names not in known:
            indices = map(starts.index.get, names, repeat(UNKNOWN))
            codes = np.fromiter(indices, dtype=np.int32, count=len(names))
            known[names] = codes[codes != UNKNOWN]
        table[row, known[names]] = True
    return table


def are_subscribed(group: Group, rows: PartitionColumns) -> NDArray[np.bool_]:
    """Return, for each row of the columns, whether the member subscribes to the topic."""
    topics = len(group.topics)
    if not len(rows.member):
        return np.zeros(0, dtype=np.bool_)
    if len(group.members) * topics <= _MAX_CELLS:
        return subscription_mask(group)[rows.member, rows.topic]
    index = topic_starts(group).index
    keys = {
        row * topics + index[name]
        for row in np.flatnonzero(np.bincount(rows.member)).tolist()
        for name in group.members[row].subscription
        if name in index
    }
    claimed = rows.member.astype(np.int64) * topics + rows.topic
    return np.isin(claimed, np.fromiter(keys, dtype=np.int64, count=len(keys)))


@cached
def consumed_partitions(group: Group) -> NDArray[np.bool_]:
    """Return, for each partition, whether its topic has a subscriber."""
    subscribers = group.subscribers()
    consumed = [bool(subscribers.get(topic.name)) for topic in group.topics]
    return np.repeat(np.array(consumed, dtype=np.bool_), topic_starts(group).counts)
