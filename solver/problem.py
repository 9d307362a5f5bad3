"""A group as columns: one row a partition to place, members as positions."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import Assignment, assignees
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import participant_indices
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.reference.model.topic_partitions import Column, Partitions, TopicPartition

# Sums of loads up to here cannot overflow 64 bits, not even a few of them added up.
EXACT_IN_64_BITS = 2**60

Weights = NDArray[Any]  # int64, or Python integers where int64 could overflow
Placement = Column  # the member position of every row


@dataclass(frozen=True)
class Problem:
    """What has to be placed, and where it may go.

    Rows are the partitions of topics that somebody consumes, by topic in the order of
    the group, then by number. Positions count the members that consume anything.

    Parameters
    ----------
    group
        The rebalance.
    members
        Index in ``group.members`` of each position.
    topic
        Index in ``group.topics``, one entry a row.
    number
        Partition number, one entry a row.
    weight
        Load, one entry a row.
    owner
        Position of the owner or `NO_OWNER`, one entry a row.
    sets
        The different sets of consumers, each as ascending positions.
    set_of_topic
        Index in ``sets`` of the consumers of each topic of the group; -1 where the
        topic has no rows.
    """

    group: Group
    members: tuple[int, ...]
    topic: Column
    number: Column
    weight: Weights
    owner: Column
    sets: tuple[Column, ...]
    set_of_topic: Column

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.topic)

    @property
    def width(self) -> int:
        """Number of positions."""
        return len(self.members)

    @cached_property
    def set_of_row(self) -> Column:
        """Index in ``sets``, one entry a row."""
        return self.set_of_topic[self.topic] if self.size else self.topic

    @cached_property
    def total(self) -> int:
        """Load of all rows together."""
        return sum(self.weight.tolist())

    @cached_property
    def position_of(self) -> dict[str, int]:
        """Position of each participant by its member id."""
        members = self.group.members
        return {members[index].id: position for position, index in enumerate(self.members)}

    @cached_property
    def row_of(self) -> dict[TopicPartition, int]:
        """Row of each partition."""
        names = [topic.name for topic in self.group.topics]
        pairs = zip(self.topic.tolist(), self.number.tolist(), strict=True)
        return {
            TopicPartition(names[topic], number): row for row, (topic, number) in enumerate(pairs)
        }

    def loads(self, placement: Placement) -> list[int]:
        """Load of every position."""
        if self.weight.dtype == object:
            loads = [0] * self.width
            for weight, position in zip(self.weight, placement.tolist(), strict=True):
                loads[position] += weight
            return loads
        table = np.zeros(self.width, dtype=np.int64)
        np.add.at(table, placement, self.weight)
        return [int(load) for load in table]

    def to_assignment(self, placement: Placement) -> Assignment:
        """Write a placement as an assignment; idle members get empty lists."""
        names = tuple(topic.name for topic in self.group.topics)
        lists = {member.id: Partitions.of(()) for member in self.group.members}
        order = np.argsort(placement, kind="stable")
        bounds = np.searchsorted(placement[order], np.arange(self.width + 1))
        for position, index in enumerate(self.members):
            rows = order[bounds[position] : bounds[position + 1]]
            lists[self.group.members[index].id] = Partitions(
                names, self.topic[rows], self.number[rows]
            )
        return Assignment(lists)

    def to_placement(self, assignment: Assignment) -> Placement | None:
        """Read an assignment; None unless it gives every row to somebody who consumes it."""
        now = assignees(self.group, assignment)
        position_of = np.full(len(self.group.members) + 1, NO_OWNER, dtype=np.int32)
        position_of[list(self.members)] = np.arange(self.width, dtype=np.int32)
        placement = np.full(self.size, NO_OWNER, dtype=np.int32)
        for index, topic in enumerate(self.group.topics):
            rows = self.topic == index
            if rows.any():
                placement[rows] = position_of[now[topic.name]]
        return placement if self.allows(placement) else None

    def allows(self, placement: Placement) -> bool:
        """Whether every row is with a member that consumes it."""
        return all(
            bool(np.isin(placement[self.set_of_row == index], consumers).all())
            for index, consumers in enumerate(self.sets)
        )


def build_problem(group: Group) -> Problem:
    """Lay a group out as columns.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> problem = build_problem(
    ...     Group(
    ...         topics=(Topic(name="t", partitions=2, weights=(3, 4)),),
    ...         members=(Member(id="idle", subscription=()), Member(id="a", subscription=("t",))),
    ...     )
    ... )
    >>> problem.members, problem.weight.tolist(), problem.sets[0].tolist()
    ((1,), [3, 4], [0])
    """
    members = participant_indices(group)
    position_of = np.full(len(group.members) + 1, NO_OWNER, dtype=np.int32)
    position_of[list(members)] = np.arange(len(members), dtype=np.int32)
    subscribers = group.subscribers()
    owners = ownership(group).owners
    sets: dict[tuple[int, ...], int] = {}
    set_of_topic = np.full(len(group.topics), -1, dtype=np.int32)
    placed = [index for index, topic in enumerate(group.topics) if subscribers.get(topic.name, ())]
    for index in placed:
        consumers = subscribers[group.topics[index].name]
        set_of_topic[index] = sets.setdefault(consumers, len(sets))
    counts = [group.topics[index].partitions for index in placed]
    owner = _join([owners[group.topics[index].name] for index in placed])
    return Problem(
        group=group,
        members=members,
        topic=np.repeat(np.array(placed, dtype=np.int32), counts),
        number=_join([np.arange(count, dtype=np.int32) for count in counts]),
        weight=_weights(group, placed),
        owner=position_of[owner],
        sets=tuple(position_of[list(consumers)] for consumers in sets),
        set_of_topic=set_of_topic,
    )


def _weights(group: Group, placed: Iterable[int]) -> Weights:
    topics = [group.topics[index] for index in placed]
    if sum(topic.total_weight for topic in topics) < EXACT_IN_64_BITS:
        columns = [
            np.ones(topic.partitions, dtype=np.int64)
            if topic.weights is None
            else np.array(topic.weights, dtype=np.int64)
            for topic in topics
        ]
        return np.concatenate(columns) if columns else np.zeros(0, dtype=np.int64)
    return np.array([topic.weight(p) for topic in topics for p in range(topic.partitions)], object)


def _join(columns: list[Column]) -> Column:
    return np.concatenate(columns) if columns else np.zeros(0, dtype=np.int32)
