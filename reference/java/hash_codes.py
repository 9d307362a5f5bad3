"""Java's string order and hash codes, on which Kafka's tie-breaks depend.

Hash codes are signed 32-bit integers like Java's ``int``.
"""

import hashlib
import struct
import uuid
from collections.abc import Iterable
from functools import lru_cache

_BITS = 0xFFFFFFFF
_SIGN = 0x80000000
_CACHED_NAMES = 1 << 16


@lru_cache(maxsize=_CACHED_NAMES)
def string_hash(text: str) -> int:
    """Return Java's ``String.hashCode()``, computed from the UTF-16 code units."""
    result = 0
    for unit in _code_units(text):
        result = (31 * result + unit) & _BITS
    return _signed(result)


@lru_cache(maxsize=_CACHED_NAMES)
def utf16_key(text: str) -> bytes:
    """Return a sort key that orders strings like ``String.compareTo``, by UTF-16 code units.

    Python compares code points; the orders differ between characters beyond U+FFFF and those
    from U+E000 to U+FFFF.
    """
    return text.encode("utf-16-be", "surrogatepass")


def topic_partition_hash(topic: str, partition: int) -> int:
    """Return Java's hash code of a Kafka ``TopicPartition``."""
    return _signed((31 * (31 + partition) + string_hash(topic)) & _BITS)


def name_uuid(name: bytes) -> uuid.UUID:
    """Return Java's ``UUID.nameUUIDFromBytes``, a version 3 UUID without a namespace."""
    return uuid.UUID(bytes=hashlib.md5(name, usedforsecurity=False).digest(), version=3)


@lru_cache(maxsize=2**14)
def uuid_hash(bits: int) -> int:
    """Return Java's ``UUID.hashCode()`` for the 128 bits of a UUID, as Kafka's ``Uuid``."""
    folded = (bits >> 64) ^ (bits & 0xFFFFFFFFFFFFFFFF)
    return _signed((folded >> 32) ^ (folded & _BITS))


def uuid_key(bits: int) -> tuple[int, int]:
    """Return a sort key that orders ids like ``UUID.compareTo``: as two signed longs."""
    high, low = struct.unpack(">qq", bits.to_bytes(16, "big"))
    return high, low


def spread(hash_code: int) -> int:
    """Combine a hash code with its upper half by XOR, as Java's ``HashMap.hash`` does."""
    unsigned = hash_code & _BITS
    return _signed(unsigned ^ (unsigned >> 16))


def _code_units(text: str) -> Iterable[int]:
    if text.isascii():
        return text.encode("ascii")
    encoded = text.encode("utf-16-be", "surrogatepass")
    return [high << 8 | low for high, low in zip(encoded[::2], encoded[1::2], strict=True)]


def _signed(value: int) -> int:
    return value - (1 << 32) if value & _SIGN else value
