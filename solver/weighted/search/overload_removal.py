"""Remove the overload of a placement by greedy moves and exchanges of partitions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kassay.solver.problem import Ints, Placement, Problem


@dataclass(frozen=True)
class OverloadRemoval:
    """Greedy moves of partitions away from overloaded members, one after the other."""

    problem: Problem
    max_load: int

    def run(
        self, start: Placement, may_continue: Callable[[], bool] = lambda: True
    ) -> Placement | None:
        """Move partitions from overloaded members to others; return None on failure.

        The lightest partition that ends the overload of its member moves first, otherwise
        the heaviest one.
        """
        placement = start.copy()
        loads = np.array(self.problem.loads(placement), dtype=np.int64)
        failed = np.zeros(self.problem.member_count, dtype=np.bool_)
        while (waiting := (loads > self.max_load) & ~failed).any():
            overloaded = int(np.where(waiting, loads, -1).argmax())
            if not may_continue():
                return None
            if not self._move_one(placement, loads, overloaded):
                failed[overloaded] = not self._swap_one(placement, loads, overloaded)
        return None if failed.any() else placement

    def _move_one(self, placement: Placement, loads: Ints, overloaded: int) -> bool:
        partitions = np.flatnonzero(placement == overloaded)
        weights = self.problem.weight[partitions]
        free_capacity = np.where(self.problem.may_consume, self.max_load - loads, -1)
        free_capacity[:, overloaded] = -1
        fits = weights <= free_capacity[self.problem.consumer_set[partitions]].max(axis=1)
        if not (fits & (weights > 0)).any():
            return False
        enough = fits & (weights >= loads[overloaded] - self.max_load)
        if enough.any():
            at = int(np.where(enough, weights, np.iinfo(np.int64).max).argmin())
        else:
            at = int(np.where(fits, weights, -1).argmax())
        rooms = free_capacity[self.problem.consumer_set[partitions[at]]]
        fitting = np.where(rooms >= weights[at], rooms, np.iinfo(np.int64).max)
        self._move(placement, loads, int(partitions[at]), int(fitting.argmin()))
        return True

    def _swap_one(self, placement: Placement, loads: Ints, overloaded: int) -> bool:
        """Exchange a partition of an overloaded member for a lighter one of another member."""
        weight, sets = self.problem.weight, self.problem.consumer_set
        may_consume = self.problem.may_consume
        best: tuple[int, int, int] | None = None
        partitions = np.flatnonzero(placement == overloaded)
        for other in np.argsort(loads, kind="stable")[: max(8, len(loads) // 3)].tolist():
            if other == overloaded:
                continue
            candidates = np.flatnonzero(placement == other)
            change = weight[partitions][:, None] - weight[candidates][None, :]
            allowed = (change > 0) & (change <= self.max_load - loads[other])
            allowed &= may_consume[sets[partitions], other][:, None]
            allowed &= may_consume[sets[candidates], overloaded][None, :]
            if not allowed.any():
                continue
            one, two = np.unravel_index(int(np.where(allowed, change, -1).argmax()), allowed.shape)
            if best is None or change[one, two] > best[0]:
                best = int(change[one, two]), int(partitions[one]), int(candidates[two])
        if best is None:
            return False
        other = int(placement[best[2]])
        self._move(placement, loads, best[1], other)
        self._move(placement, loads, best[2], overloaded)
        return True

    def _move(self, placement: Placement, loads: Ints, partition: int, target: int) -> None:
        weight = int(self.problem.weight[partition])
        loads[placement[partition]] -= weight
        loads[target] += weight
        placement[partition] = target
