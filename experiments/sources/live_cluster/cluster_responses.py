"""Types of the responses of a running cluster about groups and topics."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kassay.experiments.sources.merge_captures import ObservedMember, PartitionKey
from kassay.experiments.sources.recognise_library import library_of_subscription
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import GroupStatus, Protocol
from kassay.reference.protocol.message_decoder import (
    SUBSCRIPTION,
    CorruptRecordError,
    decode_message,
)

DEAD = "Dead"
_OTHER_GROUPS = {
    "connect": "a cluster of Kafka Connect workers, which share connectors and tasks",
    "share": "a share group, whose members share the messages of each partition",
    "streams": "a Kafka Streams application, whose members share tasks",
}


@dataclass(frozen=True, slots=True)
class ThreadMember:
    """Member of a Streams application with the classic protocol, with encoded data."""

    id: str
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """Consumer group in the description of its coordinator.

    The members are in the coordinator's order, which affects the broker's assignors (see
    docs/formats.md).
    """

    id: str
    state: str
    members: tuple[ObservedMember, ...] = ()
    assignor: str | None = None
    protocol: Protocol | None = None
    # Reason for which the subscriptions of the consumer protocol are missing.
    incomplete: str | None = field(default=None, compare=False)

    @property
    def status(self) -> GroupStatus:
        """Return the state, protocol and assignor of the group."""
        return GroupStatus(state=self.state, protocol=self.protocol, assignor=self.assignor)


@dataclass(frozen=True, slots=True)
class LiveTopic:
    """Topic of a cluster. Racks have the format of `kassay.reference.model.group.Topic`."""

    partitions: int
    id: uuid.UUID | None = None
    racks: tuple[tuple[str | None, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class EndOffsets:
    """End offset of each partition, and the number of messages appended between two samples."""

    end: Mapping[PartitionKey, int] = field(default_factory=dict)
    appended: Mapping[PartitionKey, int] = field(default_factory=dict)
    seconds: float = 0.0  # between the samples


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """Responses of a running cluster about one group and its topics."""

    group: LiveGroup
    committed_offsets: Mapping[PartitionKey, int] = field(default_factory=dict)
    topics: Mapping[str, LiveTopic] = field(default_factory=dict)
    offsets: EndOffsets = field(default_factory=EndOffsets)
    unchanged: bool = True  # stable, and the same before and after it was read

    @property
    def partitions(self) -> set[PartitionKey]:
        """Return the partitions that have an owner or a committed offset."""
        assigned = {partition for member in self.group.members for partition in member.owned}
        return assigned | set(self.committed_offsets)

    @property
    def topic_names(self) -> set[str]:
        """Return the topics with a subscription, an owner or a committed offset."""
        subscribed = {topic for one in self.group.members for topic in one.subscription or ()}
        return {topic for topic, _ in self.partitions} | subscribed


def other_group_reason(name: str, protocol_type: str) -> str:
    """Return the reason why kassay cannot read a group of another type."""
    kind = _OTHER_GROUPS.get(protocol_type)
    suffix = f"(protocol type {protocol_type!r})"
    if kind is None:
        return f"group {name!r} is not a group of consumers {suffix}"
    hint = "; read it with kassay import --connect-url" if protocol_type == "connect" else ""
    return f"group {name!r} is {kind} {suffix}{hint}"


def with_subscription(member: ObservedMember, data: bytes, *, where: str) -> ObservedMember:
    """Decode the subscription of a member, and set the member's fields.

    The owned partitions in the subscription are not used: they precede the current assignment.
    """
    try:
        fields = decode_message(SUBSCRIPTION, data)
    except CorruptRecordError as error:
        raise InputError(f"{where}: kassay cannot decode the subscription: {error}") from None
    return replace(
        member,
        subscription=tuple(fields["topics"]),
        rack=fields["rack"] or None,
        library=library_of_subscription(fields, data),
        protocol_version=min(fields["version"], SUBSCRIPTION.newest),
    )
