"""Encode messages and records of ``__consumer_offsets``, for generated records.

kassay itself only decodes them. Each field of a schema is encoded in its plain or compact form.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from kassay.reference.model.topic_partitions import Partitions
from kassay.reference.protocol.group_messages import (
    ConsumerSubscription,
    GroupMetadata,
    OffsetCommit,
    StickyUserData,
)
from kassay.reference.protocol.message_decoder import (
    ASSIGNMENT,
    RECORD_SCHEMAS,
    SCHEMAS,
    SUBSCRIPTION,
    Field,
    RecordType,
    Schema,
)

VERSION = 3
"""Version of subscriptions, assignments and records of classic groups, as brokers write them."""
_WIDTHS = {"int8": "b", "int16": "h", "int32": "i", "int64": "q"}

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
    fields: dict[str, Any] | None


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
    fields = {"assigned": _by_topic_id(partitions)}
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
        "assigned": _by_topic_id(assigned),
        "revoking": _by_topic_id(revoking),
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


def _by_topic_id(partitions: PartitionsByTopicId) -> list[dict[str, Any]]:
    return [{"topic_id": topic, "partitions": numbers} for topic, numbers in partitions]


Record = GroupMetadata | OffsetCommit | ConsumerRecord


def encode_record(record: Record) -> tuple[bytes, bytes | None]:
    """Return the key and the value of a record; None for a tombstone."""
    if isinstance(record, ConsumerRecord):
        key = encode_key(record.kind, {"group": record.group, "member_id": record.member_id})
        schema = RECORD_SCHEMAS[record.kind].value
        return key, None if record.fields is None else encode_message(schema, 0, record.fields)
    if isinstance(record, OffsetCommit):
        kind, fields = RecordType.OFFSET_COMMIT, {"offset": record.offset, "leader_epoch": -1}
        fields |= {"metadata": "", "commit_timestamp": record.timestamp}
        key_fields = {"group": record.group, **record.partition._asdict()}
    else:
        kind, key_fields = RecordType.GROUP_METADATA, {"group": record.group}
        members = [
            request._asdict()
            | {
                "client_id": request.client,
                "client_host": f"/{request.client}",
                "subscription": encode_subscription(request.offers[0].metadata),
                "assignment": encode_assignment(assignment),
            }
            for request, assignment in record.members
        ]
        fields = record._asdict() | {"members": members}
    return encode_key(kind, key_fields), encode_message(RECORD_SCHEMAS[kind].value, VERSION, fields)


def encode_subscription(subscription: ConsumerSubscription) -> bytes:
    """Encode the subscription of a consumer."""
    data = subscription.user_data
    fields = subscription._asdict() | {
        "owned": _topics(subscription.owned),
        "user_data": None if data is None else encode_sticky_user_data(data),
    }
    return encode_message(SUBSCRIPTION, VERSION, fields)


def encode_assignment(assigned: Partitions) -> bytes:
    """Encode the assignment of a consumer, with no bytes for an empty assignment."""
    fields = {"assigned": _topics(assigned), "user_data": None}
    return encode_message(ASSIGNMENT, VERSION, fields) if len(assigned) else b""


def encode_sticky_user_data(data: StickyUserData) -> bytes:
    """Encode user data in the format of the sticky assignors of Kafka 2.3 and later."""
    if data.partitions is None:
        return encode_structure(
            SCHEMAS["cooperative user data"].fields, {"generation": data.generation}
        )
    fields = {"previous_assignment": _topics(data.partitions), "generation": data.generation}
    return encode_structure(SCHEMAS["sticky user data"].fields, fields)


def _topics(partitions: Partitions) -> list[dict[str, Any]]:
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    return [{"topic": topic, "partitions": numbers[topic]} for topic in numbers]


def encode_key(kind: int, fields: Mapping[str, Any]) -> bytes:
    """Encode the key of a record."""
    return integer(kind, "h") + encode_structure(RECORD_SCHEMAS[kind].key, fields)


def encode_message(schema: Schema, version: int, fields: Mapping[str, Any]) -> bytes:
    """Encode a message with its version. Tagged fields may be absent."""
    compact = version >= schema.flexible
    return integer(version, "h") + encode_structure(
        schema.fields, fields, version=version, compact=compact
    )


def encode_structure(
    fields: tuple[Field, ...], values: Mapping[str, Any], *, version: int = 0, compact: bool = False
) -> bytes:
    """Encode the fields of a structure."""
    present = [f for f in fields if f.tag is None and f.since <= version <= f.until]
    data = b"".join(_field(f, values[f.name], version, compact=compact) for f in present)
    if not compact:
        return data
    tagged = [f for f in fields if f.tag is not None and f.name in values]
    return data + tags((f.tag, _field(f, values[f.name], version, compact=True)) for f in tagged)


def _field(field: Field, value: Any, version: int, *, compact: bool) -> bytes:
    if isinstance(field.type, tuple):
        inner = field.type
        items = (encode_structure(inner, one, version=version, compact=compact) for one in value)
        return array(items, compact=compact)
    if field.type.startswith("[]"):
        item = Field(field.name, field.type.removeprefix("[]"))
        return array(
            (_field(item, one, version, compact=compact) for one in value), compact=compact
        )
    if field.type in _WIDTHS:
        return integer(value, _WIDTHS[field.type])
    if field.type == "uuid":
        return value.bytes
    return (text if field.type == "string" else blob)(value, compact=compact)


def integer(value: int, width: str) -> bytes:
    """Encode a big-endian integer; ``width`` is a format character of `struct`: b, h, i or q."""
    return struct.pack(f">{width}", value)


def text(value: str | None, *, compact: bool = False) -> bytes:
    """Encode a string or null."""
    raw = None if value is None else value.encode("utf-8", "surrogatepass")
    return _length(raw, "h", compact=compact) + (raw or b"")


def blob(value: bytes | None, *, compact: bool = False) -> bytes:
    """Encode bytes or null."""
    return _length(value, "i", compact=compact) + (value or b"")


def array(items: Iterable[bytes], *, compact: bool = False) -> bytes:
    """Encode an array of items that are already encoded."""
    parts = list(items)
    return _length(parts, "i", compact=compact) + b"".join(parts)


def tags(fields: Iterable[tuple[int, bytes]] = ()) -> bytes:
    """Encode (tag, value) pairs, already sorted by tag, as a section of tagged fields."""
    parts = list(fields)
    body = (_varint(tag) + _varint(len(value)) + value for tag, value in parts)
    return _varint(len(parts)) + b"".join(body)


def _length(value: bytes | list[bytes] | None, width: str, *, compact: bool) -> bytes:
    size = -1 if value is None else len(value)
    return _varint(size + 1) if compact else integer(size, width)


def _varint(value: int) -> bytes:
    """Encode a non-negative integer in groups of seven bits, least significant first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append((value & 0x7F) | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
