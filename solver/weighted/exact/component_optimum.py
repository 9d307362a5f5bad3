"""Solve weighted groups exactly, one connected component at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.enumeration.subset_enumeration import MAX_ITEMS, contained
from kassay.solver.evaluation import level_value, movement_costs
from kassay.solver.number_ranges import Weights
from kassay.solver.objective import Imbalance, Level, Movement
from kassay.solver.problem import Ints, Placement, Problem, connected_components
from kassay.solver.weighted.exact.exact_small import Subproblem, allowed_items, solve_small

_MAX_MEMBERS = 12


@dataclass(frozen=True, slots=True)
class ComponentOptimum:
    """Placement that is optimal on the first one or two levels, and its values on them."""

    placement: Placement
    values: tuple[int, ...]


def solve_components(
    problem: Problem,
    levels: Sequence[Level],
    *,
    seed: int,
    minimum: int | None = None,
    may_continue: Callable[[], bool] = lambda: True,
) -> ComponentOptimum | None:
    """Minimise imbalance, then movement, exactly for each connected component.

    Return None if the method does not apply, or the time is up. The first level must be the sum
    of squares, or the makespan of a group with one component. A second level must be movement.
    Constraints are ignored. Tolerances are not supported, and each component must be small.
    ``minimum`` is the minimum makespan, if it is known.
    """
    first, moves = levels[0], levels[1] if len(levels) > 1 else Movement()
    if not isinstance(first, Imbalance) or not isinstance(moves, Movement):
        return None
    costs = movement_costs(problem, moves)
    if first.tolerance or moves.tolerance or costs.dtype == object:
        return None
    parts = [part for part in connected_components(problem) if len(part[1])]
    most = {Measure.SUM_OF_SQUARES: len(parts), Measure.MAKESPAN: 1}.get(first.measure, 0)
    if not 0 < len(parts) <= most:
        return None
    placement = np.full(problem.partition_count, NO_OWNER, dtype=np.int32)
    widths = np.array([len(consumers) for consumers in problem.consumer_sets])
    has_choice = widths[problem.consumer_set] > 1
    for members, partitions in parts:
        free, fixed = partitions[has_choice[partitions]], partitions[~has_choice[partitions]]
        placement[fixed] = [problem.consumer_sets[problem.consumer_set[at]][0] for at in fixed]
        if not len(free):
            continue
        if len(free) > MAX_ITEMS or len(members) > _MAX_MEMBERS or _is_repetitive(problem, free):
            return None
        subproblem = Subproblem(
            problem.weight[free],
            tuple(int(problem.weight[fixed[placement[fixed] == at]].sum()) for at in members),
            allowed_items(problem, free, members),
            _move_costs(problem, members, free, costs),
            may_continue,
        )
        optimum = solve_small(subproblem, first.measure, seed=seed, minimum=minimum)
        if optimum is None:
            return None
        for member, mask in zip(members, optimum.masks, strict=True):
            placement[free[contained(mask, len(free))]] = member
    values = tuple(level_value(problem, level, placement) for level in levels[:2])
    return ComponentOptimum(placement, values)


def _move_costs(
    problem: Problem, members: Sequence[int], free: NDArray[np.intp], costs: Weights
) -> Ints:
    """Return the cost of giving each free partition (column) to each member (row)."""
    owner = problem.owner[free]
    is_move = (owner != NO_OWNER) & (owner != np.array(members)[:, None])
    return np.where(is_move, costs[free], 0).astype(np.int64)


def _is_repetitive(problem: Problem, partitions: NDArray[np.intp]) -> bool:
    """Return whether repeated weights would cause too many subsets of equal weight."""
    weights = problem.weight[partitions]
    return len(partitions) > 16 and 2 * len(np.unique(weights)) < len(partitions)
