"""A whole weighted group solved exactly, piece by piece, where its pieces are small."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds import components
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value, movement_costs
from kassay.solver.objective import Imbalance, Level, Measure, Movement
from kassay.solver.problem import EXACT_IN_64_BITS, Placement, Problem, Weights
from kassay.solver.weighted.exact_small import Subproblem, solve_small
from kassay.solver.weighted.subset_enumeration import MOST_ITEMS

_MOST_MEMBERS = 12


@dataclass(frozen=True, slots=True)
class ComponentOptimum:
    """A placement that is optimal on the first levels, as many as there are values."""

    placement: Placement
    values: tuple[int, ...]


def solve_components(
    problem: Problem, levels: Sequence[Level], constraints: Sequence[Constraint], *, seed: int
) -> ComponentOptimum | None:
    """Solve imbalance and movement exactly; None where the method does not reach.

    It takes the sum of squares, or the makespan of a group in one piece, without
    tolerance or constraints, and then at most movement.
    """
    if constraints or not _is_within_reach(problem, levels):
        return None
    first = levels[0]
    if not isinstance(first, Imbalance):
        return None
    moves = levels[1] if len(levels) > 1 else Movement()
    if not isinstance(moves, Movement):
        return None
    placement = np.full(problem.size, NO_OWNER, dtype=np.int32)
    costs = movement_costs(problem, moves)
    for positions, rows in components(problem):
        part = _Part(positions, rows, costs, first.measure, seed)
        if not _solve_part(problem, part, placement):
            return None
    values = tuple(level_value(problem, level, placement) for level in levels[:2])
    return ComponentOptimum(placement, values)


def _is_within_reach(problem: Problem, levels: Sequence[Level]) -> bool:
    first = levels[0]
    if not isinstance(first, Imbalance) or any(level.tolerance for level in levels[:2]):
        return False
    if problem.total >= EXACT_IN_64_BITS or problem.width == 0:
        return False
    if first.measure is Measure.MAKESPAN:
        busy = [positions for positions, rows in components(problem) if len(rows)]
        return len(busy) == 1
    return first.measure is Measure.SUM_OF_SQUARES


@dataclass(frozen=True, slots=True)
class _Part:
    positions: list[int]
    rows: NDArray[np.intp]
    costs: Weights
    measure: Measure
    seed: int


def _solve_part(problem: Problem, part: _Part, placement: Placement) -> bool:
    """Place the rows of one component; False if it is too large."""
    base = [0] * len(part.positions)
    alone = np.array([len(problem.sets[index]) == 1 for index in problem.set_of_row[part.rows]])
    for row in part.rows[alone].tolist():
        position = int(problem.sets[problem.set_of_row[row]][0])
        placement[row] = position
        base[part.positions.index(position)] += int(problem.weight[row])
    free = part.rows[~alone]
    if not len(free):
        return True
    if len(free) > MOST_ITEMS or len(base) > _MOST_MEMBERS or _is_repetitive(problem, free):
        return False
    found = solve_small(_piece(problem, part, free, base), part.measure, seed=part.seed)
    if found is None:
        return False
    for position, mask in zip(part.positions, found.masks, strict=True):
        placement[free[((mask >> np.arange(len(free))) & 1) == 1]] = position
    return True


def _piece(problem: Problem, part: _Part, free: NDArray[np.intp], base: list[int]) -> Subproblem:
    rank = {position: at for at, position in enumerate(part.positions)}
    table = np.zeros((len(base), len(free)), dtype=np.int64)
    allowed = [0] * len(base)
    for at, row in enumerate(free.tolist()):
        for position in problem.sets[problem.set_of_row[row]].tolist():
            allowed[rank[position]] |= 1 << at
        owner = int(problem.owner[row])
        if owner != NO_OWNER:
            table[:, at] = part.costs[row]
            table[rank[owner], at] = 0
    return Subproblem(problem.weight[free], tuple(base), tuple(allowed), table)


def _is_repetitive(problem: Problem, rows: NDArray[np.intp]) -> bool:
    """Whether few different weights make too many sets weigh the same."""
    return len(rows) > 16 and 2 * len(np.unique(problem.weight[rows])) < len(rows)
