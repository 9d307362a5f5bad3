"""Enumerate exchanges of partitions that bring the load of one member into a range.

A member receives loose partitions, gives owned partitions away, and takes partitions that other
members own. Received partitions are free; each given or taken partition is a move. Sums of loose
partitions and sums of the others meet in the middle (Horowitz and Sahni, 1974).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kassay.solver.problem import Ints

_MAX_ITEMS = 60  # bits of a mask
_MAX_GIVEN = 4
_MAX_TAKEN = 2
_MAX_MOVES = 6
_ENOUGH = 10  # exchanges; if there are 10, exchanges with more moves are not listed

# Limits per number of moves.
_MAX_SUBSETS = 3_000  # of loose partitions, and of given partitions
_MAX_PAIRS = 400_000  # of given subset and taken subset
_MAX_DRAWN_PAIRS = 300  # of taken partitions
_MAX_RESULTS = 40  # drawn at random


class Exchange(NamedTuple):
    """Exchange of a member: unplaced partitions received, own ones given, others' ones taken."""

    received: tuple[int, ...]
    given: tuple[int, ...]
    taken: tuple[int, ...]
    free_capacity: int


class _Subsets(NamedTuple):
    """Subsets as bit masks, in ascending order of their total weights."""

    total: Ints
    mask: Ints
    size: Ints


@dataclass(frozen=True, slots=True)
class MemberExchanges:
    """Partitions that a member may exchange: its own, unplaced ones, and other members' ones."""

    weight: Ints  # of all partitions of the problem
    loose: Ints  # partitions without a member that this member may receive
    required: tuple[int, ...]  # loose partitions that this member must receive
    own: Ints
    takeable: Ints  # owned by others

    def within(self, low: int, high: int, rng: np.random.Generator) -> Iterator[Exchange]:
        """Yield exchanges with a load change from ``low`` to ``high``, fewest moves first."""
        fixed = int(self.weight[list(self.required)].sum())
        low, high = low - fixed, high - fixed
        loose, own = at_most(self.loose, _MAX_ITEMS, rng), at_most(self.own, _MAX_ITEMS, rng)
        received = _small_subsets(self.weight[loose], _MAX_ITEMS)
        gifts = _small_subsets(-self.weight[own], _MAX_GIVEN)
        found = 0
        for moves in range(_MAX_MOVES + 1):
            for count in range(min(moves, _MAX_TAKEN) + 1):
                partial = np.flatnonzero(gifts.size == moves - count)
                taken = self._taken(count, len(partial), rng)
                if not len(partial) or not len(taken):
                    continue
                change = np.add.outer(gifts.total[partial], self.weight[taken].sum(axis=1)).ravel()
                pairs = _matches(received.total, low - change, high - change, rng)
                found += len(pairs)
                for first, second in pairs:
                    at, pick = divmod(second, len(taken))
                    yield Exchange(
                        self.required + _items(loose, int(received.mask[first])),
                        _items(own, int(gifts.mask[partial[at]])),
                        tuple(taken[pick].tolist()),
                        high - int(change[second]) - int(received.total[first]),
                    )
            if found >= _ENOUGH:
                return

    def _taken(self, count: int, gifts: int, rng: np.random.Generator) -> Ints:
        """Return sets of ``count`` partitions to take from other members, one set per row."""
        if count == 0:
            return np.zeros((1, 0), dtype=np.int64)
        most = _MAX_PAIRS // max(gifts, 1)
        if count == 1:
            return at_most(self.takeable, most, rng)[:, None]
        if len(self.takeable) < count:
            return np.zeros((0, count), dtype=np.int64)
        rows = rng.integers(len(self.takeable), size=(min(most, _MAX_DRAWN_PAIRS), count))
        return self.takeable[rows[rows[:, 0] < rows[:, 1]]]


def at_most(items: Ints, count: int, rng: np.random.Generator) -> Ints:
    """Return all items, or a sorted random selection if there are more than ``count``."""
    if len(items) <= count:
        return items
    return np.sort(rng.choice(items, count, replace=False))


def _items(items: Ints, mask: int) -> tuple[int, ...]:
    return tuple(item for at, item in enumerate(items.tolist()) if mask >> at & 1)


def _small_subsets(weights: Ints, max_size: int) -> _Subsets:
    """List subsets of weights by increasing size, until the limit on their number is reached."""
    total, mask = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    highest = np.full(1, -1)
    parts = [(total, mask)]
    count = 1
    items = np.arange(len(weights))
    for _ in range(min(max_size, len(weights))):
        at, item = np.nonzero(highest[:, None] < items[None, :])
        count += len(at)
        if not len(at) or count > _MAX_SUBSETS:
            break
        total, mask, highest = total[at] + weights[item], mask[at] | (1 << item), item
        parts.append((total, mask))
    sizes = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    totals, masks = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(totals, kind="stable")
    return _Subsets(totals[order], masks[order], sizes[order])


def _matches(
    ascending: Ints, low: Ints, high: Ints, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Pair values of ``ascending`` with ranges that contain them, as pairs of indices.

    If there are too many pairs, they are drawn at random.
    """
    start = np.searchsorted(ascending, low, side="left")
    ends = np.cumsum(np.searchsorted(ascending, high, side="right") - start)
    total = int(ends[-1])
    numbers = np.arange(total) if total <= _MAX_RESULTS else rng.integers(total, size=_MAX_RESULTS)
    second = np.searchsorted(ends, numbers, side="right")
    first = start[second] + numbers - np.where(second > 0, ends[second - 1], 0)
    return list(zip(first.tolist(), second.tolist(), strict=True))
