"""Port of ``java.util.HashMap`` with its exact iteration order.

Kafka iterates over hash maps, and some of its results depend on the order: the order of the
table's bins, and within a bin the order of the ``next`` links. A bin of many keys becomes
a red-black tree (`tree_bin`), whose root moves to the front of the links.

Upstream: java.util.HashMap, OpenJDK 8 to 25. Methods keep upstream's names.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Self, TypeVar

from kassay.reference.java import tree_bin as treebin
from kassay.reference.java.hash_codes import spread, uuid_hash, uuid_key
from kassay.reference.java.tree_bin import Node

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_CAPACITY = 16
TREEIFY_THRESHOLD = 8
_UNTREEIFY_THRESHOLD = 6
_MIN_TREEIFY_CAPACITY = 64


class HashMap(Generic[K, V]):
    """A map with the iteration order of Java's ``HashMap``.

    Parameters
    ----------
    hash_code
        Java's ``hashCode`` of a key. Keys are compared with ``==``.
    sort_key
        Sort key equivalent to Java's ``compareTo``, used between equal hashes in a tree
        bin. None if the keys' class is not ``Comparable``: the later key then goes to the
        left, where Java compares identity hash codes.
    capacity
        Initial capacity; None for the constructor without arguments.
    """

    def __init__(
        self,
        hash_code: Callable[[K], int],
        *,
        sort_key: Callable[[K], Any] | None = None,
        capacity: int | None = None,
    ) -> None:
        self._hash_code = hash_code
        self._sort_key = sort_key
        self._table: list[Node | None] = []
        # As in Java: before the table exists, the threshold is its future size, 0 for 16.
        self._threshold = 0 if capacity is None else table_size_for(capacity)
        self._size = 0

    @classmethod
    def of(
        cls,
        keys: Iterable[K],
        hash_code: Callable[[K], int],
        *,
        sort_key: Callable[[K], Any] | None = None,
        capacity: int | None = None,
    ) -> Self:
        """Create a map from keys, inserted in the given order. All values are None."""
        table = cls(hash_code, sort_key=sort_key, capacity=capacity)
        for key in keys:
            table.put(key, None)  # type: ignore[arg-type]
        return table

    def put(self, key: K, value: V) -> None:
        """Set the value of a key. A new key is appended to its bin."""
        hash_code = spread(self._hash_code(key))
        if not self._table:
            self._resize()
        index = hash_code & (len(self._table) - 1)
        first = self._table[index]
        if first is None:
            self._table[index] = Node(hash_code, key, value, None)
        else:
            if self._replace(first, hash_code, key, value):
                return
            self._append(index, first, Node(hash_code, key, value, None))
        self._size += 1
        if self._size > self._threshold:
            self._resize()

    def compute_if_absent(self, key: K, function: Callable[[K], V]) -> V:
        """Return the value of a key. If the key is new, insert it at the front of its bin."""
        hash_code = spread(self._hash_code(key))
        # As upstream, the table may be resized even if the key is found.
        if not self._table or self._size > self._threshold:
            self._resize()
        index = hash_code & (len(self._table) - 1)
        first = node = self._table[index]
        length = 0
        while node is not None:
            if node.hash == hash_code and node.key == key:
                return node.value  # type: ignore[no-any-return]
            node = node.next
            length += 1
        value = function(key)
        if first is not None and first.tree:
            fresh = Node(hash_code, key, value, None)
            self._table[index] = treebin.put_tree_val(first, fresh, self._order)
        else:
            self._table[index] = Node(hash_code, key, value, first)
            if length >= TREEIFY_THRESHOLD - 1:
                self._treeify_bin(hash_code)
        self._size += 1
        return value

    def remove(self, key: K) -> None:
        """Remove a key. The table keeps its size."""
        if not self._table:
            return
        hash_code = spread(self._hash_code(key))
        index = hash_code & (len(self._table) - 1)
        first = self._table[index]
        before: Node | None = None
        for node in treebin.chain(first):
            if node.hash == hash_code and node.key == key:
                break
            before = node
        else:
            return
        if first is not None and node.tree:
            self._table[index] = treebin.remove_tree_node(first, node)
        elif before is None:
            self._table[index] = node.next
        else:
            before.next = node.next
        self._size -= 1

    def clear(self) -> None:
        """Remove all keys. The table keeps its size."""
        self._table = [None] * len(self._table)
        self._size = 0

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None if the map does not contain the key."""
        if not self._table:
            return None
        hash_code = spread(self._hash_code(key))
        for node in treebin.chain(self._table[hash_code & (len(self._table) - 1)]):
            if node.hash == hash_code and node.key == key:
                return node.value  # type: ignore[no-any-return]
        return None

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield keys and values in iteration order."""
        for first in self._table:
            node = first
            while node is not None:
                following = node.next
                yield node.key, node.value
                node = following

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self.items())

    def __len__(self) -> int:
        return self._size

    def snapshot(self) -> tuple[Any, ...]:
        """Return the state that determines later iteration orders, as a comparable value."""
        return (
            len(self._table),
            self._threshold,
            tuple(
                (node.key, *_shape(node)) for first in self._table for node in treebin.chain(first)
            ),
        )

    def _replace(self, first: Node, hash_code: int, key: K, value: V) -> bool:
        for node in treebin.chain(first):
            if node.hash == hash_code and node.key == key:
                node.value = value
                return True
        return False

    def _append(self, index: int, first: Node, fresh: Node) -> None:
        if first.tree:
            self._table[index] = treebin.put_tree_val(first, fresh, self._order)
            return
        *_, last = nodes = list(treebin.chain(first))
        last.next = fresh
        if len(nodes) >= TREEIFY_THRESHOLD:
            self._treeify_bin(fresh.hash)

    def _treeify_bin(self, hash_code: int) -> None:
        if len(self._table) < _MIN_TREEIFY_CAPACITY:
            self._resize()
            return
        index = hash_code & (len(self._table) - 1)
        first = self._table[index]
        if first is not None:
            self._table[index] = treebin.treeify(first, self._order)

    def _resize(self) -> None:
        old = self._table
        if not old:
            capacity = self._threshold or DEFAULT_CAPACITY
            self._table = [None] * capacity
            self._threshold = capacity * 3 // 4
            return
        self._table = [None] * (2 * len(old))
        self._threshold = len(self._table) * 3 // 4
        for index, first in enumerate(old):
            if first is None:
                continue
            if first.next is None:
                self._table[first.hash & (len(self._table) - 1)] = first
            else:
                self._split(index, first, len(old))

    def _split(self, index: int, first: Node, bit: int) -> None:
        """Split a bin into the bins at ``index`` and ``index + bit``, in the same order."""
        was_tree = first.tree
        nodes = list(treebin.chain(first))
        low = [node for node in nodes if not node.hash & bit]
        high = [node for node in nodes if node.hash & bit]
        for place, part in ((index, low), (index + bit, high)):
            front = _link(part)
            if front is not None and was_tree:
                if len(part) <= _UNTREEIFY_THRESHOLD:
                    front = treebin.untreeify(front)
                elif len(part) < len(nodes):
                    front = treebin.treeify(front, self._order)
            self._table[place] = front

    def _order(self, key: K, other: K) -> int:
        if self._sort_key is None:
            return 0
        mine, theirs = self._sort_key(key), self._sort_key(other)
        return -1 if mine < theirs else int(mine > theirs)


def table_size_for(capacity: int) -> int:
    """Return the smallest power of two that is at least ``max(1, capacity)``."""
    return 1 << max(0, capacity - 1).bit_length()


def set_capacity(size: int) -> int:
    """Return the initial capacity of Java's ``new HashSet(collection)`` for a collection's size."""
    return max(capacity_for(size), DEFAULT_CAPACITY)


def capacity_for(size: int) -> int:
    """Return ``(int) (size / 0.75f) + 1``, the capacity that Kafka requests for ``size`` keys."""
    return size * 4 // 3 + 1


def uuid_map(*, capacity: int | None = None) -> HashMap[int, Any]:
    """Create an empty `HashMap` with the 128 bits of UUIDs as keys."""
    return HashMap(uuid_hash, sort_key=uuid_key, capacity=capacity)


def _link(nodes: list[Node]) -> Node | None:
    """Link nodes to a chain in the given order, and return the first node."""
    first: Node | None = None
    for node in reversed(nodes):
        node.next = first
        if first is not None:
            first.prev = node
        first = node
    if first is not None:
        first.prev = None
    return first


def _shape(node: Node) -> tuple[Any, ...]:
    """Return the colour, parent and children of a tree node."""
    if not node.tree:
        return ()
    return (
        node.red,
        None if node.parent is None else node.parent.key,
        None if node.left is None else node.left.key,
        None if node.right is None else node.right.key,
    )
