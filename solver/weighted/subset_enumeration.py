"""Enumerate subsets with a total weight in a range, by a meet-in-the-middle search."""

from dataclasses import dataclass

import numpy as np

from kassay.solver.problem import Ints

# Subsets are masks of 64 bits, and the sums of each half are in memory at once.
MAX_ITEMS = 44
MAX_SUBSETS = 400_000


class TooManySubsetsError(Exception):
    """Raised when an enumeration exceeds its limits; the caller uses another method."""


@dataclass(frozen=True, slots=True)
class Subsets:
    """Subsets of items as bit masks, with their total weights."""

    mask: Ints
    weight: Ints

    def within(self, allowed: int) -> "Subsets":
        """Return the subsets that contain only allowed items."""
        keep = (self.mask & ~np.int64(allowed)) == 0
        return Subsets(self.mask[keep], self.weight[keep])


def enumerate_subsets(weights: Ints, low: int, high: int) -> Subsets:
    """List all subsets with a total weight from ``low`` to ``high``.

    Horowitz and Sahni's method: sums of one half against the sorted sums of the other.
    TooManySubsetsError if there are too many items or subsets.
    """
    if len(weights) > MAX_ITEMS:
        raise TooManySubsetsError
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
        raise TooManySubsetsError
    of_first = np.repeat(order, count)
    skipped = np.repeat(start - np.cumsum(count) + count, count)
    of_second = by_sum[skipped + np.arange(total)]
    mask = of_first.astype(np.int64) | (of_second.astype(np.int64) << half)
    return Subsets(mask, first[of_first] + second[of_second])


def all_sums(weights: Ints) -> Ints:
    """Return the total of every subset; bit i of the index is item i."""
    sums = np.zeros(1, dtype=np.int64)
    for weight in weights:
        sums = np.concatenate([sums, sums + weight])
    return sums
