"""Patterns: sets of weights that one member can receive within a capacity."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

import numpy as np

from kassay.solver.limits import SearchBudget

_CHECK_WORK, _WORK_PER_STEP = 4096, 1e-6
_STEPS = 10  # per permitted pattern
_MAX_COUNTING_WORK = 20_000_000


@dataclass(frozen=True, slots=True)
class WeightClasses:
    """Distinct weights in descending order, and the number of partitions with each weight."""

    sizes: tuple[int, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, weights: Sequence[int]) -> "WeightClasses":
        """Count equal weights in a list; weights of 0 are ignored."""
        counted = Counter(weight for weight in weights if weight)
        sizes = tuple(sorted(counted, reverse=True))
        return cls(sizes, tuple(counted[size] for size in sizes))

    @property
    def total(self) -> int:
        """Return the sum of all weights."""
        return sum(map(mul, self.sizes, self.counts))

    def count_sets(self, least: int, capacity: int) -> float:
        """Count the sets of weights with a load from ``least`` to ``capacity``, as a float.

        Return 0 if the count takes long.
        """
        if capacity * sum(self.counts) > _MAX_COUNTING_WORK:
            return 0
        number = np.zeros(capacity + 1)  # of sets, by load
        number[0] = 1
        for size, count in zip(self.sizes, self.counts, strict=True):
            larger = number.copy()
            for load in range(size, min(size * count, capacity) + 1, size):
                with np.errstate(over="ignore"):
                    larger[load:] += number[: capacity + 1 - load]
            number = larger
        return float(number[least:].sum())


Pattern = tuple[int, ...]  # indices of weight classes, ascending, with repetition


@dataclass
class PatternSearch:
    """Depth-first search for the maximal patterns with a load from ``least`` to ``capacity``."""

    classes: WeightClasses
    least: int
    capacity: int
    limit: int
    budget: SearchBudget

    def list_patterns(self) -> list[Pattern] | None:
        """Return all maximal patterns. Return None if there are too many or the time is up.

        No further weight fits into a maximal pattern. In a cover of all weights by patterns,
        each pattern can be replaced by a maximal one.
        """
        if self.classes.count_sets(self.least, self.capacity) > _STEPS * self.limit:
            return None  # each of these sets takes a step
        sizes, counts, capacity = self.classes.sizes, self.classes.counts, self.capacity
        negative = [-size for size in sizes]  # ascending, for bisection
        after = self._sums_after()
        left = list(counts)
        found: list[Pattern] = []
        chosen: list[int] = []
        load, at, steps, end = 0, 0, 0, len(sizes)
        while True:
            steps += 1
            if steps % _CHECK_WORK == 0:
                if not self.budget.has_work:
                    return None
                self.budget.spend(_CHECK_WORK * _WORK_PER_STEP)
            at = bisect_left(negative, load - capacity, at)
            while at < end and not left[at]:
                at += 1
            if at < end and load + after[at] >= self.least:
                chosen.append(at)
                left[at] -= 1
                load += sizes[at]
                continue
            if at == end and load >= self.least and self._is_maximal(left, load):
                found.append(tuple(chosen))
            if len(found) > self.limit or steps > _STEPS * self.limit:
                return None
            if not chosen:
                return found
            at = chosen.pop()
            left[at] += 1
            load -= sizes[at]
            at += 1

    def _sums_after(self) -> list[int]:
        loads = map(mul, self.classes.sizes, self.classes.counts)
        return list(accumulate(reversed([*loads])))[::-1]

    def _is_maximal(self, left: Sequence[int], load: int) -> bool:
        for size, count in zip(reversed(self.classes.sizes), reversed(left), strict=True):
            if count:
                return load + size > self.capacity
        return True
