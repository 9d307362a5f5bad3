"""Assignments, the check of their validity, and their movement."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model import display
from kassay.reference.model.display import short_mapping
from kassay.reference.model.errors import InternalError
from kassay.reference.model.group import Group, Results, topic_starts
from kassay.reference.model.ownership import (
    NO_OWNER,
    are_subscribed,
    consumed_partitions,
    ownership,
)
from kassay.reference.model.topic_partitions import (
    UNKNOWN,
    Column,
    PartitionColumns,
    Partitions,
    TopicPartition,
    TopicStarts,
    select,
)

Value = TypeVar("Value")


class InvalidAssignmentError(InternalError):
    """Internal error: an assignment that kassay computed is not valid."""


class Assignment(Mapping[str, Partitions]):
    """Partitions of each member, in the order in which the assignor lists them.

    Parameters
    ----------
    by_member
        Member id to its partitions; any iterables of (topic, partition) pairs.

    Examples
    --------
    >>> assignment = Assignment({"a": [("t", 0), ("t", 1)], "b": []})
    >>> assignment.counts()
    {'a': 2, 'b': 0}
    >>> assignment["a"]
    Partitions([t-0, t-1])
    """

    __slots__ = ("_by_member", "results")

    def __init__(self, by_member: Mapping[str, Iterable[tuple[str, int]]]) -> None:
        self._by_member = {member: Partitions.of(tps) for member, tps in by_member.items()}
        self.results = Results()

    def counts(self) -> dict[str, int]:
        """Count the partitions of each member. `kassay.loads` returns the loads, with weights."""
        return {member: len(partitions) for member, partitions in self._by_member.items()}

    def __getitem__(self, member: str) -> Partitions:
        return self._by_member[member]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_member)

    def __len__(self) -> int:
        return len(self._by_member)

    def __reduce__(self) -> tuple[type["Assignment"], tuple[dict[str, Partitions]]]:
        return (Assignment, (self._by_member,))

    def __hash__(self) -> int:
        return hash(frozenset(self._by_member.items()))

    def __repr__(self) -> str:
        return f"Assignment({short_mapping(self._by_member)})"

    def _repr_html_(self) -> str:
        """Return an HTML table of the load and partitions per member, for notebooks."""
        return display.loads_table("assignment", self.counts(), self, heading="count")


def cached_per_group(
    function: Callable[[Group, Assignment], Value],
) -> Callable[[Group, Assignment], Value]:
    """Decorate a pure function of a group and an assignment to cache its result.

    The assignment keeps the result for the last group only.
    """

    @wraps(function)
    def wrapper(group: Group, assignment: Assignment) -> Value:
        last_group, value = assignment.results.get(wrapper, (None, None))
        if last_group is not group:
            value = function(group, assignment)
            assignment.results[wrapper] = (group, value)
        result: Value = value
        return result

    return wrapper


def assignee_column(group: Group, assignment: Assignment) -> Column:
    """Return, for each partition of a group, the index of the member that gets the partition.

    The partitions are in the order of the topics. Unassigned partitions have `NO_OWNER`. Unknown
    members, topics and partition numbers are skipped. If a partition has several assignees, the
    column contains the last one.
    """
    return _check(group, assignment).column


@dataclass(frozen=True, slots=True)
class _Assignees:
    """Assigned member of each partition, and whether the assignment is valid."""

    column: Column
    valid: bool


@cached_per_group
def _check(group: Group, assignment: Assignment) -> _Assignees:
    starts = topic_starts(group)
    rows = starts.rows(
        (index, assignment[member.id])
        for index, member in enumerate(group.members)
        if member.id in assignment
    )
    exists = starts.exist(rows)
    known = bool(exists.all()) and group.member_table().keys() >= assignment.keys()
    if not known:
        rows = select(rows, exists)
    column = np.full(starts.size, NO_OWNER, dtype=np.int32)
    column[starts.flat(rows)] = rows.member
    valid = (
        known
        and not group.has_copies
        # As many rows as partitions with subscribers, and each of these has an assignee.
        and len(rows.member) == np.count_nonzero(consumed_partitions(group))
        and np.array_equal(column != NO_OWNER, consumed_partitions(group))
        and bool(are_subscribed(group, rows).all())
    )
    return _Assignees(column, valid)


def violations(group: Group, assignment: Assignment) -> Iterator[str]:
    """Yield one message per rule that an assignment violates.

    In a valid assignment, each partition of a topic with subscribers has exactly one
    assignee, which subscribes to the topic, and no other partition is assigned. The number of
    assignees of a partition with `Topic.copies` is in its range. Members that are not in the
    assignment have no partitions.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> topic, member = Topic(name="t", partitions=2), Member(id="a", subscription=("t",))
    >>> group = Group(topics=(topic,), members=(member,))
    >>> list(violations(group, Assignment({"a": [("t", 0), ("t", 0)]})))
    ["t-0 is assigned 2 times: ['a', 'a']", 't-1 is not assigned']
    """
    if _check(group, assignment).valid:
        return
    starts = topic_starts(group)
    index_of = {member.id: index for index, member in enumerate(group.members)}
    for member_id in assignment:
        if member_id not in index_of:
            yield f"member {member_id!r} is not in the group"
    lists = [(index_of[m], tps) for m, tps in assignment.items() if m in index_of]
    rows = starts.rows(lists)
    for index, partitions in lists:
        for topic in partitions.distinct_topics():
            if topic not in starts.index:
                member = group.members[index].id
                yield f"member {member!r} is assigned topic {topic!r}, which has no metadata"
    exists = starts.exist(rows)
    for index, topic_index, number in _triples(select(rows, ~exists & (rows.topic != UNKNOWN))):
        name = f"{group.topics[topic_index].name}-{number}"
        yield f"member {group.members[index].id!r} is assigned {name}, which does not exist"
    present = select(rows, exists)
    not_subscribed = select(present, ~are_subscribed(group, present))
    for index, topic_index in dict.fromkeys(triple[:2] for triple in _triples(not_subscribed)):
        member, topic = group.members[index].id, group.topics[topic_index].name
        yield f"member {member!r} is assigned topic {topic!r}, but does not subscribe to it"
    times = np.bincount(starts.flat(present), minlength=starts.size)
    consumed = consumed_partitions(group)
    least, most = copy_limits(group)
    for position in np.flatnonzero((times > most) | ((times < least) & consumed)).tolist():
        yield _wrong_count(group, assignment, starts, position, int(times[position]))
    yield from _repeated_copies(group, starts, present)


def _repeated_copies(group: Group, starts: TopicStarts, rows: PartitionColumns) -> Iterator[str]:
    """Yield a message per partition that a member of a group with copies receives twice."""
    if not group.has_copies:
        return
    pairs = starts.flat(rows) * len(group.members) + rows.member
    distinct, repeated = np.unique(pairs, return_counts=True)
    for pair in distinct[repeated > 1].tolist():
        position, index = divmod(pair, len(group.members))
        tp = _partition_at(group, starts, position)
        yield f"{tp} is assigned twice to member {group.members[index].id!r}"


def copy_limits(group: Group) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the minimum and maximum number of members of each partition of the group."""
    limits = np.ones((topic_starts(group).size, 2), dtype=np.int64)
    for topic, start in zip(group.topics, topic_starts(group).starts.tolist(), strict=False):
        if topic.copies:
            limits[start : start + topic.partitions] = topic.copies
    return limits[:, 0], limits[:, 1]


