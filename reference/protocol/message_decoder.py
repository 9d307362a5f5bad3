"""Schemas and decoders of messages, and of records of ``__consumer_offsets``.

Primitive types have a plain and a compact form. ``schemas.json`` contains the fields of messages
and records. Sources: the message schemas of Apache Kafka's group coordinator and clients (4.x), and
``SubscriptionInfoData.json`` and the class ``AssignmentInfo`` of Kafka Streams 4.3.1. A value
starts with its version, a key with its record type, user data of Streams with an int32. User data
of Streams before version 7 (releases before 2.6) are not read. See docs/formats.md.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, partial
from importlib.resources import files
from typing import Any
from uuid import UUID

from kassay.reference.model.errors import InputError
from kassay.reference.protocol.group_messages import CONSUMERS

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
    """Type of a record in ``__consumer_offsets``: the first two bytes of its key."""

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


def _fields(rows: Iterable[Any]) -> tuple[Field, ...]:
    return tuple(
        Field(name, _type(kind), **(options[0] if options else {})) for name, kind, *options in rows
    )


def _type(kind: Any) -> str | tuple[Field, ...]:
    rows = _TABLES["structures"].get(kind) if isinstance(kind, str) else kind
    return kind if rows is None else _fields(rows)


_TABLES = json.loads(files("kassay.reference.protocol").joinpath("schemas.json").read_bytes())
SCHEMAS = {
    name: Schema(name, **{**table, "fields": _fields(table["fields"])})
    for name, table in _TABLES["schemas"].items()
}
"""Schemas of messages and values by name. User data do not start with a version.

