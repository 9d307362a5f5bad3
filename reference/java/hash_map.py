"""Port of ``java.util.HashMap`` with its exact iteration order.

Kafka iterates over hash maps, and some of its results depend on the order: the order of the
table's bins, and within a bin the order of the ``next`` links. A bin of more than eight keys in a
table of at least 64 bins becomes a red-black tree: a new node is linked after its tree parent, and
the root moves to the front of the links. Sets of partition numbers have such bins, for example
partitions that were dealt to 64 members in turn.

Upstream: java.util.HashMap and java.util.HashMap.TreeNode, OpenJDK 8 to 25. Methods and functions
keep upstream's names.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Self, TypeVar

from kassay.reference.java.hash_codes import spread, uuid_hash, uuid_key

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_CAPACITY = 16
TREEIFY_THRESHOLD = 8
_UNTREEIFY_THRESHOLD = 6
_MIN_TREEIFY_CAPACITY = 64


class Node:
    """An entry of a hash bin: a node of the bin's chain and, in a tree bin, of the tree."""

    __slots__ = ("hash", "key", "left", "next", "parent", "prev", "red", "right", "tree", "value")

    def __init__(self, hash_code: int, key: Any, value: Any, following: "Node | None") -> None:
        self.hash = hash_code
        self.key = key
        self.value = value
        self.next = following
        self.tree = False
        self.prev: Node | None = None
        self.parent: Node | None = None
        self.left: Node | None = None
        self.right: Node | None = None
        self.red = False


Order = Callable[[Any, Any], int]
"""Java's ``compareTo`` as -1, 0 or 1; with 0 the new node goes to the left."""


def chain(first: Node | None) -> Iterator[Node]:
    """Yield the nodes of a bin in the order of their links."""
    while first is not None:
        following = first.next
        yield first
        first = following


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
            self._table[index] = put_tree_val(first, fresh, self._order)
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
        for node in chain(first):
            if node.hash == hash_code and node.key == key:
                break
            before = node
        else:
            return
        if first is not None and node.tree:
            self._table[index] = remove_tree_node(first, node)
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
        for node in chain(self._table[hash_code & (len(self._table) - 1)]):
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
            tuple((node.key, *_shape(node)) for first in self._table for node in chain(first)),
        )

    def _replace(self, first: Node, hash_code: int, key: K, value: V) -> bool:
        for node in chain(first):
            if node.hash == hash_code and node.key == key:
                node.value = value
                return True
        return False

    def _append(self, index: int, first: Node, fresh: Node) -> None:
        if first.tree:
            self._table[index] = put_tree_val(first, fresh, self._order)
            return
        *_, last = nodes = list(chain(first))
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
            self._table[index] = treeify(first, self._order)

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
        nodes = list(chain(first))
        low = [node for node in nodes if not node.hash & bit]
        high = [node for node in nodes if node.hash & bit]
        for place, part in ((index, low), (index + bit, high)):
            front = _link(part)
            if front is not None and was_tree:
                if len(part) <= _UNTREEIFY_THRESHOLD:
                    front = untreeify(front)
                elif len(part) < len(nodes):
                    front = treeify(front, self._order)
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


def treeify(first: Node, order: Order) -> Node:
    """Convert a chain of nodes to a tree, and return the root of the tree.

    The root becomes the first node of the chain.
    """
    root = first
    last: Node | None = None
    for node in chain(first):
        node.tree = True
        node.prev, last = last, node
        node.left = node.right = node.parent = None
        if node is first:
            node.red = False
            continue
        parent, to_left = _find_parent(root, node.hash, node.key, order)
        _attach(node, parent, to_left)
        root = _balance_insertion(root, node)
    return _move_root_to_front(first, root)


def untreeify(first: Node) -> Node:
    """Convert a tree bin to a chain, in the order of its links."""
    for node in chain(first):
        node.tree = False
        node.prev = node.parent = node.left = node.right = None
    return first


def put_tree_val(first: Node, node: Node, order: Order) -> Node:
    """Insert a node with a new key, and return the first node of the chain."""
    root = _root(first)
    parent, to_left = _find_parent(root, node.hash, node.key, order)
    node.tree = True
    node.next = parent.next
    if parent.next is not None:
        parent.next.prev = node
    parent.next = node
    node.prev = parent
    _attach(node, parent, to_left)
    return _move_root_to_front(first, _balance_insertion(root, node))


def remove_tree_node(first: Node, node: Node) -> Node | None:
    """Remove a node, and return the first node of the chain. Convert a small tree to a chain."""
    root = _root(first)
    front: Node | None = first
    if node.prev is None:
        front = node.next
    else:
        node.prev.next = node.next
    if node.next is not None:
        node.next.prev = node.prev
    if front is None:
        return None
    left = root.left
    if root.right is None or left is None or left.left is None:
        return untreeify(front)
    return _move_root_to_front(front, _delete(root, node))


def _find_parent(root: Node, hash_code: int, key: Any, order: Order) -> tuple[Node, bool]:
    node = root
    while True:
        ordered = hash_code - node.hash or order(key, node.key)
        to_left = ordered <= 0
        following = node.left if to_left else node.right
        if following is None:
            return node, to_left
        node = following


