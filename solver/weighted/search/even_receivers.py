"""Lower the sum of squared loads without more moves and without a higher maximum load."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.evaluation import level_value
from kassay.solver.objective import Imbalance, Movement, MovementCost
from kassay.solver.problem import Ints, Placement, Problem
from kassay.solver.weighted.search.moves_beam import Loads, relative_scale


def lower_squares_within(
    problem: Problem, placement: Placement, may_continue: Callable[[], bool]
) -> Placement:
    """Choose other receivers and other moves with a lower sum of squared loads.

    Among equal sums, lighter partitions move. The result has at most as many moves as
    ``placement``, and at most its maximum load.
    """
    scale = relative_scale(problem)
    loads = np.array(problem.loads(placement), dtype=np.int64) * scale
    # Rounding must not make a move of the placement exceed the limit.
    limit = loads.max(initial=0) * (1 if problem.group.has_equal_speeds else 1 + 1e-12)
    may_receive = problem.may_consume[problem.consumer_set]
    search = _EvenReceivers(problem, placement.copy(), loads, limit, may_receive, scale)
    best, value = placement, _evenness(problem, placement)
    while may_continue():
        search.improve(may_continue)
        found = _evenness(problem, search.placement)  # exact, unlike the search
        if found >= value:
            break
        best, value = search.placement.copy(), found
    return best


def _evenness(problem: Problem, placement: Placement) -> tuple[int, int]:
    weight = Movement(MovementCost.WEIGHT)
    return level_value(problem, Imbalance(), placement), level_value(problem, weight, placement)


@dataclass(frozen=True, slots=True)
class _EvenReceivers:
    """Local search that changes one moved partition after the other."""

    problem: Problem
    placement: Placement  # changed in place
    loads: Loads  # changed in place
    limit: float
    may_receive: NDArray[np.bool_]
    scale: Loads

    def improve(self, may_continue: Callable[[], bool]) -> None:
        """Change each moved partition once if this lowers the sum of squares."""
        for partition in np.flatnonzero(self.placement != self.problem.owner).tolist():
            if not may_continue():
                return
            for moved, target in self._best_change(partition):
                weight, member = self.problem.weight[moved], self.placement[moved]
                self.loads[member] -= weight * self.scale[member]
                self.loads[target] += weight * self.scale[target]
                self.placement[moved] = target

    def _best_change(self, partition: int) -> list[tuple[int, int]]:
        """Return the changes of one moved partition that lower the sum of squares most.

        The partition gets another receiver, or stays with its owner while another one moves.
        """
        own, base, scale = int(self.problem.weight[partition]), self.loads.copy(), self.scale
        member = int(self.placement[partition])
        base[member] -= own * scale[member]
        middle = base + own * scale / 2  # half of the change of squares by weight
        drop = own * (middle[member] - middle)
        drop[~self.may_receive[partition] | (base + own * scale > self.limit)] = -1
        target = int(drop.argmax())
        best, change = float(drop[target]), [(partition, target)]
        owner = int(self.problem.owner[partition])
        if owner != NO_OWNER:
            returned = own * float(middle[member] - middle[owner])
            base[owner] += own * scale[owner]
            others, drops = self._drops(base)
            highest = returned + float(drops.max(initial=-np.inf))
            if highest >= max(best, 0):
                rows, columns = np.nonzero(returned + drops == highest)
                at = int(self.problem.weight[others[rows]].argmin())
                lightest = int(others[rows[at]])
                if highest > best or self.problem.weight[lightest] < own:
                    return [(partition, owner), (lightest, int(columns[at]))]
        return change if best > 0 else []

    def _drops(self, loads: Loads) -> tuple[Ints, NDArray[np.float64]]:
        """Return the partitions that have not moved, and half the drop of squares per receiver."""
        problem, limit = self.problem, self.limit
        others = np.flatnonzero((self.placement == problem.owner) & (problem.weight > 0))
        weight, scale = problem.weight[others][:, None], self.scale
        source, own = loads[self.placement[others]], scale[self.placement[others]]
        after = loads[None, :] + weight * scale[None, :]
        permitted = self.may_receive[others] & (after <= limit)
        over = np.flatnonzero(loads > limit)
        if len(over):  # The returned partition overloads its owner: another partition must leave.
            leaves = (self.placement[others] == over[0]) & (source - weight[:, 0] * own <= limit)
            permitted &= leaves[:, None]
        change = source[:, None] - weight * (own[:, None] + scale) / 2 - loads[None, :]
        drops = np.where(permitted, weight * change, -np.inf)
        drops[np.arange(len(others)), self.placement[others]] = -np.inf
        return others, drops
