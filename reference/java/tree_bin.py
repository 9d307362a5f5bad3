"""Port of the red-black trees that ``java.util.HashMap`` uses for bins with many entries.

They affect the iteration order: a new node is linked after its tree parent, and the root
moves to the front of the links after every change.

Upstream: java.util.HashMap.TreeNode, OpenJDK 8 to 25. Functions keep upstream's names.
"""

from collections.abc import Callable, Iterator
from typing import Any


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
