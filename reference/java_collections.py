"""Java's string order, hash codes, and iteration orders of collections, for Kafka's tie-breaks.

Kafka iterates over hash maps, and some of its results depend on the order: the order of the
table's bins, and within a bin the order of insertion. A crowded bin doubles a table of fewer than
64 bins. Hash codes are signed 32-bit integers like Java's ``int``.

Upstream: java.util.HashMap, HashSet and PriorityQueue, OpenJDK 8 to 25. Methods keep upstream's
names.
Deviation: a bin of more than eight keys in a table of at least 64 bins stays a list, where Java
makes it a tree and moves the root of the tree to the front.
"""

import hashlib
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Generic, TypeVar

_BITS = 0xFFFFFFFF
_SIGN = 0x80000000
_CACHED_NAMES = 1 << 16


@lru_cache(maxsize=_CACHED_NAMES)
def string_hash(text: str) -> int:
    """Return the hash code of a string, like Java's ``String.hashCode()``."""
    result = 0
    for unit in _code_units(text):
        result = (31 * result + unit) & _BITS
    return signed(result)


@lru_cache(maxsize=_CACHED_NAMES)
def utf16_key(text: str) -> bytes:
    """Return a sort key that orders strings like ``String.compareTo``, by UTF-16 code units.

    Python compares code points; the orders differ between characters beyond U+FFFF and those
    from U+E000 to U+FFFF.
    """
    return text.encode("utf-16-be", "surrogatepass")


def topic_partition_hash(topic: str, partition: int) -> int:
    """Return Java's hash code of a Kafka ``TopicPartition``."""
    return signed(31 * (31 + partition) + string_hash(topic))


def name_uuid(name: str) -> uuid.UUID:
    """Derive a UUID from a name, like Java's ``UUID.nameUUIDFromBytes``."""
    encoded = name.encode("utf-8", "surrogatepass")
    return uuid.UUID(bytes=hashlib.md5(encoded, usedforsecurity=False).digest(), version=3)


@lru_cache(maxsize=2**14)
def uuid_hash(bits: int) -> int:
    """Return the hash code of the 128 bits of a UUID, like Java's ``UUID.hashCode()``."""
    folded = (bits >> 64) ^ (bits & 0xFFFFFFFFFFFFFFFF)
    return signed((folded >> 32) ^ folded)


def uuid_key(bits: int) -> tuple[int, int]:
    """Return a sort key that orders UUIDs like Java's ``UUID.compareTo``."""
    high, low = struct.unpack(">qq", bits.to_bytes(16, "big"))
    return high, low


def spread(hash_code: int) -> int:
    """Combine a hash code with its upper half, like Java's ``HashMap.hash``."""
    unsigned = hash_code & _BITS
    return signed(unsigned ^ (unsigned >> 16))


def _code_units(text: str) -> Iterable[int]:
    if text.isascii():
        return text.encode("ascii")
    encoded = text.encode("utf-16-be", "surrogatepass")
    return [high << 8 | low for high, low in zip(encoded[::2], encoded[1::2], strict=True)]


def signed(value: int) -> int:
    """Convert the lower 32 bits of an integer to a signed integer, like Java's ``int``."""
    value &= _BITS
    return value - (1 << 32) if value & _SIGN else value


K = TypeVar("K")
V = TypeVar("V")

_DEFAULT_CAPACITY = 16
_TREEIFY_THRESHOLD = 8
_MIN_TREEIFY_CAPACITY = 64


class HashMap(Generic[K, V]):
    """A map with the iteration order of Java's ``HashMap``.

    Keys are compared with ``==``. The initial capacity is None for Java's default.
    """

    __slots__ = ("_bins", "_hash_code", "_size", "_threshold")

    def __init__(self, hash_code: Callable[[K], int], *, capacity: int | None = None) -> None:
        self._hash_code = hash_code
        self._bins: list[dict[K, V]] = []
        # As in Java: before the table exists, the threshold is its future size, 0 for 16.
        self._threshold = 0 if capacity is None else table_size_for(capacity)
        self._size = 0

    def put(self, key: K, value: V) -> None:
        """Set the value of a key. A new key is appended to its bin."""
        if not self._bins:
            self._resize()
        entries = self._bins[self._index(key)]
        is_new = key not in entries
        entries[key] = value
        if is_new:
            if len(entries) > _TREEIFY_THRESHOLD:
                self._treeify_bin()
            self._size += 1
            if self._size > self._threshold:
                self._resize()

    def compute_if_absent(self, key: K, function: Callable[[K], V]) -> V:
        """Return the value of a key. If the key is new, insert it at the front of its bin."""
        # As upstream, the table may be resized even if the key is found.
        if not self._bins or self._size > self._threshold:
            self._resize()
        index = self._index(key)
        entries = self._bins[index]
        if key in entries:
            return entries[key]
        value = function(key)
        self._bins[index] = {key: value, **entries}
        if len(entries) >= _TREEIFY_THRESHOLD - 1:
            self._treeify_bin()
        self._size += 1
        return value

    def remove(self, key: K) -> None:
        """Remove a key. The table keeps its size."""
        if self._bins:
            entries = self._bins[self._index(key)]
            if key in entries:
                del entries[key]
                self._size -= 1

    def clear(self) -> None:
        """Remove all keys. The table keeps its size."""
        self._bins = [{} for _ in self._bins]
        self._size = 0

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None if the map does not contain the key."""
        return self._bins[self._index(key)].get(key) if self._bins else None

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield keys and values in iteration order."""
        for entries in self._bins:
            yield from entries.items()

    def __iter__(self) -> Iterator[K]:
        for entries in self._bins:
            yield from entries

    def __len__(self) -> int:
        return self._size

    def snapshot(self) -> tuple[int, tuple[K, ...]]:
        """Return the number of bins and the keys in order, to compare two maps."""
        return len(self._bins), tuple(self)

    def _index(self, key: K) -> int:
        return spread(self._hash_code(key)) & (len(self._bins) - 1)

    def _treeify_bin(self) -> None:
        if len(self._bins) < _MIN_TREEIFY_CAPACITY:
            self._resize()

    def _resize(self) -> None:
        old = self._bins
        capacity = 2 * len(old) or self._threshold or _DEFAULT_CAPACITY
        self._bins = [{} for _ in range(capacity)]
        self._threshold = capacity * 3 // 4
        for entries in old:
            for key, value in entries.items():
                self._bins[self._index(key)][key] = value


