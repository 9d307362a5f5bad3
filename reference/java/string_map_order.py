"""The order in which Java's ``HashMap`` yields strings, where the coordinator hangs on it.

It does so twice: a new leader is the first member of the map when the old one goes, and of
protocols with as many votes the first of the map wins.
"""

from collections.abc import Iterable

from kassay.reference.java.strings import spread, string_hash

_SMALLEST_TABLE = 16


def first_in_map(keys: Iterable[str], *, most: int) -> str | None:
    """Return the key that a ``HashMap`` yields first.

    Parameters
    ----------
    keys
        Its keys, in the order they were put in.
    most
        Most keys that it ever held: its table never shrinks.

    Returns
    -------
    str or None
        None if there are no keys.

    Examples
    --------
    >>> first_in_map(["range", "sticky"], most=2)
    'sticky'
    """
    mask = _table_size(most) - 1
    return min(keys, key=lambda key: spread(string_hash(key)) & mask, default=None)


def _table_size(entries: int) -> int:
    size = _SMALLEST_TABLE
    while 4 * entries > 3 * size:
        size *= 2
    return size
