"""Every set of partitions whose total lies in a window: two halves met in the middle."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Sets are bit masks in 64 bits, and each half's sums are held at once.
MOST_ITEMS = 44
MOST_COLUMNS = 400_000


class TooManySubsetsError(Exception):
    """An enumeration would outgrow its limits; the caller falls back to search."""


@dataclass(frozen=True, slots=True)
class Subsets:
    """Sets of items, as bit masks, with their total weights."""

    mask: Ints
    weight: Ints

    def within(self, allowed: int) -> "Subsets":
        """Keep the sets that have allowed items only."""
        keep = (self.mask & ~np.int64(allowed)) == 0
        return Subsets(self.mask[keep], self.weight[keep])


def enumerate_subsets(weights: Ints, low: int, high: int) -> Subsets:
    """List all sets whose weights add up to ``low`` at least and ``high`` at most.

    Horowitz and Sahni's method: all sums of one half, sorted, against those of the other.

    Raises
    ------
    TooManyError
        If there are too many items or sets.

    Examples
    --------
    >>> enumerate_subsets(np.array([3, 5, 7]), 8, 10).mask.tolist()
    [3, 5]
    """
    if len(weights) > MOST_ITEMS:
        raise TooManySubsetsError
    half = len(weights) // 2
    first, second = all_sums(weights[:half]), all_sums(weights[half:])
    by_sum = np.argsort(second, kind="stable")
    ascending = second[by_sum]
    # Searching in order of the sums walks through memory instead of jumping about.
    order = np.argsort(-first, kind="stable")
    start = np.searchsorted(ascending, low - first[order], side="left")
    stop = np.searchsorted(ascending, high - first[order], side="right")
    count = stop - start
    total = int(count.sum())
    if total > MOST_COLUMNS:
        raise TooManySubsetsError
    of_first = np.repeat(order, count)
    skipped = np.repeat(start - np.cumsum(count) + count, count)
    of_second = by_sum[skipped + np.arange(total)]
    mask = of_first.astype(np.int64) | (of_second.astype(np.int64) << half)
    return Subsets(mask, first[of_first] + second[of_second])


def all_sums(weights: Ints) -> Ints:
    """Return the total of every set; bit i of the index stands for item i."""
    sums = np.zeros(1, dtype=np.int64)
    for weight in weights:
        sums = np.concatenate([sums, sums + weight])
    return sums