def _attach(node: Node, parent: Node, to_left: bool) -> None:
    node.parent = parent
    if to_left:
        parent.left = node
    else:
        parent.right = node


def _root(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _move_root_to_front(first: Node, root: Node) -> Node:
    if root is first:
        return first
    if root.next is not None:
        root.next.prev = root.prev
    if root.prev is not None:
        root.prev.next = root.next
    first.prev = root
    root.next = first
    root.prev = None
    return root


def _delete(root: Node, node: Node) -> Node:
    """Delete a node from the tree and return the new root."""
    if node.left is not None and node.right is not None:
        root, replacement = _swap_with_successor(root, node, node.left, node.right)
    else:
        replacement = node.left or node.right or node
    if replacement is not node:
        replacement.parent = node.parent
        if node.parent is None:
            root = replacement
            root.red = False
        else:
            _attach(replacement, node.parent, node is node.parent.left)
        node.left = node.right = node.parent = None
    if not node.red:
        root = _balance_deletion(root, replacement)
    if replacement is node:
        parent, node.parent = node.parent, None
        if parent is not None and parent.left is node:
            parent.left = None
        elif parent is not None and parent.right is node:
            parent.right = None
    return root


def _swap_with_successor(root: Node, node: Node, left: Node, right: Node) -> tuple[Node, Node]:
    """Swap a tree node that has two children with its in-order successor.

    The links of the chain stay.
    """
    parent = node.parent
    successor = right
    while successor.left is not None:
        successor = successor.left
    successor.red, node.red = node.red, successor.red
    beyond = successor.right
    if successor is right:
        node.parent = successor
        successor.right = node
    else:
        above = successor.parent
        if above is not None:
            _attach(node, above, successor is above.left)
        successor.right = right
        right.parent = successor
    node.left = None
    node.right = beyond
    if beyond is not None:
        beyond.parent = node
    successor.left = left
    left.parent = successor
    successor.parent = parent
    if parent is None:
        root = successor
    else:
        _attach(successor, parent, node is parent.left)
    return root, beyond if beyond is not None else node


def _rotate(root: Node, pivot: Node, *, left: bool) -> Node:
    """Rotate a subtree and return the root of the whole tree."""
    child = pivot.right if left else pivot.left
    if child is None:
        return root
    inner = child.left if left else child.right
    if left:
        pivot.right = inner
    else:
        pivot.left = inner
    if inner is not None:
        inner.parent = pivot
    child.parent = pivot.parent
    if pivot.parent is None:
        root = child
        root.red = False
    else:
        _attach(child, pivot.parent, pivot.parent.left is pivot)
    _attach(pivot, child, left)
    return root


def _balance_insertion(root: Node, node: Node) -> Node:
    node.red = True
    while True:
        parent = node.parent
        if parent is None:
            node.red = False
            return node
        grandparent = parent.parent
        if not parent.red or grandparent is None:
            return root
        on_left = parent is grandparent.left
        uncle = grandparent.right if on_left else grandparent.left
        if uncle is not None and uncle.red:
            uncle.red = parent.red = False
            grandparent.red = True
            node = grandparent
            continue
        if node is (parent.right if on_left else parent.left):
            node = parent
            root = _rotate(root, node, left=on_left)
            parent = node.parent
            grandparent = None if parent is None else parent.parent
        if parent is not None:
            parent.red = False
            if grandparent is not None:
                grandparent.red = True
                root = _rotate(root, grandparent, left=not on_left)


def _is_red(node: Node | None) -> bool:
    return node is not None and node.red


def _balance_deletion(root: Node, node: Node) -> Node:
    while node is not root:
        parent = node.parent
        if parent is None:
            node.red = False
            return node
        if node.red:
            node.red = False
            return root
        on_left = parent.left is node
        sibling = parent.right if on_left else parent.left
        if sibling is not None and sibling.red:
            sibling.red = False
            parent.red = True
            root = _rotate(root, parent, left=on_left)
            sibling = parent.right if on_left else parent.left
        if sibling is None:
            node = parent
            continue
        near = sibling.left if on_left else sibling.right
        far = sibling.right if on_left else sibling.left
        if not _is_red(near) and not _is_red(far):
            sibling.red = True
            node = parent
            continue
        root = _rotate_sibling(root, parent, sibling, on_left)
        node = root
    return root


def _rotate_sibling(root: Node, parent: Node, sibling: Node, on_left: bool) -> Node:
    """Rebalance the tree after a deletion by rotating at a sibling that has a red child."""
    far = sibling.right if on_left else sibling.left
    if not _is_red(far):
        near = sibling.left if on_left else sibling.right
        if near is not None:
            near.red = False
        sibling.red = True
        root = _rotate(root, sibling, left=not on_left)
        sibling = near if near is not None else sibling
    sibling.red = parent.red
    outer = sibling.right if on_left else sibling.left
    if outer is not None:
        outer.red = False
    parent.red = False
    return _rotate(root, parent, left=on_left)
