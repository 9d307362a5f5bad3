"""Local search for balanced loads: repeated exact reassignment between two members."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kassay.solver.problem import Placement, Problem, Weights

# Maximum number of partitions that are reassigned at once.
_MAX_PAIR_ITEMS = 22
_MAX_FAILURES = 60
_MAX_PAIR_FAILURES = 200


@dataclass
class LoadBalancer:
    """Local search for balanced loads; it changes the placement in place.

    ``base`` is an additional load per member, which does not move. ``permits`` returns whether a
    placement may be kept; by default, all may.
    """

    problem: Problem
    placement: Placement
    rng: np.random.Generator
    base: Sequence[int]
    permits: Callable[[Placement], bool] = lambda _: True
    loads: Weights = field(init=False)

    def __post_init__(self) -> None:
        loads = map(sum, zip(self.problem.loads(self.placement), self.base, strict=True))
        self.loads = np.array([*loads], dtype=self.problem.weight.dtype)

    def lower_makespan(self, target: int, may_continue: Callable[[], bool]) -> None:
        """Lower the makespan until the target, the limit, or too many failures in a row."""
        failures = 0
        while self.loads.max() > target and failures < _MAX_FAILURES and may_continue():
            if self._lower_load(int(self.loads.argmax())):
                failures = 0
            else:
                failures += 1

    def even_out(self, may_continue: Callable[[], bool]) -> None:
        """Balance pairs of members, in descending order of their load difference."""
        width = self.problem.member_count
        for _ in range(4):
            order = np.argsort(self.loads, kind="stable")
            pairs = zip(order[::-1][: width // 2].tolist(), order.tolist(), strict=False)
            if not may_continue() or not sum(
                self._balance_pair(one, other) for one, other in pairs
            ):
                return

    def balance_random_pairs(self, may_continue: Callable[[], bool]) -> None:
        """Balance random pairs of members until many of them in a row cannot be balanced."""
        width = self.problem.member_count
        failures = 0
        while width > 1 and failures < _MAX_PAIR_FAILURES and may_continue():
            one, other = self.rng.choice(width, 2, replace=False).tolist()
            failures = 0 if self._balance_pair(one, other) else failures + 1

    def _lower_load(self, member: int) -> bool:
        """Lower the load of one member by an exchange with another member."""
        order = np.argsort(self.loads, kind="stable")
        least_loaded = order[: max(4, len(order) // 4)]
        for partner in self.rng.permutation(least_loaded)[:6].tolist():
            if partner != member and self._balance_pair(member, partner):
                return True
        return False

    def _balance_pair(self, one: int, other: int) -> bool:
        """Reassign the partitions of two members to minimise the difference of their loads."""
        partitions = self._common_partitions((one, other))
        if len(partitions) > _MAX_PAIR_ITEMS:
            partitions = np.sort(self.rng.choice(partitions, _MAX_PAIR_ITEMS, replace=False))
        weights = self.problem.weight[partitions]
        load, other_load = int(self.loads[one]), int(self.loads[other])
        both = load + other_load
        fixed = load - int(weights[self.placement[partitions] == one].sum())
        nearest = _nearest_subset(weights, both // 2 - fixed)
        chosen = np.asarray((nearest >> np.arange(len(partitions))) & 1, dtype=np.bool_)
        new = fixed + int(weights[chosen].sum())
        if max(new, both - new) >= max(load, other_load):
            return False
        return self._change(partitions, np.where(chosen, one, other))

    def _change(self, partitions: NDArray[np.intp], receivers: Placement) -> bool:
        before = self.placement[partitions]
        self.placement[partitions] = receivers
        if not self.permits(self.placement):
            self.placement[partitions] = before
            return False
        weights = self.problem.weight[partitions]
        np.subtract.at(self.loads, before, weights)
        np.add.at(self.loads, receivers, weights)
        return True

    def _common_partitions(self, pair: tuple[int, int]) -> NDArray[np.intp]:
        partitions = np.flatnonzero(np.isin(self.placement, pair))
        may_consume = self.problem.may_consume[self.problem.consumer_set[partitions]]
        return partitions[may_consume[:, pair].all(axis=1)]


def _all_sums(weights: Weights) -> Weights:
    """Return the total weight of every subset; bit i of the index of a subset means item i."""
    sums = np.zeros(1, dtype=weights.dtype)
    for weight in weights:
        sums = np.concatenate([sums, sums + weight])
    return sums


def _nearest_subset(weights: Weights, target: int) -> int:
    """Return the bit mask of a subset with the total weight nearest to a target."""
    half = len(weights) // 2
    first, second = _all_sums(weights[:half]), _all_sums(weights[half:])
    order = np.argsort(second, kind="stable")
    ascending = second[order]
    right = np.searchsorted(ascending, target - first).clip(0, len(second) - 1)
    left = (right - 1).clip(0)
    misses = np.abs(np.stack([ascending[left], ascending[right]]) + first - target)
    side, at = np.unravel_index(int(misses.argmin()), misses.shape)
    return int(at) | int(order[(left, right)[int(side)][at]]) << half
