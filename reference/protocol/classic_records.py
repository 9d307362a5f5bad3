"""Records of a classic group in ``__consumer_offsets``: metadata and committed offsets.

They are written in version 3, as brokers do by default, and decoded from every version.
"""

from typing import NamedTuple

from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.reference.protocol.primitive_types import CorruptRecordError
from kassay.reference.protocol.record_codec import (
    Fields,
    decode_key,
    decode_message,
    encode_key,
    encode_message,
)
from kassay.reference.protocol.record_schemas import GROUP_METADATA, OFFSET_COMMIT, RecordType
from kassay.reference.protocol.subscription_messages import (
    ConsumerSubscription,
    decode_assignment,
    encode_assignment,
)

VALUE_VERSION = 3


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
        return encode_message(GROUP_METADATA, VALUE_VERSION, self._asdict() | {"members": members})


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
        return encode_message(OFFSET_COMMIT, VALUE_VERSION, fields)


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
