"""Lower the sum of squared loads without more moves and without a higher maximum load."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Ints, Placement, Problem


def lower_squares_within(
    problem: Problem,
    placement: Placement,
    may_receive: NDArray[np.bool_],
    may_continue: Callable[[], bool],
) -> Placement:
    """Choose other receivers and other moves with a lower sum of squared loads.

    The result has at most as many moves, and at most the maximum load, of ``placement``.
    ``may_receive`` states whether a member may receive a partition, as in `MovesBeam`.
    """
    loads = np.array(problem.loads(placement), dtype=np.int64)
    limit = int(loads.max(initial=0))
    search = _EvenReceivers(problem, placement.copy(), loads, limit, may_receive)
    best, value = placement, sum(load**2 for load in loads.tolist())
    while may_continue():
        search.improve(may_continue)
        squares = sum(load**2 for load in search.loads.tolist())  # exact, unlike the search
        if squares >= value:
            break
        best, value = search.placement.copy(), squares
    return best


@dataclass(frozen=True, slots=True)
class _EvenReceivers:
    """Local search that changes one moved partition after the other."""

    problem: Problem
    placement: Placement  # changed in place
    loads: Ints  # changed in place
    limit: int
    may_receive: NDArray[np.bool_]

    def improve(self, may_continue: Callable[[], bool]) -> None:
        """Change each moved partition once if this lowers the sum of squares."""
        for partition in np.flatnonzero(self.placement != self.problem.owner).tolist():
            if not may_continue():
                return
            for moved, target in self._best_change(partition):
                self.loads[self.placement[moved]] -= self.problem.weight[moved]
                self.loads[target] += self.problem.weight[moved]
                self.placement[moved] = target

    def _best_change(self, partition: int) -> list[tuple[int, int]]:
        """Return the changes of one moved partition that lower the sum of squares most.

        The partition gets another receiver, or stays with its owner while another one moves.
        """
        own, base = int(self.problem.weight[partition]), self.loads.copy()
        member = int(self.placement[partition])
        base[member] -= own
        drop = own * (int(base[member]) - base).astype(np.float64)
        drop[~self.may_receive[partition] | (base + own > self.limit)] = -1
        target = int(drop.argmax())
        best, change = float(drop[target]), [(partition, target)]
        owner = int(self.problem.owner[partition])
        if owner != NO_OWNER:
            returned = own * float(base[member] - base[owner])
            base[owner] += own
            others, drops = self._drops(base)
            if drops.size:
                row, column = np.unravel_index(int(drops.argmax()), drops.shape)
                if returned + drops[row, column] > best:
                    best = returned + float(drops[row, column])
                    change = [(partition, owner), (int(others[row]), int(column))]
        return change if best > 0 else []

    def _drops(self, loads: Ints) -> tuple[Ints, NDArray[np.float64]]:
        """Return the partitions that have not moved, and half the drop of squares per receiver."""
        problem, limit = self.problem, self.limit
        others = np.flatnonzero((self.placement == problem.owner) & (problem.weight > 0))
        weight = problem.weight[others]
        source = loads[self.placement[others]]
        permitted = self.may_receive[others] & (loads[None, :] + weight[:, None] <= limit)
        over = np.flatnonzero(loads > limit)
        if len(over):  # The returned partition overloads its owner: another partition must leave.
            leaves = (self.placement[others] == over[0]) & (source - weight <= limit)
            permitted &= leaves[:, None]
        change = ((source - weight)[:, None] - loads[None, :]).astype(np.float64)
        drops = np.where(permitted, weight[:, None] * change, -np.inf)
        drops[np.arange(len(others)), self.placement[others]] = -np.inf
        return others, drops
