"""Encoding and decoding of Kafka's primitive types, in the plain and the compact form."""

import struct
from collections.abc import Iterable
from uuid import UUID

from kassay.reference.model.errors import InputError

_INTEGERS = {width: struct.Struct(f">{width}") for width in "bhiq"}


class CorruptRecordError(InputError):
    """Error: the bytes of a record or message end too early or violate the schema."""


def unsigned_varint(value: int) -> bytes:
    """Encode a non-negative integer in groups of seven bits, least significant first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append((value & 0x7F) | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def integer(value: int, width: str) -> bytes:
    """Encode a signed big-endian integer.

    ``width`` is a format character of `struct`: b, h, i or q.
    """
    return _INTEGERS[width].pack(value)


def text(value: str | None, *, compact: bool = False) -> bytes:
    """Encode a string or null."""
    raw = None if value is None else value.encode("utf-8", "surrogatepass")
    return _prefixed(raw, compact=compact, width="h")


def blob(value: bytes | None, *, compact: bool = False) -> bytes:
    """Encode bytes or null."""
    return _prefixed(value, compact=compact, width="i")


def array(items: Iterable[bytes], *, compact: bool = False) -> bytes:
    """Encode an array of items that are already encoded."""
    parts = list(items)
    return _length(len(parts), compact=compact, width="i") + b"".join(parts)


def tags(fields: Iterable[tuple[int, bytes]] = ()) -> bytes:
    """Encode (tag, value) pairs, already sorted by tag, as a section of tagged fields."""
    parts = list(fields)
    body = b"".join(
        unsigned_varint(tag) + unsigned_varint(len(value)) + value for tag, value in parts
    )
    return unsigned_varint(len(parts)) + body


def _prefixed(value: bytes | None, *, compact: bool, width: str) -> bytes:
    if value is None:
        return _length(-1, compact=compact, width=width)
    return _length(len(value), compact=compact, width=width) + value


def _length(size: int, *, compact: bool, width: str) -> bytes:
    return unsigned_varint(size + 1) if compact else integer(size, width)


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

    def take(self, size: int) -> bytes:
        """Read ``size`` raw bytes."""
        start = self._position
        end = start + size
        if not start <= end <= len(self._data):
            raise CorruptRecordError(f"expected {size} bytes, got only {self.remaining}")
        self._position = end
        return self._data[start:end]

    def integer(self, width: str) -> int:
        """Read a signed big-endian integer."""
        form = _INTEGERS[width]
        value: int = form.unpack(self.take(form.size))[0]
        return value

    def unsigned_varint(self) -> int:
        """Read an unsigned varint of at most 32 bits."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CorruptRecordError("a variable-length integer must have at most 5 bytes")

    def length(self, *, compact: bool, width: str) -> int:
        """Read the length of a string, of bytes or of an array. The length -1 means null."""
        return self.unsigned_varint() - 1 if compact else self.integer(width)

    def text(self, *, compact: bool = False) -> str | None:
        """Read a string or null."""
        size = self.length(compact=compact, width="h")
        return None if size < 0 else self.take(size).decode("utf-8", "surrogatepass")

    def blob(self, *, compact: bool = False) -> bytes | None:
        """Read bytes or null."""
        size = self.length(compact=compact, width="i")
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
