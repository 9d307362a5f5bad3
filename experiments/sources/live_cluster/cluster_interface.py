"""Interface for requests to a running cluster, and types of the responses about groups."""

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from typing import Protocol as Interface

from kassay.experiments.sources.merge_captures import PartitionKey
from kassay.experiments.sources.recognise_library import library_of_subscription
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import GroupStatus, Protocol
from kassay.reference.protocol.record_codec import CorruptRecordError, decode_message
from kassay.reference.protocol.record_schemas import SUBSCRIPTION

DEAD = "Dead"
# Several requests read a group; its description must be equal before and after them.
_ATTEMPTS = 3
_ATTEMPT_SECONDS = 1.0
_OTHER_GROUPS = {
    "connect": "a cluster of Kafka Connect workers, which share connectors and tasks",
    "share": "a share group, whose members share the messages of each partition",
    "streams": "a Kafka Streams application, whose members share tasks",
}


@dataclass(frozen=True, slots=True)
class JoinedSubscription:
    """The subscription that a member sent when it joined the group."""

    version: int  # of the message, 0 to 3; later versions are reported as 3
    topics: tuple[str, ...]  # in the order sent
    rack: str | None = None  # client.rack, sent since version 3
    library: str | None = None  # if the form of the subscription shows it
    pattern: str | None = None  # regular expression that the broker resolves


@dataclass(frozen=True, slots=True)
class LiveMember:
    """A group member as the group's coordinator describes it."""

    id: str
    client_id: str
    instance_id: str | None
    assigned: frozenset[PartitionKey]  # current assignment
    target: frozenset[PartitionKey] | None = None  # under the consumer protocol
    host: str | None = None
    # The partitions in the coordinator's order, which affects the broker's assignors.
    ordered: tuple[PartitionKey, ...] = field(default=(), compare=False)
    epoch: int | None = None
    # Under the consumer protocol, the coordinator describes the subscription too.
    subscription: JoinedSubscription | None = None
    is_classic: bool = False  # uses the classic protocol in a group of the consumer protocol


@dataclass(frozen=True, slots=True)
class ThreadMember:
    """Member of the classic group of a Streams application, with its encoded messages."""

    id: str
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """A consumer group as its coordinator describes it.

    The members are in the coordinator's order, which affects the broker's assignors, see
    docs/formats.md.
    """

    id: str
    state: str
    members: tuple[LiveMember, ...] = ()
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
    """A topic as the cluster describes it.

    Racks have the form of `kassay.reference.model.group.Topic`.
    """

    partitions: int
    id: uuid.UUID | None = None
    racks: tuple[tuple[str | None, ...], ...] | None = None


