"""Division of a study's cases into batches. A fixed order mixes the families."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol, Self, TypeVar

BATCH_CASES = 100_000
"""Maximum number of cases per batch, about 32 MB of Parquet."""
_FIRST_BATCH = 1_000
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Batch:
    """Batch of cases, at the positions from ``first`` to ``end - 1``.

    A merged batch has the cases of several batches, with the numbers ``parts``.
    """

    number: int
    first: int
    end: int
    parts: range = range(0)

    @property
    def size(self) -> int:
        """Return the number of cases in the batch."""
        return self.end - self.first


def batches_of(total: int, *, largest: int = BATCH_CASES) -> Iterator[Batch]:
    """Divide the positions of all cases into batches that double in size.

    The first batch is small, so that its results are available early.

    Examples
    --------
    >>> [batch.size for batch in batches_of(10_000, largest=4_000)]
    [1000, 2000, 4000, 3000]
    """
    number = first = 0
    while first < total:
        end = min(total, first + min(largest, _FIRST_BATCH << min(number, 32)))
        yield Batch(number, first, end)
        number, first = number + 1, end


def merged_batches(batches: Sequence[Batch], *, smallest: int) -> Iterator[Batch]:
    """Merge neighbouring batches into batches with at least ``smallest`` cases.

    Batches that are large enough, and the last batches if they are too small, are not merged.
    The numbers of merged batches follow the number of the last batch.

    Examples
    --------
    >>> batches = list(batches_of(20_000, largest=8_000))
    >>> [(batch.parts, batch.size) for batch in merged_batches(batches, smallest=6_000)]
    [(range(0, 3), 7000)]
    """
    numbers, first = count(len(batches)), 0
    for batch in batches:
        start = batches[first].first
        if batch.end - start >= smallest:
            if batch.number > first:
                yield Batch(next(numbers), start, batch.end, range(first, batch.number + 1))
            first = batch.number + 1


class _Number(Protocol):
    def __mul__(self, other: int, /) -> Self: ...

    def __mod__(self, other: int, /) -> Self: ...


_Position = TypeVar("_Position", bound=_Number)


def case_index(position: _Position, total: int) -> _Position:
    """Convert a position in the mixed order of a study to the index of a case.

    The function is a bijection of 0 to ``total - 1``. A position is an integer, or a column of
    64-bit integers.

    Neighbouring positions have distant indices: each range of positions contains cases of all
    families, and expensive cases are spread over all tasks.

    Examples
    --------
    >>> [case_index(position, 10) for position in range(10)]
    [0, 7, 4, 1, 8, 5, 2, 9, 6, 3]
    """
    factor = int(total * _GOLDEN_RATIO) or 1
    while math.gcd(factor, total) != 1:
        factor += 1  # only a factor that is coprime to the total gives a bijection
    return position * factor % total
