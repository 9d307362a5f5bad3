"""Schemas of subscriptions, assignments and ``__consumer_offsets`` records.

``schemas.json`` contains their fields. Sources: the message schemas of Apache Kafka's group
coordinator and clients (4.x), and of Kafka Streams 4.3.1. A value starts with its version, a key
with its record type. See docs/formats.md.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from importlib.resources import files
from typing import Any

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
    """Types of records of classic and KIP-848 groups: the first two bytes of a key."""

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
    """Build fields from rows of a name, a type and options."""
    return tuple(
        Field(name, _type(kind), **(options[0] if options else {})) for name, kind, *options in rows
    )


def _type(kind: Any) -> str | tuple[Field, ...]:
    """Return a primitive type, or the fields of a structure: rows, or a name."""
    rows = _TABLES["structures"].get(kind) if isinstance(kind, str) else kind
    return kind if rows is None else _fields(rows)


_TABLES = json.loads(files("kassay.reference.protocol").joinpath("schemas.json").read_bytes())
SCHEMAS = {
    name: Schema(name, **{**table, "fields": _fields(table["fields"])})
    for name, table in _TABLES["schemas"].items()
}
"""Schemas of messages and values by name. User data have no version before them.

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
