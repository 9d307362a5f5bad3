"""Decode records of ``__consumer_offsets``, by the tables of `record_schemas`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from kassay.reference.protocol.primitive_types import CorruptRecordError, Reader
from kassay.reference.protocol.record_schemas import ASSIGNMENT, KEYS, SUBSCRIPTION, Field, Schema

Fields = dict[str, Any]
_Read = Callable[[Reader], Any]
_WIDTHS = {"int8": "b", "int16": "h", "int32": "i", "int64": "q"}
_CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """One record, decoded.

    Parameters
    ----------
    kind
        What its key begins with, see `KEYS`; others are of share and streams groups.
    key
        Fields of the key; empty for a kind that is not known here.
    value
        Fields of the value; None for a tombstone and for a kind that is not known.
    """

    kind: int
    key: Fields
    value: Fields | None

    @property
    def known(self) -> bool:
        """Whether its kind is one that is decoded here."""
        return self.kind in KEYS


def decode(key: bytes | None, value: bytes | None) -> DecodedRecord:
    """Decode a record.

    Subscriptions and assignments within the metadata of a group of consumers are decoded
    too; other applications of the group protocol put there what they like.

    Raises
    ------
    CorruptRecordError
        If it is cut short, longer than its format, of an unknown version or holds what
        its format does not allow. The message says which part and field.

    Examples
    --------
    >>> key = bytes.fromhex("0001 0001 67 0001 74 00000002")
    >>> decode(key, None)
    DecodedRecord(kind=1, key={'group': 'g', 'topic': 't', 'partition': 2}, value=None)
    """
    kind, found = decode_key(key)
    return DecodedRecord(kind, found, decode_value(kind, value))


def decode_key(key: bytes | None) -> tuple[int, Fields]:
    """Decode a key: what it begins with, and its fields, which an unknown kind has none of.

    Raises
    ------
    CorruptRecordError
        See `decode`.
    """
    if key is None:
        raise CorruptRecordError("key: null")
    reader = Reader(key)
    kind: int = _located("key", reader.integer, "h")
    if kind not in KEYS:
        if kind < 0:
            raise CorruptRecordError(f"key: type {kind} does not exist")
        return kind, {}
    fields, _ = KEYS[kind]
    found: Fields = _located("key", _structure(fields, 0, compact=False), reader)
    if reader.rest:
        raise CorruptRecordError(f"key: {reader.rest} bytes too many")
    return kind, found


def decode_value(kind: int, value: bytes | None) -> Fields | None:
    """Decode the value of a record; None for a tombstone and for a kind that is not known.

    Raises
    ------
    CorruptRecordError
        See `decode`.
    """
    if value is None or kind not in KEYS:
        return None
    _, schema = KEYS[kind]
    body: Fields = _located(schema.name, read_versioned, schema, value)
    if body.get("protocol_type") == _CONSUMER:
        for member in body["members"]:
            _open_member(member)
    return body


def read_versioned(schema: Schema, data: bytes) -> Fields:
    """Decode what has its version before it; the version is kept under ``version``.

    Raises
    ------
    CorruptRecordError
        If it does not keep to the format.
    """
    reader = Reader(data)
    version = reader.integer("h")
    if version < 0 or (version > schema.newest and not schema.open_ended):
        raise CorruptRecordError(f"version {version} is not known, the newest is {schema.newest}")
    found: Fields = _plan(schema, min(version, schema.newest))(reader)
    if reader.rest and version <= schema.newest:
        raise CorruptRecordError(f"{reader.rest} bytes too many")
    found["version"] = version
    return found


def _open_member(member: Fields) -> None:
    where = f"member {member['member_id']!r}"
    for name, schema in (("subscription", SUBSCRIPTION), ("assignment", ASSIGNMENT)):
        raw = member[name]
        member[name] = (
            _located(f"{where}: {schema.name}", read_versioned, schema, raw) if raw else None
        )


def _located(where: str, read: Callable[..., Any], *arguments: object) -> Any:
    try:
        return read(*arguments)
    except ValueError as error:  # of which decoding text and records are kinds
        raise CorruptRecordError(f"{where}: {error}") from None


@cache
def _plan(schema: Schema, version: int) -> _Read:
    compact = version >= schema.flexible
    return _structure(schema.fields, version, compact=compact, required=schema.required)


@cache
def _structure(
    fields: tuple[Field, ...], version: int, *, compact: bool, required: int | None = None
) -> _Read:
    """Return what reads a structure of one version; only ``required`` fields must be there."""
    here = [f for f in fields if f.since <= version <= f.until]
    steps = [(f.name, _field(f, version, compact=compact)) for f in here]
    must = [f.name for f in here[:required]]
    missing = {
        f.name: () if isinstance(f.kind, tuple) else f.default
        for f in fields
        if f not in here or f.name not in must
    }

    def read(reader: Reader) -> Fields:
        found: Fields = dict(missing)
        name = ""
        try:
            for name, step in steps:
                if not reader.rest and name in missing:
                    break
                found[name] = step(reader)
            if compact:
                name = "tagged fields"
                reader.tags()
        except ValueError as error:
            raise CorruptRecordError(f"{name}: {error}") from None
        return found

    return read


def _field(field: Field, version: int, *, compact: bool) -> _Read:
    kind = field.kind
    if isinstance(kind, tuple):
        return _array(_structure(kind, version, compact=compact), compact=compact)
    if kind in _WIDTHS:
        return _integer(_WIDTHS[kind])
    text = Reader.optional_text if field.nullable else Reader.text
    reads: dict[str, _Read] = {
        "uuid": Reader.uuid,
        "text": partial(text, compact=compact),
        "texts": _array(partial(Reader.text, compact=compact), compact=compact),
        "int32s": _array(_integer("i"), compact=compact),
        "bytes": _bytes(nullable=field.nullable, compact=compact),
    }
    return reads[kind]


def _integer(width: str) -> _Read:
    return lambda reader: reader.integer(width)


def _bytes(*, nullable: bool, compact: bool) -> _Read:
    def read(reader: Reader) -> bytes | None:
        found = reader.blob(compact=compact)
        if found is None and not nullable:
            raise CorruptRecordError("bytes are null that must not be")
        return found

    return read


def _array(item: _Read, *, compact: bool) -> _Read:
    def read(reader: Reader) -> list[Any]:
        size = reader.unsigned_varint() - 1 if compact else reader.integer("i")
        if not 0 <= size <= reader.rest:
            raise CorruptRecordError(f"an array of {size} in {reader.rest} bytes")
        return [item(reader) for _ in range(size)]

    return read
