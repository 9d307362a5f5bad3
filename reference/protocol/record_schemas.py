"""Schemas of subscriptions, assignments and ``__consumer_offsets`` records.

Sources: the message schemas of Apache Kafka's group coordinator and clients (4.x). A value
starts with its version, a key with its record type. See docs/formats.md.
"""

from dataclasses import dataclass
from enum import IntEnum

NEVER = 1 << 15
"""A version that no schema reaches."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field in the schema of a message or record.

    ``type`` is ``int8`` to ``int64``, ``string``, ``bytes``, ``uuid``, ``[]int32``,
    ``[]string``, or a tuple of fields for an array of structures. ``since`` and ``until`` are
    the first and last version with the field, ``default`` is its value in other versions.
    ``tag`` is the number of a tagged field.
    """

    name: str
    type: "str | tuple[Field, ...]"
    since: int = 0
    until: int = NEVER
    nullable: bool = False
    default: int | None = None
    tag: int | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """Schema of a message or of a record value.

    ``newest`` is the newest known version; with ``open_ended``, newer versions are decoded as
    this version and their remaining bytes are ignored. With ``ignores_rest``, bytes after the last
    field are ignored. ``flexible`` is the first version with compact lengths and tagged fields.
    ``required`` is the number of fields that must be present, None for all: some clients write
    subscriptions of version 1 that end early.
    """

    name: str
    newest: int
    fields: tuple[Field, ...]
    flexible: int = NEVER
    open_ended: bool = False
    ignores_rest: bool = False
    required: int | None = None


class RecordType(IntEnum):
    """Record types of classic and KIP-848 groups: the first two bytes of a key.

    Share and streams groups have further types, which are not decoded.
    """

    OFFSET_COMMIT_V0 = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """Schemas of the key and the value of one record type."""

    key: tuple[Field, ...]
    value: Schema


_PARTITIONS = (Field("topic", "string"), Field("partitions", "[]int32"))
_PARTITIONS_BY_ID = (Field("topic_id", "uuid"), Field("partitions", "[]int32"))

OFFSET_COMMIT = Schema(
    "offset commit",
    4,
    (
        Field("offset", "int64"),
        Field("leader_epoch", "int32", since=3, default=-1),
        Field("metadata", "string"),
        Field("commit_timestamp", "int64"),
        Field("expire_timestamp", "int64", since=1, until=1, default=-1),
    ),
    flexible=4,
)

GROUP_METADATA = Schema(
    "group metadata",
    4,
    (
        Field("protocol_type", "string"),
        Field("generation", "int32"),
        Field("protocol", "string", nullable=True),
        Field("leader", "string", nullable=True),
        Field("timestamp", "int64", since=2, default=-1),
        Field(
            "members",
            (
                Field("member_id", "string"),
                Field("instance_id", "string", since=3, nullable=True),
                Field("client_id", "string"),
                Field("client_host", "string"),
                Field("rebalance_timeout", "int32", since=1, default=-1),
                Field("session_timeout", "int32"),
                Field("subscription", "bytes"),
                Field("assignment", "bytes"),
            ),
        ),
    ),
    flexible=4,
)

STICKY_USER_DATA = (
    Field("previous_assignment", _PARTITIONS),
    Field("generation", "int32", default=-1),
)
"""User data of ``StickyAssignor``, version 1, without a version before it.

Version 0, of releases before 2.3 and of some other clients, ends before the generation.
"""

COOPERATIVE_USER_DATA = (Field("generation", "int32"),)
"""User data of ``CooperativeStickyAssignor``, without a version before it."""

SUBSCRIPTION = Schema(
    "subscription",
    3,
    (
        Field("topics", "[]string"),
        Field("user_data", "bytes", nullable=True),
        Field("owned", _PARTITIONS, since=1),
        Field("generation", "int32", since=2, default=-1),
        Field("rack", "string", since=3, nullable=True),
    ),
    open_ended=True,
    required=2,
)

ASSIGNMENT = Schema(
    "assignment",
    3,
    (Field("assigned", _PARTITIONS), Field("user_data", "bytes", nullable=True)),
    open_ended=True,
)


def _schema_0(name: str, *fields: Field) -> Schema:
    return Schema(name, 0, fields, flexible=0)


GROUP_EPOCH = _schema_0(
    "group epoch", Field("epoch", "int32"), Field("metadata_hash", "int64", default=0, tag=0)
)

PARTITION_METADATA = _schema_0(
    "partition metadata",
    Field(
        "topics",
        (
            Field("topic_id", "uuid"),
            Field("topic", "string"),
            Field("partitions", "int32"),
            Field("racks", (Field("partition", "int32"), Field("racks", "[]string"))),
        ),
    ),
)

MEMBER_METADATA = _schema_0(
    "member metadata",
    Field("instance_id", "string", nullable=True),
    Field("rack", "string", nullable=True),
    Field("client_id", "string"),
    Field("client_host", "string"),
    Field("topics", "[]string"),
    Field("regex", "string", nullable=True),
    Field("rebalance_timeout", "int32"),
    Field("assignor", "string", nullable=True),
)

TARGET_EPOCH = _schema_0(
    "target assignment epoch",
    Field("epoch", "int32"),
    Field("timestamp", "int64", default=0, tag=0),
)

TARGET = _schema_0("target assignment", Field("assigned", _PARTITIONS_BY_ID))

CURRENT = _schema_0(
    "current assignment",
    Field("epoch", "int32"),
    Field("previous_epoch", "int32"),
    Field("state", "int8"),
    Field("assigned", _PARTITIONS_BY_ID),
    Field("revoking", _PARTITIONS_BY_ID),
)

REGULAR_EXPRESSION = _schema_0(
    "regular expression",
    Field("topics", "[]string"),
    Field("revision", "int64"),
    Field("timestamp", "int64"),
)

_GROUP_KEY = (Field("group", "string"),)
_OFFSET_KEY = (*_GROUP_KEY, Field("topic", "string"), Field("partition", "int32"))
_MEMBER_KEY = (*_GROUP_KEY, Field("member_id", "string"))

RECORD_SCHEMAS: dict[int, RecordSchema] = {
    RecordType.OFFSET_COMMIT_V0: RecordSchema(_OFFSET_KEY, OFFSET_COMMIT),
    RecordType.OFFSET_COMMIT: RecordSchema(_OFFSET_KEY, OFFSET_COMMIT),
    RecordType.GROUP_METADATA: RecordSchema(_GROUP_KEY, GROUP_METADATA),
    RecordType.CONSUMER_GROUP_METADATA: RecordSchema(_GROUP_KEY, GROUP_EPOCH),
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: RecordSchema(_GROUP_KEY, PARTITION_METADATA),
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: RecordSchema(_MEMBER_KEY, MEMBER_METADATA),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: RecordSchema(_GROUP_KEY, TARGET_EPOCH),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: RecordSchema(_MEMBER_KEY, TARGET),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: RecordSchema(_MEMBER_KEY, CURRENT),
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: RecordSchema(
        (*_GROUP_KEY, Field("regex", "string")), REGULAR_EXPRESSION
    ),
}

OFFSET_COMMIT_KINDS = frozenset({RecordType.OFFSET_COMMIT_V0, RecordType.OFFSET_COMMIT})
