"""Iteration order of a Java ``HashMap`` with string keys.

If no bin becomes a tree, the order follows from the hash codes and the table size. Otherwise
the functions fill a `kassay.reference.java.hash_map.HashMap`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from kassay.reference.java.hash_codes import spread, string_hash, utf16_key
from kassay.reference.java.hash_map import (
    DEFAULT_CAPACITY,
    TREEIFY_THRESHOLD,
    HashMap,
    table_size_for,
)


def string_order(names: Iterable[str], *, capacity: int | None = None) -> list[str]:
    """Return the iteration order of strings that ``put`` inserts in the given order.

    The strings are distinct.
    """
    names = list(names)
    start = DEFAULT_CAPACITY if capacity is None else table_size_for(capacity)
    mask = _mask_without_trees(names, start, room_beyond=0)
    if mask is not None:
        return sorted(names, key=lambda name: spread(string_hash(name)) & mask)
    return list(HashMap.of(names, string_hash, sort_key=utf16_key, capacity=capacity))


def computed_order(names: Sequence[str], *, looked_up_after: bool) -> list[str]:
    """Return the iteration order of strings that ``computeIfAbsent`` inserts.

    The strings are distinct. ``looked_up_after`` means that ``computeIfAbsent`` is called for an
    existing string after the last new one; this call may resize the table.
    """
    mask = _mask_without_trees(names, DEFAULT_CAPACITY, room_beyond=0 if looked_up_after else 1)
    if mask is not None:
        # computeIfAbsent inserts a new name before the others of its bin.
        newest_first = list(reversed(names))
        return sorted(newest_first, key=lambda name: spread(string_hash(name)) & mask)
    table: HashMap[str, None] = HashMap(string_hash, sort_key=utf16_key)
    for name in [*names, names[-1]] if looked_up_after else names:
        table.compute_if_absent(name, lambda _: None)
    return list(table)


def first_in_map(keys: Iterable[str], *, largest_size: int) -> str | None:
    """Return the key that a Java ``HashMap`` iterates first, or None if there are no keys.

    ``largest_size`` is the maximum size that the map ever had: its table never shrinks.
    """
    capacity = DEFAULT_CAPACITY
    while largest_size > capacity * 3 // 4:
        capacity *= 2
    mask = capacity - 1
    return min(keys, key=lambda key: spread(string_hash(key)) & mask, default=None)


def _mask_without_trees(names: Sequence[str], capacity: int, *, room_beyond: int) -> int | None:
    """Return the index mask of the final hash table, or None if a bin may become a tree."""
    spreads = [spread(string_hash(name)) for name in names]
    while True:
        room = capacity * 3 // 4 + room_beyond
        present = spreads[: room + 1]
        if len(present) >= TREEIFY_THRESHOLD:
            bins = Counter(hash_code & (capacity - 1) for hash_code in present)
            if max(bins.values()) >= TREEIFY_THRESHOLD:
                return None
        if len(spreads) <= room:
            return capacity - 1
        capacity *= 2
