"""Offset commits, nearly all that there is in ``__consumer_offsets``, told whole by the column."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_VERSION, _OFFSET, _EPOCH, _TIME = 2, 8, 4, 8  # sizes in bytes
_PLAIN_VERSIONS = 4  # as many have fields of fixed places, and lengths of two bytes


def is_complete_batch(values: pa.BinaryArray) -> NDArray[np.bool_]:
    """Tell which values are for sure those of an offset commit that keeps to its format.

    Null is, being a tombstone. Values of version 4 with tagged fields or a long text, and
    those with other than ASCII in it, may be in order although they are not told so.

    Examples
    --------
    >>> commit = bytes.fromhex("0003 0000000000000009 00000000 0001 6d 0000000000000005")
    >>> newer = bytes.fromhex("0004 0000000000000009 00000000 02 6d 0000000000000005 00")
    >>> is_complete_batch(pa.array([commit, commit[:-1], newer, None])).tolist()
    [True, False, True, True]
    """
    ends, data = _bytes_of(values)
    start, end = ends[:-1], ends[1:]
    version = _short(data, start)
    at = start + _VERSION + _OFFSET + np.where(version >= 3, _EPOCH, 0)
    plain = (version >= 0) & (version < _PLAIN_VERSIONS)
    size = np.where(plain, _short(data, at), data[np.minimum(at, len(data) - 1)].astype(int) - 1)
    text = at + np.where(plain, 2, 1)
    told = text + size
    rest = end - told - _TIME - np.where(version == 1, _TIME, 0)
    last = data[np.maximum(end - 1, 0)]
    whole: NDArray[np.bool_] = plain & (rest == 0)
    whole |= (version == _PLAIN_VERSIONS) & (rest == 1) & (last == 0) & (size < 0x7F)
    whole &= size >= 0
    foreign = np.concatenate(([0], np.cumsum(data >= 0x80)))
    whole &= foreign[np.minimum(text, len(data))] == foreign[np.clip(told, 0, len(data))]
    if values.null_count:
        whole |= values.is_null().to_numpy(zero_copy_only=False)
    return whole


def plain_list(column: pa.BinaryArray) -> list[bytes | None]:
    """Return a column as a list, which takes Arrow several times as long.

    Examples
    --------
    >>> plain_list(pa.array([b"ab", None, b""]))
    [b'ab', None, b'']
    """
    offsets = np.frombuffer(column.buffers()[1], np.int32)
    ends = offsets[column.offset : column.offset + len(column) + 1].tolist()
    data = column.buffers()[2]
    raw = b"" if data is None else data.to_pybytes()
    found: list[bytes | None] = [raw[a:b] for a, b in pairwise(ends)]
    if column.null_count:
        for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)):
            found[row] = None
    return found


def integers(column: pa.Int64Array) -> list[int | None]:
    """Return a column as a list; fast if there is no null in it.

    Examples
    --------
    >>> integers(pa.array([7, 8])), integers(pa.array([7, None]))
    ([7, 8], [7, None])
    """
    found: list[int | None] = (
        column.to_pylist() if column.null_count else column.to_numpy().tolist()
    )
    return found


def _bytes_of(values: pa.BinaryArray) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where values begin and end, and the bytes of all, of which there is one at least."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    first, last = int(ends[0]), int(ends[-1])
    if first == last:
        return np.zeros(len(ends), np.int64), np.zeros(1, np.uint8)
    return ends.astype(np.int64) - first, np.frombuffer(data, np.uint8)[first:last]


def _short(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Read two bytes as an integer; what lies beyond the end does not matter."""
    first, second = (data[np.minimum(at + n, len(data) - 1)] for n in (0, 1))
    return (first.astype(np.int8).astype(np.int64) << 8) | second
