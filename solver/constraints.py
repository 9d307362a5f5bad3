"""What must hold of an assignment: plain values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Capacity:
    """Constraint: a member's load stays within a limit, in the unit of the weights.

    Members of a group that name a capacity bring this constraint along.

    Parameters
    ----------
    limit
        The most load.
    member
        The member meant; None for each of them.
    """

    limit: int
    member: str | None = None

    def __str__(self) -> str:
        """Say it in words."""
        return f"{_who(self.member)} carries at most {self.limit}"


@dataclass(frozen=True, slots=True)
class MaxPartitions:
    """Constraint: a member has at most so many partitions."""

    limit: int
    member: str | None = None

    def __str__(self) -> str:
        """Say it in words."""
        return f"{_who(self.member)} has at most {self.limit} partitions"


@dataclass(frozen=True, slots=True)
class MaxMoves:
    """Constraint: at most so many partitions leave their owner."""

    limit: int

    def __str__(self) -> str:
        """Say it in words."""
        return f"at most {self.limit} partitions move"


@dataclass(frozen=True, slots=True)
class Pinned:
    """Constraint: a partition goes to this member."""

    topic: str
    partition: int
    member: str

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.topic}-{self.partition} goes to {self.member!r}"


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Constraint: a member gets no partition of a topic, or not this one."""

    member: str
    topic: str
    partition: int | None = None

    def __str__(self) -> str:
        """Say it in words."""
        what = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return f"{what} never goes to {self.member!r}"


@dataclass(frozen=True, slots=True)
class Colocated:
    """Constraint: of these co-partitioned topics, equal partition numbers stay together.

    Partition i of one goes to the member that has partition i of the others. Numbers
    that only one of the topics has are free.
    """

    topics: tuple[str, ...]

    def __post_init__(self) -> None:
        """Freeze a list."""
        object.__setattr__(self, "topics", tuple(self.topics))

    def __str__(self) -> str:
        """Say it in words."""
        return f"equal partitions of {', '.join(self.topics)} stay together"


@dataclass(frozen=True, slots=True)
class Separated:
    """Constraint: no member has two of these partitions."""

    partitions: tuple[TopicPartition, ...]

    def __post_init__(self) -> None:
        """Freeze a list of pairs."""
        frozen = tuple(dict.fromkeys(TopicPartition(*tp) for tp in self.partitions))
        object.__setattr__(self, "partitions", frozen)

    def __str__(self) -> str:
        """Say it in words."""
        return f"{', '.join(map(str, self.partitions))} go to different members"


Constraint = Capacity | MaxPartitions | MaxMoves | Pinned | Forbidden | Colocated | Separated


def group_constraints(group: Group) -> tuple[Constraint, ...]:
    """Return the constraints that a group brings along: its members' capacities."""
    return tuple(
        Capacity(member.capacity, member.id)
        for member in group.members
        if member.capacity is not None
    )


def check_constraints(group: Group, constraints: Iterable[Constraint]) -> None:
    """Refuse constraints that speak of what the group does not have.

    Raises
    ------
    InvalidGroupError
        If a constraint names an unknown member, topic or partition, or its limit is
        negative.

    Examples
    --------
    >>> check_constraints(Group(topics=(), members=()), [Pinned("t", 0, "a")])
    Traceback (most recent call last):
        ...
    kassay...InputError: constraint Pinned(topic='t', partition=0, member='a'): ...
    """
    members = group.member_table()
    counts = {topic.name: topic.partitions for topic in group.topics}
    for constraint in constraints:
        for problem in _problems(constraint, members, counts):
            raise InputError(f"constraint {constraint!r}: {problem}")


def _problems(
    constraint: Constraint, members: Mapping[str, object], counts: Mapping[str, int]
) -> Iterable[str]:
    member = getattr(constraint, "member", None)
    if member is not None and member not in members:
        yield f"no member {member!r} in the group"
    if getattr(constraint, "limit", 0) < 0:
        yield "the limit must be 0 or more"
    topics: list[tuple[str, int | None]] = []
    match constraint:
        case Pinned() | Forbidden():
            topics = [(constraint.topic, constraint.partition)]
        case Colocated():
            topics = [(topic, None) for topic in constraint.topics]
        case Separated():
            topics = [(tp.topic, tp.partition) for tp in constraint.partitions]
        case _:
            pass
    for topic, number in topics:
        if topic not in counts:
            yield f"no topic {topic!r} in the group"
        elif number is not None and not 0 <= number < counts[topic]:
            yield f"topic {topic!r} has no partition {number}"


def _who(member: str | None) -> str:
    return "every member" if member is None else repr(member)
