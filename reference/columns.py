"""Many members' lists of partitions as three flat columns, so that a million are one pass."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference.group import Group
from reference.partitions import Column, Partitions

UNKNOWN = -1


class Rows(NamedTuple):
    """One entry for each partition in somebody's list, list after list.

    Parameters
    ----------
    member
        Index of the list's member.
    topic
        Index in ``group.topics``, `UNKNOWN` where the group has no such topic.
    number
        Partition number, in range or not.
    """

    member: Column
    topic: Column
    number: Column


class Offsets:
    """Where each topic of a group begins when all partitions stand in one column."""

    def __init__(self, group: Group) -> None:
        self.counts: NDArray[np.int64] = np.array(
            [topic.partitions for topic in group.topics], dtype=np.int64
        )
        self.starts: NDArray[np.int64] = np.concatenate([[0], np.cumsum(self.counts)])
        self.index = {topic.name: index for index, topic in enumerate(group.topics)}

    @property
    def size(self) -> int:
        """Partitions of all topics together."""
        return int(self.starts[-1])

    def exist(self, rows: Rows) -> NDArray[np.bool_]:
        """Say of each row whether its topic has such a partition."""
        known: NDArray[np.bool_] = rows.topic != UNKNOWN
        if len(self.counts):
            known &= (rows.number >= 0) & (rows.number < self.counts[rows.topic])
        return known

    def flat(self, rows: Rows) -> NDArray[np.int64]:
        """Return the place of each row in the one column; rows must exist."""
        return self.starts[rows.topic] + rows.number

    def rows(self, lists: Iterable[tuple[int, Partitions]]) -> Rows:
        """Lay (member index, partitions) pairs out as columns, in their order."""
        tables: dict[tuple[str, ...], Column] = {}
        members: list[Column] = []
        topics: list[Column] = []
        numbers: list[Column] = []
        for member, partitions in lists:
            names = partitions.topics
            if names not in tables:
                found = [self.index.get(name, UNKNOWN) for name in names]
                tables[names] = np.array(found, dtype=np.int32)
            members.append(np.full(len(partitions), member, dtype=np.int32))
            topics.append(tables[names][partitions.codes])
            numbers.append(partitions.numbers)
        empty = np.zeros(0, dtype=np.int32)
        return Rows(*(np.concatenate([empty, *parts]) for parts in (members, topics, numbers)))

    def by_topic(self, group: Group, column: Column) -> dict[str, Column]:
        """Cut the one column into read-only pieces by topic name."""
        column.flags.writeable = False
        bounds = pairwise(self.starts.tolist())
        return {
            topic.name: column[start:stop]
            for topic, (start, stop) in zip(group.topics, bounds, strict=True)
        }


def select(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    """Keep the rows that a mask names."""
    return Rows(rows.member[mask], rows.topic[mask], rows.number[mask])


def subscription_mask(group: Group, offsets: Offsets) -> NDArray[np.bool_]:
    """Return a table, members by topics, of who subscribes to what."""
    table = np.zeros((len(group.members), len(group.topics)), dtype=np.bool_)
    for row, member in enumerate(group.members):
        known = [offsets.index[name] for name in member.subscription if name in offsets.index]
        table[row, known] = True
    return table
