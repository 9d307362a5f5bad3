"""The formats of ``__consumer_offsets`` as tables: what stands where, from which version on.

Values are written with a version before them, keys with the type of the record in its
place. Sources: the published message schemas of Apache Kafka's group coordinator and of
the consumer protocol; see docs/formats.md.
"""

from dataclasses import dataclass

NEVER = 1 << 15
"""A version that no format reaches."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a format.

    Parameters
    ----------
    name
        Key in what is decoded.
    kind
        ``int8`` to ``int64``, ``text``, ``bytes``, ``uuid``, ``int32s`` or ``texts`` for
        arrays of these, or a tuple of fields for an array of structures.
    since, until
        First and last version that has it.
    nullable
        Whether it may be null.
    default
        What it is in versions that do not have it.
    """

    name: str
    kind: "str | tuple[Field, ...]"
    since: int = 0
    until: int = NEVER
    nullable: bool = False
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """One format.

    Parameters
    ----------
    name
        What it describes, for messages.
    newest
        Its newest version known here.
    fields
        What it is made of, in order.
    flexible
        First version with compact lengths and tagged fields.
    open_ended
        Whether newer versions are read as the newest one, and what follows is left unread.
    required
        How many fields must be there; some clients write a subscription of version 1 and
        end it before the owned partitions. None for all.
    """

    name: str
    newest: int
    fields: tuple[Field, ...]
    flexible: int = NEVER
    open_ended: bool = False
    required: int | None = None


_PARTITIONS = (Field("topic", "text"), Field("partitions", "int32s"))
_PARTITIONS_BY_ID = (Field("topic_id", "uuid"), Field("partitions", "int32s"))

OFFSET_COMMIT = Schema(
    "offset commit",
    4,
    (
        Field("offset", "int64"),
        Field("leader_epoch", "int32", since=3, default=-1),
        Field("metadata", "text"),
        Field("commit_timestamp", "int64"),
        Field("expire_timestamp", "int64", since=1, until=1, default=-1),
    ),
    flexible=4,
)

GROUP_METADATA = Schema(
    "group metadata",
    4,
    (
        Field("protocol_type", "text"),
        Field("generation", "int32"),
        Field("protocol", "text", nullable=True),
        Field("leader", "text", nullable=True),
        Field("timestamp", "int64", since=2, default=-1),
        Field(
            "members",
            (
                Field("member_id", "text"),
                Field("instance_id", "text", since=3, nullable=True),
                Field("client_id", "text"),
                Field("client_host", "text"),
                Field("rebalance_timeout", "int32", since=1, default=-1),
                Field("session_timeout", "int32"),
                Field("subscription", "bytes"),
                Field("assignment", "bytes"),
            ),
        ),
    ),
    flexible=4,
)

SUBSCRIPTION = Schema(
    "subscription",
    3,
    (
        Field("topics", "texts"),
        Field("user_data", "bytes", nullable=True),
        Field("owned", _PARTITIONS, since=1),
        Field("generation", "int32", since=2, default=-1),
        Field("rack", "text", since=3, nullable=True),
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

GROUP_EPOCH = Schema("group epoch", 0, (Field("epoch", "int32"),), flexible=0)

PARTITION_METADATA = Schema(
    "partition metadata",
    0,
    (
        Field(
            "topics",
            (
                Field("topic_id", "uuid"),
                Field("topic", "text"),
                Field("partitions", "int32"),
                Field("racks", (Field("partition", "int32"), Field("racks", "texts"))),
            ),
        ),
    ),
    flexible=0,
)

MEMBER_METADATA = Schema(
    "member metadata",
    0,
    (
        Field("instance_id", "text", nullable=True),
        Field("rack", "text", nullable=True),
        Field("client_id", "text"),
        Field("client_host", "text"),
        Field("topics", "texts"),
        Field("regex", "text", nullable=True),
        Field("rebalance_timeout", "int32"),
        Field("assignor", "text", nullable=True),
    ),
    flexible=0,
)

TARGET_EPOCH = Schema("target assignment epoch", 0, (Field("epoch", "int32"),), flexible=0)

TARGET = Schema("target assignment", 0, (Field("assigned", _PARTITIONS_BY_ID),), flexible=0)

CURRENT = Schema(
    "current assignment",
    0,
    (
        Field("epoch", "int32"),
        Field("previous_epoch", "int32"),
        Field("state", "int8"),
        Field("assigned", _PARTITIONS_BY_ID),
        Field("revoking", _PARTITIONS_BY_ID),
    ),
    flexible=0,
)

REGULAR_EXPRESSION = Schema(
    "regular expression",
    0,
    (Field("topics", "texts"), Field("revision", "int64"), Field("timestamp", "int64")),
    flexible=0,
)

_GROUP_KEY = (Field("group", "text"),)
_OFFSET_KEY = (*_GROUP_KEY, Field("topic", "text"), Field("partition", "int32"))
_MEMBER_KEY = (*_GROUP_KEY, Field("member_id", "text"))

KEYS: dict[int, tuple[tuple[Field, ...], Schema]] = {
    0: (_OFFSET_KEY, OFFSET_COMMIT),
    1: (_OFFSET_KEY, OFFSET_COMMIT),
    2: (_GROUP_KEY, GROUP_METADATA),
    3: (_GROUP_KEY, GROUP_EPOCH),
    4: (_GROUP_KEY, PARTITION_METADATA),
    5: (_MEMBER_KEY, MEMBER_METADATA),
    6: (_GROUP_KEY, TARGET_EPOCH),
    7: (_MEMBER_KEY, TARGET),
    8: (_MEMBER_KEY, CURRENT),
    16: ((*_GROUP_KEY, Field("regex", "text")), REGULAR_EXPRESSION),
}
"""By the type that a key begins with: its fields, and the format of its value."""

OFFSET_COMMIT_KINDS = frozenset(
    kind for kind, (_, schema) in KEYS.items() if schema is OFFSET_COMMIT
)
