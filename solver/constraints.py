"""Constraints on the assignment of partitions to members."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import SupportsIndex, assert_never

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Capacity:
    """Constraint: maximum load of one member, or of every member.

    If no member is named, the limit applies to every member. The limit is in the unit of the
    weights. The capacity of a group member implies this constraint.
    """

    limit: int
    member: str | None = None

    def __str__(self) -> str:
        return f"the load of {_subject(self.member)} is at most {self.limit}"


@dataclass(frozen=True, slots=True)
class MaxPartitions:
    """Constraint: maximum number of partitions of one member, or of every member.

    If no member is named, the limit applies to every member.
    """

    limit: int
    member: str | None = None

    def __str__(self) -> str:
        return (
            f"{_subject(self.member)} has at most {self.limit} partition{'s' * (self.limit != 1)}"
        )


@dataclass(frozen=True, slots=True)
class MaxMoves:
    """Constraint: maximum number of moves."""

    limit: int

    def __str__(self) -> str:
        return f"at most {self.limit} {'partition moves' if self.limit == 1 else 'partitions move'}"


@dataclass(frozen=True, slots=True)
class Pinned:
    """Constraint: a given partition is assigned to a given member."""

    topic: str
    partition: int
    member: str

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} goes to {self.member!r}"


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Constraint: a member must not get a given partition, or any partition of a topic.

    Without a partition number, the constraint applies to all partitions of the topic.
    """

    member: str
    topic: str
    partition: int | None = None

    def __str__(self) -> str:
        name = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return f"{name} must not go to {self.member!r}"


@dataclass(frozen=True, slots=True)
class Colocated:
    """Constraint: partitions with equal numbers in the given topics get the same member."""

    topics: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "topics", tuple(self.topics))

    def __str__(self) -> str:
        return f"partitions with equal numbers of {', '.join(self.topics)} go to the same member"


@dataclass(frozen=True, slots=True)
class Separated:
    """Constraint: the listed partitions get different members."""

    partitions: tuple[TopicPartition, ...]

    def __post_init__(self) -> None:
        frozen = tuple(dict.fromkeys(TopicPartition(*tp) for tp in self.partitions))
        object.__setattr__(self, "partitions", frozen)

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.partitions))} go to different members"


PartitionConstraint = Pinned | Forbidden | Colocated | Separated
Constraint = Capacity | MaxPartitions | MaxMoves | PartitionConstraint


def group_constraints(group: Group) -> tuple[Constraint, ...]:
    """Return the constraints that a group implies: the capacities of its members."""
    return tuple(
        Capacity(member.capacity, member.id)
        for member in group.members
        if member.capacity is not None
    )


def is_limited(group: Group, constraints: Iterable[Constraint]) -> bool:
    """Return whether the network of all levels lacks one of the constraints.

    It has the capacities of a group with several members per partition or stateful topics.
    """
    in_network = frozenset(group_constraints(group) if group.has_copies else ())
    return any(rule not in in_network for rule in constraints)


def check_constraints(group: Group, constraints: Iterable[Constraint]) -> None:
    """Check that constraints refer to members, topics and partitions of the group.

    Raises
    ------
    InputError
        If a member, topic or partition is unknown, or a limit is negative.
    UsageError
        If an object is not a constraint.
    """
    constraints = tuple(constraints)
    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise UsageError(
                f"a constraint must be a Constraint such as MaxMoves(3), got {constraint!r}"
            )
    if not constraints:
        return
    members = group.member_table()
    counts = {topic.name: topic.partitions for topic in group.topics}
    for constraint in constraints:
        for error in _errors(constraint, members, counts):
            raise InputError(f"constraint {constraint!r}: {error}")


def _errors(
    constraint: Constraint, members: Mapping[str, object], counts: Mapping[str, int]
) -> Iterable[str]:
    member = getattr(constraint, "member", None)
    if member is not None and member not in members:
        yield f"no member {member!r} in the group"
    limit = getattr(constraint, "limit", 0)
    if not _is_integer(limit):
        yield f"the limit {limit!r} is not an integer"
    elif limit < 0:
        yield "the limit must be at least 0"
    topics: list[tuple[str, int | None]] = []
    match constraint:
        case Pinned() | Forbidden():
            topics = [(constraint.topic, constraint.partition)]
        case Colocated():
            topics = [(topic, None) for topic in constraint.topics]
        case Separated():
            topics = [(tp.topic, tp.partition) for tp in constraint.partitions]
        case Capacity() | MaxPartitions() | MaxMoves():
            pass
        case _:
            assert_never(constraint)
    if isinstance(constraint, Pinned) and not _is_integer(constraint.partition):
        yield f"the partition number {constraint.partition!r} is not an integer"
    for topic, number in topics:
        yield from _topic_errors(topic, number, counts)


def _topic_errors(topic: str, number: int | None, counts: Mapping[str, int]) -> Iterable[str]:
    """Check a topic and, unless it is None, the number of a partition."""
    if topic not in counts:
        yield f"no topic {topic!r} in the group"
    elif number is not None and not _is_integer(number):
        yield f"the partition number {number!r} is not an integer"
    elif number is not None and not 0 <= number < counts[topic]:
        yield f"topic {topic!r} has no partition {number}"


def _is_integer(value: object) -> bool:
    return isinstance(value, SupportsIndex)


def _subject(member: str | None) -> str:
    return "every member" if member is None else repr(member)


def mean_load(total: int, limits: int | NDArray[np.int64]) -> int:
    """Return the smallest load limit with room for a total; ignore subscriptions.

    Parameters
    ----------
    limits
        Number of members, or the capacity of each.
    """
    if isinstance(limits, int):
        return -(-total // limits)
    low, high = 0, total
    while low < high:
        middle = (low + high) // 2
        if int(np.minimum(limits, middle).sum()) >= total:
            high = middle
        else:
            low = middle + 1
    return low