class Cluster(Interface):
    """Interface for read-only requests to a running cluster.

    If the cluster refuses to describe a group or topic, the response is an error.
    """

    def group_ids(self) -> list[str]:
        """Return the ids of all consumer groups."""

    def other_groups(self) -> Mapping[str, str]:
        """Return the protocol type of each group that is not a group of consumers."""

    def describe(self, groups: Sequence[str]) -> dict[str, LiveGroup | InputError]:
        """Return a description of each group. A group that does not exist has the state `DEAD`."""

    def subscriptions(self, groups: Sequence[str]) -> dict[str, bytes]:
        """Return the encoded subscriptions of classic members, by member id.

        The encoding is that of ``ConsumerProtocolSubscription``.
        """

    def describe_groups(self, kind: Kind, groups: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return the description of each share group or Streams group that can be described."""

    def thread_members(self, group: str) -> list[ThreadMember]:
        """Return the members of the classic group of a Streams application."""

    def committed_offsets(
        self, groups: Sequence[str]
    ) -> dict[str, dict[PartitionKey, int] | InputError]:
        """Return the committed offsets of each group by partition, or an error for the group."""

    def topic_names(self) -> list[str]:
        """Return the names of all topics."""

    def topics(self, names: Sequence[str]) -> dict[str, LiveTopic | InputError]:
        """Return a description of each existing topic, or an error if access is denied."""

    def end_offsets(self, partitions: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """Return the end offset of each partition that has a leader."""


@dataclass(frozen=True, slots=True)
class EndOffsets:
    """End offset of each partition, and number of messages appended between two samples."""

    end: Mapping[PartitionKey, int] = field(default_factory=dict)
    appended: Mapping[PartitionKey, int] = field(default_factory=dict)
    seconds: float = 0.0  # between the samples


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """All responses of a running cluster about one group and its topics."""

    group: LiveGroup
    subscriptions: Mapping[str, JoinedSubscription] = field(default_factory=dict)
    committed_offsets: Mapping[PartitionKey, int] = field(default_factory=dict)
    topics: Mapping[str, LiveTopic] = field(default_factory=dict)
    offsets: EndOffsets = field(default_factory=EndOffsets)
    unchanged: bool = True  # stable, and the same before and after it was read

    @property
    def partitions(self) -> set[PartitionKey]:
        """Return the partitions that are assigned or have a committed offset."""
        assigned = {partition for member in self.group.members for partition in member.assigned}
        return assigned | set(self.committed_offsets)

    @property
    def topic_names(self) -> set[str]:
        """Return the subscribed topics, and the topics of assigned or committed partitions."""
        subscribed = {
            topic for subscription in self.subscriptions.values() for topic in subscription.topics
        }
        return {topic for topic, _ in self.partitions} | subscribed


def other_group_reason(name: str, protocol_type: str) -> str:
    """Describe a group that is not a group of consumers, as the reason why it is not read."""
    kind = _OTHER_GROUPS.get(protocol_type)
    suffix = f"(protocol type {protocol_type!r})"
    if kind is None:
        return f"group {name!r} is not a group of consumers {suffix}"
    hint = "; read it with kassay import --connect-url" if protocol_type == "connect" else ""
    return f"group {name!r} is {kind} {suffix}{hint}"


def read_consumer_groups(
    cluster: Cluster, names: Sequence[str], *, sleep: Callable[[float], None]
) -> dict[str, ClusterReading | InputError]:
    """Read groups from a cluster. Read a group again if it changes during the reading."""
    readings: dict[str, ClusterReading | InputError] = {}
    pending = list(names)
    for attempt in range(_ATTEMPTS):
        if not pending:
            break
        if attempt:
            sleep(_ATTEMPT_SECONDS)
        before = cluster.describe(pending)
        existing = [
            name
            for name, answer in before.items()
            if isinstance(answer, LiveGroup) and answer.state != DEAD
        ]
        sent = cluster.subscriptions(existing) if existing else {}
        offsets = cluster.committed_offsets(existing) if existing else {}
        after = cluster.describe(existing) if existing else {}
        for name in pending:
            readings[name] = _reading(name, before[name], after.get(name), sent, offsets.get(name))
        pending = [
            name
            for name in pending
            if isinstance(reading := readings[name], ClusterReading) and not reading.unchanged
        ]
    return {name: readings[name] for name in names}


def resolve_patterns(
    cluster: Cluster, readings: Mapping[str, ClusterReading | InputError]
) -> dict[str, ClusterReading | InputError]:
    """Add the topics that match the regular expressions of subscriptions.

    The broker resolves an expression in the syntax of RE2 and does not return the result. A
    subscription is removed if Python cannot resolve its expression, or if the result lacks a topic
    that the member has partitions of.
    """
    is_used = any(
        subscription.pattern is not None
        for reading in readings.values()
        if isinstance(reading, ClusterReading)
        for subscription in reading.subscriptions.values()
    )
    if not is_used:
        return dict(readings)
    names = cluster.topic_names()
    return {
        group: replace(reading, subscriptions=_resolved(reading, names))
        if isinstance(reading, ClusterReading)
        else reading
        for group, reading in readings.items()
    }


def _resolved(reading: ClusterReading, names: Sequence[str]) -> dict[str, JoinedSubscription]:
    assigned = {m.id: {topic for topic, _ in m.assigned} for m in reading.group.members}
    resolved = {}
    for member, sent in reading.subscriptions.items():
        if sent.pattern is None:
            resolved[member] = sent
            continue
        try:
            pattern = re.compile(sent.pattern, re.ASCII)
        except re.error:
            continue
        matching = (name for name in names if pattern.fullmatch(name))
        topics = tuple(dict.fromkeys((*sent.topics, *matching)))
        if assigned[member] <= set(topics):
            resolved[member] = replace(sent, topics=topics)
    return resolved


def read_subscription(data: bytes, *, where: str) -> JoinedSubscription:
    r"""Decode the bytes of a ``ConsumerProtocolSubscription``, except its owned partitions."""
    try:
        fields = decode_message(SUBSCRIPTION, data)
    except CorruptRecordError as error:
        raise InputError(f"{where}: its subscription cannot be decoded: {error}") from None
    return JoinedSubscription(
        version=min(fields["version"], SUBSCRIPTION.newest),
        topics=tuple(fields["topics"]),
        rack=fields["rack"] or None,
        library=library_of_subscription(fields, data),
    )


def _reading(
    name: str,
    before: LiveGroup | InputError,
    after: LiveGroup | InputError | None,
    sent: Mapping[str, bytes],
    committed: dict[PartitionKey, int] | InputError | None,
) -> ClusterReading | InputError:
    for failure in (before, after, committed):
        if isinstance(failure, InputError):
            return failure
    if not isinstance(after, LiveGroup):
        return InputError(f"group {name!r}: the cluster has no such consumer group")
    try:
        subscriptions = {
            id: read_subscription(sent[id], where=f"group {name!r}: member {id!r}")
            for id in (member.id for member in after.members)
            if sent.get(id)
        }
    except InputError as error:
        return error
    described = {m.id: m.subscription for m in after.members if m.subscription is not None}
    return ClusterReading(
        group=after,
        subscriptions=subscriptions | described,
        committed_offsets=committed if isinstance(committed, dict) else {},
        unchanged=before == after and not after.status.is_rebalancing,
    )
