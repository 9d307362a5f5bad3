"""Iteration order of ``java.util.HashMap`` and ``HashSet``, exactly.

Kafka iterates over hash maps, and some of its results hang on that order. It is the order
of the table's bins, and within a bin that of the ``next`` links. A bin of many keys
becomes a red-black tree (`tree_bin`), whose root moves to the front of the links.

Upstream: java.util.HashMap of OpenJDK 8 to 25, which agree in all that matters here.
Methods keep its names, so that the two can be read side by side.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from kassay.reference.java import tree_bin as treebin
from kassay.reference.java.strings import spread, uuid_hash, uuid_key
from kassay.reference.java.tree_bin import Node

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_CAPACITY = 16
TREEIFY_THRESHOLD = 8
_UNTREEIFY_THRESHOLD = 6
_MIN_TREEIFY_CAPACITY = 64


class HashMap(Generic[K, V]):
    """A map that iterates as Java's does.

    Parameters
    ----------
    hash_code
        Java's ``hashCode`` of a key. Keys are compared by Python's ``==``.
    sort_key
        What Java's ``compareTo`` of two keys compares. It decides only between equal
        hashes in a tree bin. None where the keys' class is not ``Comparable``: the later
        one then goes to the left, where Java asks for the objects' identities.
    capacity
        Initial capacity as the constructor takes it, None for the one without arguments.

    Examples
    --------
    >>> from kassay.reference.java.strings import string_hash
    >>> table: HashMap[str, int] = HashMap(string_hash)
    >>> for number, name in enumerate(["c10", "c2", "c9", "orders"]):
    ...     table.put(name, number)
    >>> list(table)
    ['c10', 'c9', 'orders', 'c2']
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
        # As in Java, until there is a table the threshold holds its size to be, 0 for 16.
        self._threshold = 0 if capacity is None else table_size_for(capacity)
        self._size = 0

    def put(self, key: K, value: V) -> None:
        """Add a key behind the others of its bin, or replace its value."""
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
        """Return the key's value; a new key goes before the others of its bin."""
        hash_code = spread(self._hash_code(key))
        # The check comes before the look-up, so that finding a key can resize the table.
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
        """Take a key out; the table keeps its size."""
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
        """Take all keys out; the table keeps its size."""
        self._table = [None] * len(self._table)
        self._size = 0

    def get(self, key: K) -> V | None:
        """Return the key's value, None where it is absent."""
        if not self._table:
            return None
        hash_code = spread(self._hash_code(key))
        for node in treebin.chain(self._table[hash_code & (len(self._table) - 1)]):
            if node.hash == hash_code and node.key == key:
                return node.value  # type: ignore[no-any-return]
        return None

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield keys and values in the order of iteration."""
        for first in self._table:
            node = first
            while node is not None:
                following = node.next
                yield node.key, node.value
                node = following

    def __iter__(self) -> Iterator[K]:
        """Yield the keys in the order of iteration."""
        for first in self._table:
            node = first
            while node is not None:
                following = node.next
                yield node.key
                node = following

    def __len__(self) -> int:
        """Count the keys."""
        return self._size

    def snapshot(self) -> tuple[Any, ...]:
        """Return all that the future order depends on, to be compared with another's."""
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
        """Share a bin out between its old place and the one ``bit`` higher, orders kept."""
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
    """Return the least power of two that is not below ``capacity``, at least 1.

    Examples
    --------
    >>> [table_size_for(n) for n in (0, 1, 3, 16, 17)]
    [1, 1, 4, 16, 32]
    """
    return 1 << max(0, capacity - 1).bit_length()


def set_capacity(size: int) -> int:
    """Return the capacity with which ``new HashSet(collection)`` starts.

    Examples
    --------
    >>> set_capacity(3), set_capacity(24)
    (16, 33)
    """
    return max(capacity_for(size), DEFAULT_CAPACITY)


def capacity_for(size: int) -> int:
    """Return ``(int) (size / 0.75f) + 1``, Java's usual capacity for so many keys.

    Examples
    --------
    >>> capacity_for(3), capacity_for(4)
    (5, 6)
    """
    return size * 4 // 3 + 1


def uuid_map(*, capacity: int | None = None) -> "HashMap[uuid.UUID, Any]":
    """Return an empty map keyed by topic ids.

    Examples
    --------
    >>> len(uuid_map())
    0
    """
    return HashMap(uuid_hash, sort_key=uuid_key, capacity=capacity)


def _link(nodes: list[Node]) -> Node | None:
    """Chain nodes in their order and return the first."""
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
    """Describe a node's place in its tree."""
    if not node.tree:
        return ()
    return (
        node.red,
        None if node.parent is None else node.parent.key,
        None if node.left is None else node.left.key,
        None if node.right is None else node.right.key,
    )
