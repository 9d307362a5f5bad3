"""The records of a classic group in ``__consumer_offsets``: metadata and committed offsets.

Formats: GroupMetadataKey 2 and GroupMetadataValue 3, OffsetCommitKey 1 and
OffsetCommitValue 3, which brokers write by default.
"""

from typing import NamedTuple

from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.reference.protocol import primitive_types as wire
from kassay.reference.protocol.consumer_protocol import (
    ConsumerSubscription,
    decode_assignment,
    encode_assignment,
)

OFFSET_COMMIT, GROUP_METADATA = 1, 2
VALUE_VERSION = 3


class MemberMetadata(NamedTuple):
    """A member, as its group's metadata keeps it; times in milliseconds."""

    member_id: str
    instance_id: str | None
    client: str
    host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: ConsumerSubscription
    assignment: Partitions

    def encode(self) -> bytes:
        """Write it as part of the value."""
        return b"".join(
            (
                *map(wire.text, (self.member_id, self.instance_id, self.client, self.host)),
                wire.integer(self.rebalance_timeout, "i"),
                wire.integer(self.session_timeout, "i"),
                wire.blob(self.subscription.encode()),
                wire.blob(encode_assignment(self.assignment)),
            )
        )

    @classmethod
    def decode(cls, reader: wire.Reader) -> "MemberMetadata":
        """Read it from within a value."""
        return cls(
            reader.text(),
            reader.optional_text(),
            reader.text(),
            reader.text(),
            reader.integer("i"),
            reader.integer("i"),
            ConsumerSubscription.decode(reader.blob() or b""),
            decode_assignment(reader.blob() or b""),
        )


class GroupMetadata(NamedTuple):
    """A group at one of the two moments at which it is written: see `ClassicCoordinator`."""

    group: str
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    since: int
    members: tuple[MemberMetadata, ...]

    @property
    def key(self) -> bytes:
        """Key of the record."""
        return wire.integer(GROUP_METADATA, "h") + wire.text(self.group)

    @property
    def value(self) -> bytes:
        """Value of the record."""
        return b"".join(
            (
                wire.integer(VALUE_VERSION, "h"),
                wire.text(self.protocol_type),
                wire.integer(self.generation, "i"),
                wire.text(self.protocol),
                wire.text(self.leader),
                wire.integer(self.since, "q"),
                wire.array(member.encode() for member in self.members),
            )
        )


class OffsetCommit(NamedTuple):
    """One committed offset; ``moment`` in milliseconds."""

    group: str
    partition: TopicPartition
    offset: int
    moment: int

    @property
    def key(self) -> bytes:
        """Key of the record."""
        return b"".join(
            (
                wire.integer(OFFSET_COMMIT, "h"),
                wire.text(self.group),
                wire.text(self.partition.topic),
                wire.integer(self.partition.partition, "i"),
            )
        )

    @property
    def value(self) -> bytes:
        """Value of the record, without leader epoch or metadata."""
        return b"".join(
            (
                wire.integer(VALUE_VERSION, "h"),
                wire.integer(self.offset, "q"),
                wire.integer(-1, "i"),
                wire.text(""),
                wire.integer(self.moment, "q"),
            )
        )


def decode_record(key: bytes, value: bytes) -> GroupMetadata | OffsetCommit:
    """Read a record of a classic group.

    Raises
    ------
    CorruptRecordError
        If it is cut short, or of another type or version.

    Examples
    --------
    >>> commit = OffsetCommit("g", TopicPartition("t", 2), offset=41, moment=7)
    >>> decode_record(commit.key, commit.value) == commit
    True
    """
    keys, values = wire.Reader(key), wire.Reader(value)
    kind, version = keys.integer("h"), values.integer("h")
    if version != VALUE_VERSION or kind not in (OFFSET_COMMIT, GROUP_METADATA):
        raise wire.CorruptRecordError(
            f"a record of type {kind} and version {version} is none of a classic group"
        )
    group = keys.text()
    if kind == OFFSET_COMMIT:
        partition = TopicPartition(keys.text(), keys.integer("i"))
        offset = values.integer("q")
        values.integer("i")
        values.text()
        return OffsetCommit(group, partition, offset, values.integer("q"))
    return GroupMetadata(
        group,
        values.text(),
        values.integer("i"),
        values.optional_text(),
        values.optional_text(),
        values.integer("q"),
        tuple(values.array(lambda: MemberMetadata.decode(values))),
    )
