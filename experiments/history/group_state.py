"""What is told of a group's past: generations, their members, and records in their place."""

from dataclasses import dataclass
from enum import StrEnum

from kassay.reference.protocol.record_codec import Fields

Numbers = tuple[tuple[str, tuple[int, ...]], ...]
"""Partition numbers by topic, in the order assigned."""


class RebalanceProtocol(StrEnum):
    """Which of Kafka's group protocols a group follows."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationMember:
    """A member in one generation.

    Parameters
    ----------
    id, instance_id, client_id, host, rack
        Who it is.
    subscription
        Topics it subscribed to; None where its group is none of consumers.
    assigned
        What it got; None where that is not recorded.
    """

    id: str
    instance_id: str | None = None
    client_id: str = ""
    host: str = ""
    rack: str | None = None
    subscription: tuple[str, ...] | None = ()
    assigned: Numbers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One generation of a group.

    Parameters
    ----------
    group
        Group id.
    life
        How many times the group had been deleted, or had begun to count anew.
    number
        Generation, or epoch of the target assignment.
    protocol
        Which group protocol it followed.
    assignor
        Name of the assignor that the members agreed on, where recorded.
    timestamp
        When, in milliseconds since 1970; None where not recorded.
    partition, offset
        Where its last record is.
    members
        Members sorted by id.
    counts
        Partition counts of topics, where recorded.
    passed
        How many epochs right before it are recorded to have been announced, and to have
        been overtaken before there was an assignment.
    """

    group: str
    life: int
    number: int
    protocol: RebalanceProtocol
    assignor: str | None
    timestamp: int | None
    partition: int | None
    offset: int | None
    members: tuple[GenerationMember, ...]
    counts: tuple[tuple[str, int], ...] = ()
    passed: int = 0

    @property
    def assigned(self) -> bool:
        """Whether it is known what every member got."""
        return all(member.assigned is not None for member in self.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """A decoded record of one group in its place; ``value`` is None for a tombstone."""

    kind: int
    key: Fields
    value: Fields | None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None
