"""Better balance by dealing anew what a few members have, exactly, again and again."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kassay.solver.objective import Measure
from kassay.solver.problem import Placement, Problem
from kassay.solver.weighted.exact_small import Subproblem, solve_small
from kassay.solver.weighted.subset_enumeration import Ints, all_sums

# Two members' sets meet in the middle of at most so many partitions; more members are
# dealt anew together only while all their sets can be listed at once.
_PAIR_ITEMS = 22
_FEW_ITEMS = 18
_FAILURES = 60


@dataclass
class LoadBalancer:
    """A placement that gets more even.

    Parameters
    ----------
    problem
        What has been placed; its weights fit 64 bits.
    placement
        Where everything is now; changed in place.
    rng
        Which members and partitions to try.
    """

    problem: Problem
    placement: Placement
    rng: np.random.Generator
    loads: Ints = field(init=False)
    may: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        """Add up the loads."""
        self.loads = np.array(self.problem.loads(self.placement), dtype=np.int64)
        self.may = np.zeros((len(self.problem.sets), self.problem.width), dtype=np.bool_)
        for index, consumers in enumerate(self.problem.sets):
            self.may[index, consumers] = True

    def lower_makespan(self, target: int, go_on: Callable[[], bool]) -> None:
        """Lower the greatest load until it is at most a target, or nothing helps any more."""
        failures = 0
        while self.loads.max() > target and failures < _FAILURES and go_on():
            if self._relieve(int(self.loads.argmax())):
                failures = 0
            else:
                failures += 1

    def even_out(self, go_on: Callable[[], bool]) -> None:
        """Bring pairs of members as close together as they get, most unequal ones first."""
        width = self.problem.width
        for _ in range(4):
            order = np.argsort(self.loads, kind="stable")
            pairs = zip(order[::-1][: width // 2].tolist(), order.tolist(), strict=False)
            if not go_on() or not sum(self._split(heavy, light) for heavy, light in pairs):
                return

    def _relieve(self, heavy: int) -> bool:
        """Lower the load of one member without raising any to where it was."""
        order = np.argsort(self.loads, kind="stable")
        light = order[: max(4, len(order) // 4)]
        for partner in self.rng.permutation(light)[:6].tolist():
            if partner != heavy and self._split(heavy, partner):
                return True
        # Of equal weights no two sets differ but in number: only longer chains are left.
        return self.problem.group.is_weighted and self._deal_few(heavy)

    def _split(self, one: int, other: int) -> bool:
        """Deal two members' partitions anew so that they come as close as can be."""
        rows = self._shared_rows((one, other))
        if len(rows) > _PAIR_ITEMS:
            rows = np.sort(self.rng.choice(rows, _PAIR_ITEMS, replace=False))
        weights = self.problem.weight[rows]
        fixed = int(self.loads[one]) - int(weights[self.placement[rows] == one].sum())
        want = (int(self.loads[one]) + int(self.loads[other])) // 2 - fixed
        mask = _nearest_set(weights, want)
        chosen = (mask >> np.arange(len(rows))) & 1
        new = fixed + int(weights[chosen == 1].sum())
        both = int(self.loads[one]) + int(self.loads[other])
        if max(new, both - new) >= max(int(self.loads[one]), int(self.loads[other])):
            return False
        self.placement[rows] = np.where(chosen == 1, one, other)
        self.loads[one], self.loads[other] = new, both - new
        return True

    def _deal_few(self, heavy: int) -> bool:
        """Deal the partitions of three to five members anew, by exact search."""
        others = [at for at in range(self.problem.width) if at != heavy]
        members = [heavy]
        count = int(np.count_nonzero(self.placement == heavy))
        for at in self.rng.permutation(others).tolist():
            more = int(np.count_nonzero(self.placement == at))
            if count + more <= _FEW_ITEMS and len(members) < 5:
                members.append(at)
                count += more
        if len(members) < 3:
            return False
        rows = np.flatnonzero(np.isin(self.placement, members))
        piece = Subproblem(
            self.problem.weight[rows],
            (0,) * len(members),
            tuple(_mask(self.may[self.problem.set_of_row[rows], at]) for at in members),
            np.zeros((len(members), len(rows)), dtype=np.int64),
        )
        found = solve_small(piece, Measure.SUM_OF_SQUARES)
        before = sorted(self.loads[members].tolist(), reverse=True)
        if found is None or sorted(piece.loads(found.masks), reverse=True) >= before:
            return False
        for member, mask, load in zip(members, found.masks, piece.loads(found.masks), strict=True):
            self.placement[rows[((mask >> np.arange(len(rows))) & 1) == 1]] = member
            self.loads[member] = load
        return True

    def _shared_rows(self, pair: tuple[int, int]) -> NDArray[np.intp]:
        rows: NDArray[np.intp] = np.flatnonzero(
            (self.placement == pair[0]) | (self.placement == pair[1])
        )
        sets = self.problem.set_of_row[rows]
        both: NDArray[np.bool_] = self.may[sets, pair[0]] & self.may[sets, pair[1]]
        return rows[both]


def _mask(bits: NDArray[np.bool_]) -> int:
    return sum(1 << at for at in np.flatnonzero(bits).tolist())


def _nearest_set(weights: Ints, want: int) -> int:
    """Return the mask of a set whose total is nearest to what is wanted."""
    half = len(weights) // 2
    first, second = all_sums(weights[:half]), all_sums(weights[half:])
    order = np.argsort(second, kind="stable")
    ascending = second[order]
    right = np.searchsorted(ascending, want - first).clip(0, len(second) - 1)
    left = (right - 1).clip(0)
    misses = np.abs(np.stack([ascending[left], ascending[right]]) + first - want)
    side, at = np.unravel_index(int(misses.argmin()), misses.shape)
    return int(at) | int(order[(left, right)[int(side)][at]]) << half
