"""The order in which a Java hash map has strings that were put into it.

Where no bin becomes crowded on the way, the order follows from the hashes and the size of
the table alone; else the map itself is asked (`kassay.reference.java.hash_map`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from kassay.reference.java.hash_map import (
    DEFAULT_CAPACITY,
    TREEIFY_THRESHOLD,
    HashMap,
    table_size_for,
)
from kassay.reference.java.strings import spread, string_hash, utf16_key


def string_order(names: Iterable[str], *, capacity: int | None = None) -> list[str]:
    """Put strings, all different, into a hash map and return them in its order.

    Examples
    --------
    >>> string_order(["t0", "t10", "t2"])
    ['t10', 't0', 't2']
    """
    listed = list(names)
    start = DEFAULT_CAPACITY if capacity is None else table_size_for(capacity)
    mask = _mask_without_crowds(listed, start, room_beyond=0)
    if mask is not None:
        return sorted(listed, key=lambda name: spread(string_hash(name)) & mask)
    table: HashMap[str, None] = HashMap(string_hash, sort_key=utf16_key, capacity=capacity)
    for name in listed:
        table.put(name, None)
    return list(table)


def computed_order(names: Sequence[str], *, looked_up_after: bool) -> list[str]:
    """Put strings, all different, into a hash map by ``computeIfAbsent``; return its order.

    Parameters
    ----------
    names
        The strings in the order in which they are first asked for.
    looked_up_after
        Whether one of them is asked for again after the last has come.

    Examples
    --------
    >>> computed_order(["Aa", "BB", "c"], looked_up_after=False)
    ['BB', 'Aa', 'c']
    """
    mask = _mask_without_crowds(names, DEFAULT_CAPACITY, room_beyond=0 if looked_up_after else 1)
    if mask is not None:
        # A new name goes before the others of its bin.
        newest_first = list(reversed(names))
        return sorted(newest_first, key=lambda name: spread(string_hash(name)) & mask)
    table: HashMap[str, None] = HashMap(string_hash, sort_key=utf16_key)
    for name in [*names, names[-1]] if looked_up_after else names:
        table.compute_if_absent(name, lambda _: None)
    return list(table)


def _mask_without_crowds(names: Sequence[str], capacity: int, *, room_beyond: int) -> int | None:
    """Return the mask of the final table, None if a bin may become crowded on the way.

    Bins that stay small stay plain chains, in the order in which their names came.
    """
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
