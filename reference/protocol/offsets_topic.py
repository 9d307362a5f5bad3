"""Records of groups in ``__consumer_offsets``.

Records of classic groups are metadata and committed offsets. They are written in version 3, as
brokers do by default, and decoded from every version.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.reference.protocol.member_messages import (
    ConsumerSubscription,
    decode_assignment,
    encode_assignment,
)
from kassay.reference.protocol.record_codec import (
    CorruptRecordError,
    Fields,
    decode_key,
    decode_message,
    encode_key,
    encode_message,
)
from kassay.reference.protocol.record_schemas import (
    GROUP_METADATA,
    OFFSET_COMMIT,
    RECORD_SCHEMAS,
    RecordType,
)

CLASSIC_VALUE_VERSION = 3


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

    def to_fields(self) -> Fields:
        """Convert the member to the fields of the record schema."""
        return self._asdict() | {
            "subscription": self.subscription.encode(),
            "assignment": encode_assignment(self.assignment),
        }

    @classmethod
    def from_fields(cls, fields: Fields) -> "MemberMetadata":
        """Convert the fields of the record schema to a member."""
        decoded = {
            "subscription": ConsumerSubscription.decode(fields["subscription"]),
            "assignment": decode_assignment(fields["assignment"]),
        }
        return cls(**fields | decoded)


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

    @property
    def key(self) -> bytes:
        """Return the encoded key of the record."""
        return encode_key(RecordType.GROUP_METADATA, {"group": self.group})

    @property
    def value(self) -> bytes:
        """Return the encoded value of the record."""
        members = [member.to_fields() for member in self.members]
        return encode_message(
            GROUP_METADATA, CLASSIC_VALUE_VERSION, self._asdict() | {"members": members}
        )


class OffsetCommit(NamedTuple):
    """Record of a committed offset. ``timestamp`` is in milliseconds."""

    group: str
    partition: TopicPartition
    offset: int
    timestamp: int

    @property
    def key(self) -> bytes:
        """Return the encoded key of the record."""
        return encode_key(
            RecordType.OFFSET_COMMIT, {"group": self.group, **self.partition._asdict()}
        )

    @property
    def value(self) -> bytes:
        """Return the encoded value of the record, without leader epoch or metadata."""
        fields = {
            "offset": self.offset,
            "leader_epoch": -1,
            "metadata": "",
            "commit_timestamp": self.timestamp,
        }
        return encode_message(OFFSET_COMMIT, CLASSIC_VALUE_VERSION, fields)


def decode_record(key: bytes, value: bytes) -> GroupMetadata | OffsetCommit:
    """Decode a record of a classic group. Raise CorruptRecordError for other record types."""
    kind, names = decode_key(key)
    if kind == RecordType.OFFSET_COMMIT:
        fields = decode_message(OFFSET_COMMIT, value)
        partition = TopicPartition(names["topic"], names["partition"])
        return OffsetCommit(names["group"], partition, fields["offset"], fields["commit_timestamp"])
    if kind != RecordType.GROUP_METADATA:
        raise CorruptRecordError(f"record type {kind} does not belong to a classic group")
    fields = decode_message(GROUP_METADATA, value)
    del fields["version"]
    members = tuple(map(MemberMetadata.from_fields, fields["members"]))
    return GroupMetadata(**names | fields | {"members": members})


CONSUMER_VALUE_VERSION = 0

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

    @property
    def key(self) -> bytes:
        """Return the encoded key of the record."""
        return encode_key(self.kind, {"group": self.group, "member_id": self.member_id})

    @property
    def value(self) -> bytes | None:
        """Return the encoded value of the record, or None for a tombstone."""
        if self.fields is None:
            return None
        return encode_message(RECORD_SCHEMAS[self.kind].value, CONSUMER_VALUE_VERSION, self.fields)


class DeferredRecord:
    """A record that is only built if it is read. Most records are overwritten before a read.

    The objects that ``build`` uses must not change.
    """

    __slots__ = ("_build",)

    def __init__(self, build: Callable[[], ConsumerRecord]) -> None:
        self._build = build

    @property
    def key(self) -> bytes:
        """Return the encoded key of the record."""
        return self._build().key

    @property
    def value(self) -> bytes | None:
        """Return the encoded value of the record, or None for a tombstone."""
        return self._build().value


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
        "assignor": None,
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
