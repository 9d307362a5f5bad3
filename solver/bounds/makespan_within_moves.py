"""Lower bound on the maximum load within a number of moves, computed without search."""

from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.level_bounds import (
    makespan_bound,
    max_unit_loads,
    overload_moves_bound,
)
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.problem import Problem


def makespan_bound_within(
    problem: Problem, max_moves: int, *, high: int, low: int | None = None
) -> int:
    """Return a lower bound on the makespan of placements with at most ``max_moves`` moves.

    A member with an excess of owned load gives at least the heaviest partitions that sum to
    the excess. With different speeds, the makespan is the maximum relative load. ``low`` is a
    known bound, ``high`` an upper limit of the returned bound.
    """
    level = Imbalance(Measure.MAKESPAN)
    low = makespan_bound(problem) if low is None else low
    while low < high:
        middle = (low + high) // 2
        max_loads = max_unit_loads(problem, level, middle)
        if overload_moves_bound(problem, Movement(), max_loads) <= max_moves:
            high = middle
        else:
            low = middle + 1
    return low
