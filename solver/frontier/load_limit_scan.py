"""Find frontier points of weighted groups by fast heuristics, for many load limits."""

from collections.abc import Sequence

from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.level_bounds import overload_moves_bound
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value, violated
from kassay.solver.frontier.frontier_points import FrontierPoint
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.problem import EXACT_IN_64_BITS, Problem
from kassay.solver.solution import LevelValue

_SCAN_SECONDS = 2.0
_MIN_PARTITIONS = 12


def scanned_points(
    problem: Problem,
    levels: tuple[Imbalance, Movement],
    rules: Sequence[Constraint],
    budget: SearchBudget,
) -> list[FrontierPoint]:
    """Return frontier points that fast heuristics find for a series of load limits.

    The list is empty for other measures than the makespan, for equal weights, for small groups
    and after a stop of the search.
    """
    imbalance, movement = levels
    if (
        imbalance.measure is not Measure.MAKESPAN
        or not problem.group.is_weighted
        or not problem.group.has_equal_speeds
        or problem.total >= EXACT_IN_64_BITS
        or problem.partition_count < _MIN_PARTITIONS
        or budget.limits.is_stopped
    ):
        return []
    # Imported here: only weighted groups need OR-Tools.
    from kassay.solver.weighted.search.limited_moves import (  # noqa: PLC0415
        makespan_bound_within,
        scan_load_limits,
    )

    points = []
    scan = budget.at_least(_SCAN_SECONDS).until(_SCAN_SECONDS)
    for placement in scan_load_limits(problem, scan):
        if any(violated(problem, rules, placement)):
            continue
        makespan = max(problem.loads(placement))
        moves = level_value(problem, movement, placement)
        fewest = overload_moves_bound(problem, movement, [makespan] * problem.member_count)
        lowest = min(makespan_bound_within(problem, moves), makespan)
        points.append(
            FrontierPoint(
                LevelValue(Movement.name, moves, min(fewest, moves)),
                LevelValue(imbalance.name, makespan, lowest),
                problem.to_assignment(placement),
            )
        )
    return points
