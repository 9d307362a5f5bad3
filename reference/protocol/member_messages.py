"""Requests and responses between members and the coordinator, and the data in them.

Subscriptions, assignments and user data are those of consumers under the classic protocol. The
coordinator stores these bytes; only the leader of the group reads them.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from kassay.reference.model.group import NO_GENERATION
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol.record_codec import (
    Fields,
    decode_message,
    decode_sticky_fields,
    encode_fields,
    encode_message,
)
from kassay.reference.protocol.record_schemas import (
    ASSIGNMENT,
    COOPERATIVE_USER_DATA,
    STICKY_USER_DATA,
    SUBSCRIPTION,
)

VERSION = 3


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

    def encode(self) -> bytes:
        """Encode the subscription in version 3 of the message format."""
        user_data = self.user_data
        fields = self._asdict() | {
            "owned": _to_fields(self.owned),
            "user_data": None if user_data is None else encode_sticky_user_data(user_data),
        }
        return encode_message(SUBSCRIPTION, VERSION, fields)

    @classmethod
    def decode(cls, data: bytes) -> "ConsumerSubscription":
        """Decode the bytes of a subscription message."""
        fields = decode_message(SUBSCRIPTION, data)
        user_data = fields["user_data"]
        return cls(
            tuple(fields["topics"]),
            owned=_from_fields(fields["owned"]),
            generation=fields["generation"],
            rack=fields["rack"] or None,
            user_data=None if user_data is None else decode_sticky_user_data(user_data),
        )


def encode_assignment(assigned: Partitions) -> bytes:
    """Encode a member's assignment, with no bytes for an empty assignment."""
    if not len(assigned):
        return b""
    fields = {"assigned": _to_fields(assigned), "user_data": None}
    return encode_message(ASSIGNMENT, VERSION, fields)


def decode_assignment(data: bytes) -> Partitions:
    """Decode the bytes of a member's assignment."""
    return _from_fields(decode_message(ASSIGNMENT, data)["assigned"]) if data else NO_PARTITIONS


def encode_sticky_user_data(user_data: StickyUserData) -> bytes:
    """Encode user data in the format of the sticky assignors of Kafka 2.3 and later."""
    fields: Fields = {"generation": user_data.generation}
    if user_data.partitions is None:
        return encode_fields(COOPERATIVE_USER_DATA, fields)
    fields["previous_assignment"] = _to_fields(user_data.partitions)
    return encode_fields(STICKY_USER_DATA, fields)


def decode_sticky_user_data(data: bytes) -> StickyUserData:
    """Decode the user data of a sticky assignor."""
    fields = decode_sticky_fields(data)
    previous = fields["previous_assignment"]
    return StickyUserData(
        None if previous is None else _from_fields(previous), fields["generation"]
    )


def _to_fields(partitions: Partitions) -> list[Fields]:
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    return [{"topic": topic, "partitions": numbers[topic]} for topic in numbers]


def _from_fields(topics: Iterable[Fields]) -> Partitions:
    return Partitions.of((each["topic"], n) for each in topics for n in each["partitions"])


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
    """SyncGroup request. Only the leader's request contains assignments."""

    member_id: str
    generation: int
    assignments: Mapping[str, Partitions] | None = None
    instance_id: str | None = None
    protocol: str | None = None


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
