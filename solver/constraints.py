"""Constraints on the assignment of partitions to members."""

from dataclasses import dataclass

from kassay.reference.model.topic_partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Capacity:
    """Constraint that limits the load of one member or of every member.

    If no member is named, the limit applies to every member. The limit is in the unit of the
    weights. If no window is given, it applies in every window. The capacity of a group member
    implies this constraint.
    """

    limit: int
    member: str | None = None
    window: int | None = None

    def __str__(self) -> str:
        when = "" if self.window is None else f" in window {self.window}"
        return f"the load of {_subject(self.member)}{when} is at most {self.limit}"


@dataclass(frozen=True, slots=True)
class MaxPartitions:
    """Constraint that limits the number of partitions of one member or of every member."""

    limit: int
    member: str | None = None

    def __str__(self) -> str:
        return (
            f"{_subject(self.member)} has at most {self.limit} partition{'s' * (self.limit != 1)}"
        )


@dataclass(frozen=True, slots=True)
class MaxMoves:
    """Constraint that limits the number of moves."""

    limit: int

    def __str__(self) -> str:
        return f"at most {self.limit} {'partition moves' if self.limit == 1 else 'partitions move'}"


@dataclass(frozen=True, slots=True)
class Pinned:
    """Constraint that assigns one partition to one member."""

    topic: str
    partition: int
    member: str

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} goes to {self.member!r}"


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Constraint that excludes a partition, or all partitions of a topic, from a member.

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
    """Constraint that assigns equal partition numbers of several topics to the same member."""

    topics: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "topics", tuple(self.topics))

    def __str__(self) -> str:
        return f"partitions with equal numbers of {', '.join(self.topics)} go to the same member"


@dataclass(frozen=True, slots=True)
class Separated:
    """Constraint that assigns the listed partitions to different members."""

    partitions: tuple[TopicPartition, ...]

    def __post_init__(self) -> None:
        frozen = tuple(dict.fromkeys(TopicPartition(*tp) for tp in self.partitions))
        object.__setattr__(self, "partitions", frozen)

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.partitions))} go to different members"


PartitionConstraint = Pinned | Forbidden | Colocated | Separated
Constraint = Capacity | MaxPartitions | MaxMoves | PartitionConstraint


def _subject(member: str | None) -> str:
    return "every member" if member is None else repr(member)