def _triples(rows: PartitionColumns) -> Iterator[tuple[int, int, int]]:
    return zip(rows.member.tolist(), rows.topic.tolist(), rows.number.tolist(), strict=True)


def _partition_at(group: Group, starts: TopicStarts, position: int) -> TopicPartition:
    index = int(np.searchsorted(starts.starts, position, side="right")) - 1
    return TopicPartition(group.topics[index].name, position - int(starts.starts[index]))


def _wrong_count(
    group: Group, assignment: Assignment, starts: TopicStarts, position: int, times: int
) -> str:
    tp = _partition_at(group, starts, position)
    if times == 0:
        return f"{tp} is not assigned"
    assignees_of_tp = [m for m, tps in assignment.items() for assigned in tps if assigned == tp]
    return f"{tp} is assigned {times} times: {assignees_of_tp}"


@dataclass(frozen=True, slots=True)
class MovementCount:
    """Numbers of the kept, moved, placed and unassigned partitions, and the moved weight.

    Kept partitions stay with their current owner, moved ones get another member, placed ones
    have no current owner. Unassigned ones have a current owner, but no assignee.
    """

    kept: int
    moved: int
    placed: int
    unassigned: int
    moved_weight: int


@cached_per_group
def movement_count(group: Group, assignment: Assignment) -> MovementCount:
    """Count the kept, moved, placed and unassigned partitions of an assignment."""
    before, after = ownership(group).column, assignee_column(group, assignment)
    owned, assigned, same = before != NO_OWNER, after != NO_OWNER, before == after
    masks = (owned & same, owned & assigned & ~same, ~owned & assigned, owned & ~assigned)
    kept, moved, placed, unassigned = (int(np.count_nonzero(mask)) for mask in masks)
    moved_weight = moved
    if any(topic.weights is not None for topic in group.topics):
        weights = [topic.weight(at) for topic in group.topics for at in range(topic.partitions)]
        moved_weight = sum(weights[place] for place in np.flatnonzero(masks[1]))
    return MovementCount(kept, moved, placed, unassigned, moved_weight)


def movement(group: Group, assignment: Assignment) -> int:
    """Count the partitions that are assigned to another member than their current owner."""
    return movement_count(group, assignment).moved
