"""Messages between members and the group coordinator, and records in ``__consumer_offsets``.

Subscriptions and user data are those of consumers under the classic protocol. The simulated
coordinator exchanges and stores them without encoding them to bytes.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from kassay.reference.model.group import NO_GENERATION
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol.record_codec import Fields
from kassay.reference.protocol.record_schemas import RecordType


class StickyUserData(NamedTuple):
    """User data of a sticky assignor: the member's last assignment and its generation.

    ``partitions`` is None for the cooperative assignor, whose subscription contains them.
    """

    partitions: Partitions | None
    generation: int


class ConsumerSubscription(NamedTuple):
    """Subscription that a consumer sends to the leader when it joins.

    ``topics`` are sorted by name, as the Java consumer sends them. ``owned`` are the partitions
    that the member keeps consuming while it joins: none under eager rebalancing.
    """

    topics: tuple[str, ...]
    owned: Partitions = NO_PARTITIONS
    generation: int = NO_GENERATION
    rack: str | None = None
    user_data: StickyUserData | None = None


UNKNOWN_MEMBER = ""
"""Member id of a member that has none yet."""

CONSUMERS = "consumer"
"""Protocol type of groups of consumers."""


class ErrorCode(StrEnum):
    """Error codes in responses of the group coordinator, with Kafka's names."""

    NONE = "NONE"
    COORDINATOR_NOT_AVAILABLE = "COORDINATOR_NOT_AVAILABLE"
    FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID"
    FENCED_MEMBER_EPOCH = "FENCED_MEMBER_EPOCH"
    GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND"
    GROUP_MAX_SIZE_REACHED = "GROUP_MAX_SIZE_REACHED"
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION"
    INCONSISTENT_GROUP_PROTOCOL = "INCONSISTENT_GROUP_PROTOCOL"
    MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED"
    NOT_COORDINATOR = "NOT_COORDINATOR"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    STALE_MEMBER_EPOCH = "STALE_MEMBER_EPOCH"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    UNRELEASED_INSTANCE_ID = "UNRELEASED_INSTANCE_ID"


NO_ERROR = ErrorCode.NONE
"""`ErrorCode.NONE`, which Python 3.11 takes ten times as long to look up."""


class SupportedProtocol(NamedTuple):
    """An assignor that a member supports, with the member's subscription for this assignor."""

    name: str
    metadata: ConsumerSubscription


class JoinRequest(NamedTuple):
    """JoinGroup request.

    ``offers`` are the supported protocols in order of preference; times are in milliseconds.
    Clients since 2.2 request a member id first (``asks_for_id``) and then join with it.
    """

    member_id: str
    offers: tuple[SupportedProtocol, ...]
    client: str = "consumer"
    instance_id: str | None = None
    session_timeout: int = 45_000
    rebalance_timeout: int = 300_000
    protocol_type: str = CONSUMERS
    asks_for_id: bool = True


class JoinedMember(NamedTuple):
    """Member in the JoinGroup response to the leader."""

    member_id: str
    instance_id: str | None
    metadata: ConsumerSubscription


class JoinResponse(NamedTuple):
    """JoinGroup response. Only the leader's response contains members."""

    code: ErrorCode
    member_id: str
    generation: int = -1
    protocol: str | None = None
    leader: str | None = None
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


class SyncRequest(NamedTuple):
    """SyncGroup request. Only the leader's request contains assignments.

    ``has_user_data`` states whether the assignments contain data of the assignor.
    """

    member_id: str
    generation: int
    assignments: Mapping[str, Partitions] | None = None
    instance_id: str | None = None
    protocol: str | None = None
    has_user_data: bool = False


class SyncResponse(NamedTuple):
    """SyncGroup response."""

    code: ErrorCode
    assignment: Partitions = NO_PARTITIONS
    protocol: str | None = None


class MemberIdentity(NamedTuple):
    """Identity of a member that leaves: member id and, for a static member, instance id.

    An administrator can identify a static member by its instance id.
    """

    member_id: str
    instance_id: str | None = None