class IntegerSet(HashMap[int, None]):
    """A set of integers with the iteration order of Java's ``HashSet``."""

    __slots__ = ()

    def __init__(self, numbers: Iterable[int] = (), *, capacity: int | None = None) -> None:
        super().__init__(int, capacity=capacity)
        self.update(numbers)

    def add(self, number: int) -> None:
        """Add a number. A new number is appended to its bin."""
        self.put(number, None)

    def update(self, numbers: Iterable[int]) -> None:
        """Insert numbers into the set, in the given order."""
        for number in numbers:
            self.put(number, None)


def table_size_for(capacity: int) -> int:
    """Return the smallest power of two that is at least ``max(1, capacity)``."""
    return 1 << max(0, capacity - 1).bit_length()


def set_capacity(size: int) -> int:
    """Return the capacity of Java's ``new HashSet(collection)`` for ``size`` elements."""
    return max(capacity_for(size), _DEFAULT_CAPACITY)


def capacity_for(size: int) -> int:
    """Return the capacity of the hash maps that Kafka creates for ``size`` keys."""
    return size * 4 // 3 + 1


def uuid_map(*, capacity: int | None = None) -> HashMap[int, Any]:
    """Create an empty `HashMap` for keys that are the 128 bits of UUIDs."""
    return HashMap(uuid_hash, capacity=capacity)


def hash_map(
    keys: Iterable[K], hash_code: Callable[[K], int], *, capacity: int | None = None
) -> HashMap[K, None]:
    """Create a `HashMap`, and insert the keys in the given order."""
    table: HashMap[K, None] = HashMap(hash_code, capacity=capacity)
    for key in keys:
        table.put(key, None)
    return table


def string_order(names: Iterable[str], *, capacity: int | None = None) -> list[str]:
    """Return the iteration order of a Java ``HashMap`` filled by ``put``."""
    return list(hash_map(names, string_hash, capacity=capacity))


def computed_order(names: Iterable[str]) -> list[str]:
    """Return the iteration order of a Java ``HashMap`` filled by ``computeIfAbsent``."""
    table: HashMap[str, None] = HashMap(string_hash)
    for name in names:
        table.compute_if_absent(name, lambda _: None)
    return list(table)


def first_in_map(keys: Iterable[str], *, largest_size: int) -> str | None:
    """Return the first key of a Java ``HashMap`` that never had more than ``largest_size`` keys."""
    capacity = _DEFAULT_CAPACITY
    while largest_size > capacity * 3 // 4:
        capacity *= 2
    return min(keys, key=lambda key: spread(string_hash(key)) & (capacity - 1), default=None)


T = TypeVar("T")


def poll_order(elements: Iterable[T], key: Callable[[T], Any]) -> list[T]:
    """Add elements to a Java ``PriorityQueue``, and return them in the order of ``poll``."""
    heap: list[tuple[Any, T]] = []
    for element in elements:
        heap.append((key(element), element))
        _sift_up(heap)
    order = []
    while heap:
        order.append(heap[0][1])
        last = heap.pop()
        if heap:
            heap[0] = last
            _sift_down(heap)
    return order


def _sift_up(heap: list[tuple[Any, T]]) -> None:
    index = len(heap) - 1
    while index > 0:
        parent = (index - 1) // 2
        if heap[index][0] >= heap[parent][0]:
            return
        heap[index], heap[parent] = heap[parent], heap[index]
        index = parent


def _sift_down(heap: list[tuple[Any, T]]) -> None:
    index = 0
    while 2 * index + 1 < len(heap):
        child = 2 * index + 1
        if child + 1 < len(heap) and heap[child][0] > heap[child + 1][0]:
            child += 1
        if heap[index][0] <= heap[child][0]:
            return
        heap[index], heap[child] = heap[child], heap[index]
        index = child
