"""The order in which Java's ``HashMap`` yields strings, where the coordinator hangs on it.

It does so twice: a new leader is the first member of the map when the old one goes, and of
protocols with as many votes the first of the map wins.
"""

from collections.abc import Iterable

_SMALLEST_TABLE = 16


def string_hash(value: str) -> int:
    """Return Java's ``String.hashCode`` as a signed 32-bit integer.

    Examples
    --------
    >>> string_hash("sticky"), string_hash("range")
    (-892259863, 108280125)
    """
    result = 0
    raw = value.encode("utf-16-be", "surrogatepass")
    for high, low in zip(raw[::2], raw[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return result - (1 << 32) if result & 0x80000000 else result


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
    return min(keys, key=lambda key: _spread(string_hash(key)) & mask, default=None)


def _spread(value: int) -> int:
    value &= 0xFFFFFFFF
    return value ^ value >> 16


def _table_size(entries: int) -> int:
    size = _SMALLEST_TABLE
    while 4 * entries > 3 * size:
        size *= 2
    return size
