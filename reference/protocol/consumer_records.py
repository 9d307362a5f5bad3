"""Records of a KIP-848 group in ``__consumer_offsets``."""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from kassay.reference.protocol.record_codec import Fields, encode_key, encode_message
from kassay.reference.protocol.record_schemas import RECORD_SCHEMAS, RecordType

VALUE_VERSION = 0

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
        return encode_message(RECORD_SCHEMAS[self.kind].value, VALUE_VERSION, self.fields)


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
