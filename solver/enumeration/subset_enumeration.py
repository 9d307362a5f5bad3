"""Enumerate subsets with a total weight in a range, by a meet-in-the-middle search."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.solver.number_ranges import Weights
from kassay.solver.problem import Ints

# Subsets are masks of 64 bits, and the sums of each half are in memory at once.
MAX_ITEMS = 44
# Sums beyond 64 bits are Python integers, which need more time and memory.
_MAX_BIG_ITEMS = 32
MAX_SUBSETS = 400_000


class EnumerationLimitError(Exception):
    """Error: an enumeration reached a limit of size or time; another method is needed."""


@dataclass(frozen=True, slots=True)
class Subsets:
    """Subsets of items as bit masks, with their total weights."""

    mask: Ints
    weight: Weights

    def within(self, allowed: int) -> "Subsets":
        """Return the subsets that contain only the allowed items."""
        keep = (self.mask & ~np.int64(allowed)) == 0
        return Subsets(self.mask[keep], self.weight[keep])


def enumerate_subsets(weights: Weights, low: int, high: int) -> Subsets:
    """List all subsets with a total weight from ``low`` to ``high``.

    Horowitz and Sahni's method: sums of one half against the sorted sums of the other.
    EnumerationLimitError if there are too many items or subsets.
    """
    if len(weights) > (_MAX_BIG_ITEMS if weights.dtype == object else MAX_ITEMS):
        raise EnumerationLimitError
    half = len(weights) // 2
    first, second = all_sums(weights[:half]), all_sums(weights[half:])
    by_sum = np.argsort(second, kind="stable")
    ascending = second[by_sum]
    # Searching in the order of the sums is faster because memory access is sequential.
    order = np.argsort(-first, kind="stable")
    start = np.searchsorted(ascending, low - first[order], side="left")
    stop = np.searchsorted(ascending, high - first[order], side="right")
    count = stop - start
    total = int(count.sum())
    if total > MAX_SUBSETS:
        raise EnumerationLimitError
    of_first = np.repeat(order, count)
    skipped = np.repeat(start - np.cumsum(count) + count, count)
    of_second = by_sum[skipped + np.arange(total)]
    mask = of_first.astype(np.int64) | (of_second.astype(np.int64) << half)
    return Subsets(mask, first[of_first] + second[of_second])


def all_sums(weights: Weights) -> Weights:
    """Return the total weight of every subset; bit i of the index of a subset means item i."""
    sums = np.zeros(1, dtype=weights.dtype)
    for weight in weights:
        sums = np.concatenate([sums, sums + weight])
    return sums


def contained(mask: int | np.int64, count: int) -> NDArray[np.bool_]:
    """Return, per item, whether a bit mask contains it."""
    return np.asarray((mask >> np.arange(count)) & 1, dtype=np.bool_)


def nearest_subset(weights: Weights, target: int) -> int:
    """Return the bit mask of a subset with the total weight nearest to a target."""
    half = len(weights) // 2
    first, second = all_sums(weights[:half]), all_sums(weights[half:])
    order = np.argsort(second, kind="stable")
    ascending = second[order]
    right = np.searchsorted(ascending, target - first).clip(0, len(second) - 1)
    left = (right - 1).clip(0)
    misses = np.abs(np.stack([ascending[left], ascending[right]]) + first - target)
    side, at = np.unravel_index(int(misses.argmin()), misses.shape)
    return int(at) | int(order[(left, right)[int(side)][at]]) << half
