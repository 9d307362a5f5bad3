"""Kafka's primitive types as bytes, in both of its styles, compact and not."""

import struct
from collections.abc import Callable, Iterable
from typing import TypeVar
from uuid import UUID

from kassay.reference.model.errors import InputError

_T = TypeVar("_T")
_INTEGERS = {width: struct.Struct(f">{width}") for width in "bhiq"}


class CorruptRecordError(InputError):
    """Bytes that end too early or hold what their format does not allow."""


def _length(size: int, *, compact: bool, width: str) -> bytes:
    return unsigned_varint(size + 1) if compact else struct.pack(f">{width}", size)


def unsigned_varint(value: int) -> bytes:
    """Write a non-negative integer seven bits at a time, least significant first.

    Examples
    --------
    >>> unsigned_varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(value: int, width: str) -> bytes:
    """Write a signed big-endian integer; ``width`` is struct's b, h, i or q."""
    return struct.pack(f">{width}", value)


def text(value: str | None, *, compact: bool = False) -> bytes:
    """Write a string, or null.

    Examples
    --------
    >>> text("abc").hex(), text(None).hex(), text("abc", compact=True).hex()
    ('0003616263', 'ffff', '04616263')
    """
    if value is None:
        return _length(-1, compact=compact, width="h")
    raw = value.encode("utf-8", "surrogatepass")
    return _length(len(raw), compact=compact, width="h") + raw


def blob(value: bytes | None, *, compact: bool = False) -> bytes:
    """Write bytes, or null."""
    if value is None:
        return _length(-1, compact=compact, width="i")
    return _length(len(value), compact=compact, width="i") + value


def array(items: Iterable[bytes], *, compact: bool = False) -> bytes:
    """Write an array of what is written already."""
    parts = list(items)
    return _length(len(parts), compact=compact, width="i") + b"".join(parts)


def tags(fields: Iterable[tuple[int, bytes]] = ()) -> bytes:
    """Write a section of tagged fields, given in the order of their numbers."""
    parts = list(fields)
    body = b"".join(
        unsigned_varint(tag) + unsigned_varint(len(value)) + value for tag, value in parts
    )
    return unsigned_varint(len(parts)) + body


class Reader:
    """Reads what the functions above write, from the front."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def rest(self) -> int:
        """Count the bytes not read yet."""
        return len(self._data) - self._position

    def take(self, size: int) -> bytes:
        """Read raw bytes."""
        start = self._position
        end = start + size
        if not start <= end <= len(self._data):
            raise CorruptRecordError(f"{size} bytes are wanted, {self.rest} are left")
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
        raise CorruptRecordError("a varint is longer than 5 bytes")

    def _length(self, *, compact: bool, width: str) -> int:
        return self.unsigned_varint() - 1 if compact else self.integer(width)

    def optional_text(self, *, compact: bool = False) -> str | None:
        """Read a string, or null."""
        size = self._length(compact=compact, width="h")
        return None if size < 0 else self.take(size).decode("utf-8", "surrogatepass")

    def text(self, *, compact: bool = False) -> str:
        """Read a string that must not be null."""
        value = self.optional_text(compact=compact)
        if value is None:
            raise CorruptRecordError("a string is null that must not be")
        return value

    def blob(self, *, compact: bool = False) -> bytes | None:
        """Read bytes, or null."""
        size = self._length(compact=compact, width="i")
        return None if size < 0 else self.take(size)

    def array(self, item: Callable[[], _T], *, compact: bool = False) -> list[_T]:
        """Read an array, each element with ``item``."""
        return [item() for _ in range(max(0, self._length(compact=compact, width="i")))]

    def uuid(self) -> UUID:
        """Read a UUID."""
        return UUID(bytes=self.take(16))

    def tags(self) -> dict[int, bytes]:
        """Read a section of tagged fields."""
        found = {}
        for _ in range(self.unsigned_varint()):
            tag = self.unsigned_varint()
            found[tag] = self.take(self.unsigned_varint())
        return found