JoinReply = Callable[[JoinResponse], None]
SyncReply = Callable[[SyncResponse], None]
Offsets = Mapping[TopicPartition, int]


class MemberMetadata(NamedTuple):
    """A member in the metadata record of a classic group. Times are in milliseconds."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: ConsumerSubscription
    assignment: Partitions


class GroupMetadata(NamedTuple):
    """Metadata record of a classic group.

    It is written when the assignment is complete, or when the last member has left. ``timestamp``
    is the time of the last state change in milliseconds.
    """

    group: str
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    timestamp: int
    members: tuple[MemberMetadata, ...]


class OffsetCommit(NamedTuple):
    """Record of a committed offset. ``timestamp`` is in milliseconds."""

    group: str
    partition: TopicPartition
    offset: int
    timestamp: int


PartitionsByTopicId = tuple[tuple[UUID, tuple[int, ...]], ...]
"""Partition numbers per topic id."""


class ConsumerRecord(NamedTuple):
    """A record of a KIP-848 group.

    ``fields`` are the fields of the value, None for a tombstone.

    Records of the group as a whole have an empty ``member_id``.
    """

    kind: RecordType
    group: str
    member_id: str
    fields: Fields | None


def group_epoch(group: str, epoch: int, metadata_hash: int) -> ConsumerRecord:
    """Return the record with the epoch of a group and the hash of the group's topic metadata."""
    fields = {"epoch": epoch, "metadata_hash": metadata_hash}
    return ConsumerRecord(RecordType.CONSUMER_GROUP_METADATA, group, "", fields)


def target_epoch(group: str, epoch: int, timestamp: int) -> ConsumerRecord:
    """Return the record with the epoch and the computation time of a target assignment."""
    fields = {"epoch": epoch, "timestamp": timestamp}
    return ConsumerRecord(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, group, "", fields)


def member_metadata(
    group: str,
    member_id: str,
    *,
    instance_id: str | None,
    rack: str | None,
    client_id: str,
    subscription: Iterable[str],
    rebalance_timeout: int,
    assignor: str | None = None,
) -> ConsumerRecord:
    """Return the record with a member's identity and subscription."""
    fields = {
        "instance_id": instance_id,
        "rack": rack,
        "client_id": client_id,
        "client_host": f"/{client_id}",
        "topics": list(subscription),
        "regex": "",
        "rebalance_timeout": rebalance_timeout,
        "assignor": assignor,
    }
    return ConsumerRecord(RecordType.CONSUMER_GROUP_MEMBER_METADATA, group, member_id, fields)


def target_assignment(
    group: str, member_id: str, partitions: PartitionsByTopicId
) -> ConsumerRecord:
    """Return the record with a member's target assignment."""
    fields = {"assigned": _topics(partitions)}
    return ConsumerRecord(
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, group, member_id, fields
    )


def current_assignment(
    group: str,
    member_id: str,
    *,
    epoch: int,
    previous_epoch: int,
    state: int,
    assigned: PartitionsByTopicId,
    revoking: PartitionsByTopicId,
) -> ConsumerRecord:
    """Return the record with a member's current assignment and reconciliation state."""
    fields = {
        "epoch": epoch,
        "previous_epoch": previous_epoch,
        "state": state,
        "assigned": _topics(assigned),
        "revoking": _topics(revoking),
    }
    return ConsumerRecord(
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, group, member_id, fields
    )


def tombstones(group: str, member_id: str) -> tuple[ConsumerRecord, ...]:
    """Return the tombstones that delete a member's assignments and metadata.

    They delete the current assignment, the target assignment and the metadata.
    """
    kinds = (
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        RecordType.CONSUMER_GROUP_MEMBER_METADATA,
    )
    return tuple(ConsumerRecord(kind, group, member_id, None) for kind in kinds)


def _topics(partitions: PartitionsByTopicId) -> list[Fields]:
    return [{"topic_id": topic, "partitions": numbers} for topic, numbers in partitions]
