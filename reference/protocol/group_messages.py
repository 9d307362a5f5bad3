"""Messages between members and the group coordinator, and records in ``__consumer_offsets``.

Subscriptions and user data are those of consumers under the classic protocol. The simulated
coordinator exchanges and stores them without encoding them to bytes.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

from kassay.reference.model.group import NO_GENERATION
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition


class StickyUserData(NamedTuple):
    """User data of the sticky assignors: the last assignment and its generation."""

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
"""`ErrorCode.NONE` as a constant, which Python 3.11 finds ten times as fast."""


class SupportedProtocol(NamedTuple):
    """An assignor that a member supports, with the member's subscription for this assignor."""

    name: str
    metadata: ConsumerSubscription


class JoinRequest(NamedTuple):
    """JoinGroup request of a client since Kafka 2.2, with its supported assignors.

    ``offers`` are the supported protocols in order of preference; times are in milliseconds.
    """

    member_id: str
    offers: tuple[SupportedProtocol, ...]
    client: str = "consumer"
    instance_id: str | None = None
    session_timeout: int = 45_000
    rebalance_timeout: int = 300_000


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
    """SyncGroup request. Only the leader's request contains assignments."""

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


JoinReply = Callable[[JoinResponse], None]
SyncReply = Callable[[SyncResponse], None]
Offsets = Mapping[TopicPartition, int]


class MemberMetadata(NamedTuple):
    """A member of a classic group: its last JoinGroup request and its assignment."""

    request: JoinRequest
    assignment: Partitions


class GroupMetadata(NamedTuple):
    """Metadata record of a classic group. ``timestamp`` is the time of its last state change."""

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