User data of ``StickyAssignor`` end before the generation in version 0, of releases before 2.3 and
of some other clients.
"""
ASSIGNMENT, SUBSCRIPTION = SCHEMAS["assignment"], SCHEMAS["subscription"]

RECORD_SCHEMAS = {
    int(RecordType[kind]): RecordSchema(_fields([("group", "string"), *key]), SCHEMAS[value])
    for kind, (value, *key) in _TABLES["records"].items()
}
"""Schemas by record type. Each key starts with the id of the group."""

OFFSET_COMMIT_KINDS = frozenset({RecordType.OFFSET_COMMIT_V0, RecordType.OFFSET_COMMIT})


class CorruptRecordError(InputError):
    """Error: the bytes of a record or message end too early or violate the schema."""


class Reader:
    """Reader that decodes values of primitive types from bytes, one after another."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def remaining(self) -> int:
        """Return the number of unread bytes."""
        return len(self._data) - self._position

    def expect_end(self) -> None:
        """Raise CorruptRecordError if there are unread bytes."""
        if self.remaining:
            raise CorruptRecordError(
                f"expected no bytes after the last field, got {self.remaining}"
            )

    def take(self, size: int) -> bytes:
        """Read ``size`` raw bytes."""
        start = self._position
        end = start + size
        if not start <= end <= len(self._data):
            raise CorruptRecordError(f"expected {size} bytes, got only {self.remaining}")
        self._position = end
        return self._data[start:end]

    def integer(self, size: int) -> int:
        """Read a signed big-endian integer of ``size`` bytes."""
        return int.from_bytes(self.take(size), signed=True)

    def unsigned_varint(self) -> int:
        """Read an unsigned varint of at most 32 bits."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CorruptRecordError("a variable-length integer must have at most 5 bytes, got more")

    def length(self, *, compact: bool, size: int = 4) -> int:
        """Read the length of a string, of bytes or of an array. The length -1 means null."""
        return self.unsigned_varint() - 1 if compact else self.integer(size)

    def text(self, *, compact: bool = False) -> str | None:
        """Read a string or null."""
        size = self.length(compact=compact, size=2)
        return None if size < 0 else self.take(size).decode("utf-8", "surrogatepass")

    def blob(self, *, compact: bool = False) -> bytes | None:
        """Read bytes or null."""
        size = self.length(compact=compact)
        return None if size < 0 else self.take(size)

    def uuid(self) -> UUID:
        """Read a UUID."""
        return UUID(bytes=self.take(16))

    def tags(self) -> dict[int, bytes]:
        """Read a section of tagged fields."""
        fields = {}
        for _ in range(self.unsigned_varint()):
            tag = self.unsigned_varint()
            fields[tag] = self.take(self.unsigned_varint())
        return fields


Fields = dict[str, Any]
_INTEGER_SIZES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8}  # bytes
_COOPERATIVE_USER_DATA_SIZE = 4  # bytes


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """A decoded record of ``__consumer_offsets``.

    ``kind`` is the record type, see `RecordType`. For other types, ``key`` is empty and
    ``value`` None. ``value`` is None for a tombstone, too. ``timestamp`` is in milliseconds.
    """

    kind: int
    key: Fields
    value: Fields | None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None


def decode(key: bytes | None, value: bytes | None) -> DecodedRecord:
    """Decode a record of ``__consumer_offsets`` from its key and value.

    In groups of consumers, the members' subscriptions and assignments are decoded too; other
    applications store their own bytes there. CorruptRecordError names the part and the field.
    """
    if key is None:
        raise CorruptRecordError("the key of a record must not be null")
    reader = Reader(key)
    kind: int = _locate("key", reader.integer, 2)
    if kind < 0:
        raise CorruptRecordError(f"key: the record type must be at least 0, got {kind}")
    if kind not in RECORD_SCHEMAS:
        return DecodedRecord(kind, {}, None)
    schemas = RECORD_SCHEMAS[kind]
    fields = _locate("key", _structure(schemas.key, 0, compact=False), reader)
    _locate("key", reader.expect_end)
    if value is None:
        return DecodedRecord(kind, fields, None)
    body: Fields = _locate(schemas.value.name, decode_message, schemas.value, value)
    if body.get("protocol_type") == CONSUMERS:
        for member in body["members"]:
            decode_consumer(member, protocol=body["protocol"])
    return DecodedRecord(kind, fields, body)


def decode_consumer(member: Fields, *, protocol: str | None) -> None:
    """Replace the bytes in a member by its decoded subscription, assignment and user data."""
    where = f"member {member['member_id']!r}"
    for name, schema in (("subscription", SUBSCRIPTION), ("assignment", ASSIGNMENT)):
        raw = member[name]
        if isinstance(raw, bytes):
            member[name] = (
                _locate(f"{where}: {schema.name}", decode_message, schema, raw) if raw else None
            )
    subscription = member["subscription"]
    if subscription is not None:
        subscription["user_data"] = _user_data(subscription["user_data"], protocol)


def _user_data(data: bytes | None, protocol: str | None) -> Fields | None:
    """Decode the user data of a sticky assignor. Return None for other data."""
    if not data or "sticky" not in (protocol or ""):
        return None
    try:
        if len(data) == _COOPERATIVE_USER_DATA_SIZE:
            fields = decode_versioned(SCHEMAS["cooperative user data"], 0, Reader(data))
            return fields | {"previous_assignment": None}
        reader = Reader(data[2:] if has_version_prefix(data) else data)
        return decode_versioned(SCHEMAS["sticky user data"], 0, reader)
    except ValueError:
        return None  # Other assignors may have such a name.


def has_version_prefix(data: bytes) -> bool:
    """Return whether sticky user data start with a version number, as in kafka-python 3.

    Without it, they start with a number of topics, which then would be at least 65,536.
    """
    return data.startswith(b"\x00\x01")


def _locate(where: str, function: Callable[..., Any], *arguments: object) -> Any:
    try:
        return function(*arguments)
    except ValueError as error:  # includes UnicodeDecodeError and CorruptRecordError
        raise CorruptRecordError(f"{where}: {error}") from None


def decode_message(schema: Schema, data: bytes) -> Fields:
    """Decode a message with its version prefix. The field ``version`` contains the version."""
    reader = Reader(data)
    version = reader.integer(2)
    if version < 0 or (version > schema.newest and not schema.open_ended):
        raise CorruptRecordError(f"version must be from 0 to {schema.newest}, got {version}")
    fields = decode_versioned(schema, version, reader)
    fields["version"] = version
    return fields


def decode_versioned(schema: Schema, version: int, reader: Reader) -> Fields:
    """Decode the fields of a message after its version prefix."""
    fields: Fields = _versioned(schema, min(version, schema.newest))(reader)
    if version <= schema.newest and not schema.ignores_rest:
        reader.expect_end()
    return fields


Decode = Callable[[Reader], Any]


@cache
def _versioned(schema: Schema, version: int) -> Decode:
    compact = version >= schema.flexible
    return _structure(schema.fields, version, compact=compact, required=schema.required)


@cache
def _structure(
    fields: tuple[Field, ...], version: int, *, compact: bool, required: int | None = None
) -> Decode:
    """Return the decoder of a structure whose first ``required`` fields must be present."""
    present = [f for f in fields if f.tag is None and f.since <= version <= f.until]
    decoders = [(f.name, _field(f, version, compact=compact)) for f in present]
    tagged = {
        f.tag: (f.name, _field(f, version, compact=compact)) for f in fields if f.tag is not None
    }
    mandatory = [f.name for f in present[:required]]
    defaults = {
        f.name: () if isinstance(f.type, tuple) else f.default
        for f in fields
        if f.name not in mandatory
    }

    def decode(reader: Reader) -> Fields:
        values: Fields = dict(defaults)
        name = ""
        try:
            for name, decoder in decoders:
                if not reader.remaining and name in defaults:
                    break
                values[name] = decoder(reader)
            if compact:
                name = "tagged fields"
                for tag, data in reader.tags().items():
                    if tag in tagged:
                        name, decoder = tagged[tag]
                        values[name] = decoder(Reader(data))
        except ValueError as error:
            raise CorruptRecordError(f"{name}: {error}") from None
        return values

    return decode


def _field(field: Field, version: int, *, compact: bool) -> Decode:
    if isinstance(field.type, tuple):
        return _array(_structure(field.type, version, compact=compact), compact=compact)
    if field.type.startswith("[]"):
        item = Field(field.name, field.type.removeprefix("[]"))
        return _array(_field(item, version, compact=compact), compact=compact)
    if field.type == "uuid":
        return Reader.uuid
    if field.type in _INTEGER_SIZES:
        return partial(Reader.integer, size=_INTEGER_SIZES[field.type])
    decode = partial(Reader.text if field.type == "string" else Reader.blob, compact=compact)
    return decode if field.nullable else _not_null(decode, field.type)


def _not_null(decoder: Decode, type_name: str) -> Decode:
    def decode(reader: Reader) -> Any:
        value = decoder(reader)
        if value is None:
            raise CorruptRecordError(f"{type_name} must not be null")
        return value

    return decode


def _array(item: Decode, *, compact: bool) -> Decode:
    def decode(reader: Reader) -> list[Any]:
        size = reader.length(compact=compact)
        if not 0 <= size <= reader.remaining:
            raise CorruptRecordError(
                f"the array length must be from 0 to {reader.remaining}, "
                f"the number of remaining bytes, got {size}"
            )
        return [item(reader) for _ in range(size)]

    return decode


RUNNING = -2
"""Offset and lag of an active task that processes records, upstream ``Task.LATEST_OFFSET``."""
_OLDEST = 7
_ONE_PER_TASK = 10  # first version with an entry per task; older ones have an entry per subtopology


@dataclass(frozen=True, slots=True)
class ThreadSubscription:
    """Subscription of a thread: its process, tags, and offset per task with local state."""

    process: UUID
    offsets: dict[str, int]
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class ThreadAssignment:
    """Tasks of a thread, such as ``0_1``."""

    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()


def decode_thread_subscription(data: bytes) -> ThreadSubscription:
    """Decode the subscription of a Streams thread."""
    fields = _decode("subscription of a Streams thread", data)
    offsets: dict[str, int] = {}
    for one in fields["offsets"]:
        for entry in (one,) if fields["version"] >= _ONE_PER_TASK else one["partitions"]:
            offsets[f"{one['subtopology']}_{entry['partition']}"] = entry["offset"]
    try:
        tags = {tag["key"].decode(): tag["value"].decode() for tag in fields["tags"]}
    except UnicodeDecodeError as error:
        raise CorruptRecordError(f"tags: {error}") from None
    return ThreadSubscription(fields["process"], offsets, tags)


def decode_thread_assignment(data: bytes) -> ThreadAssignment:
    """Decode the user data of a Streams thread's assignment.

    Raise CorruptRecordError if the data are invalid or contain named topologies.
    """
    fields = _decode("assignment of a Streams thread", data)
    if any(task["topology"] for task in (*fields["active"], *fields["standby"])):
        raise CorruptRecordError(
            "assignment of a Streams thread: named topologies are not supported"
        )
    active, standby = (
        tuple(f"{task['subtopology']}_{task['partition']}" for task in fields[key])
        for key in ("active", "standby")
    )
    return ThreadAssignment(active, standby)


def _decode(name: str, data: bytes) -> Fields:
    schema, reader = SCHEMAS[name], Reader(data)
    version = reader.integer(4)
    if not _OLDEST <= version <= schema.newest:
        raise CorruptRecordError(
            f"{name}: version must be from {_OLDEST} to {schema.newest}, got {version}"
        )
    return {**decode_versioned(schema, version, reader), "version": version}
