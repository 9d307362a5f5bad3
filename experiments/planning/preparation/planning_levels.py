"""Levels of a plan, which are objectives that are minimised in order, and its maximum load."""

from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, measures
from kassay.solver.bounds.level_bounds import level_bound
from kassay.solver.objective import (
    Imbalance,
    Level,
    Tolerance,
    default_levels,
    planning_tolerance,
)
from kassay.solver.problem import build_problem
from kassay.solver.solution import LevelValue, Solution


def planning_levels(
    group: Group,
    *,
    measure: Measure | str | None = None,
    tolerance: Tolerance | None = None,
) -> tuple[Level, ...]:
    """Return the levels of a plan, with a default tolerance of 2 % if weights differ.

    If weights are equal, or for the measure leximax, the default tolerance is 0.
    """
    if tolerance is None:
        tolerance = planning_tolerance(group, measure)
    return default_levels(group, measure=measure, tolerance=tolerance)


def makespan_of(group: Group, solution: Solution) -> LevelValue | None:
    """Return the maximum load of a solution, with a lower bound.

    If members differ in speed, it is the maximum relative load. With equal weights and speeds,
    minimum sum of squares implies minimum makespan (docs/problem.md). For any other measure, and
    if another level precedes imbalance, the bound is computed without search.
    """
    if solution.assignment is None:
        return None
    value = measures(group, solution.assignment)[Measure.MAKESPAN]
    first = solution.levels[0]
    if first.name == Measure.MAKESPAN:
        bound = first.bound
    elif first.name in list(Measure) and first.gap == 0 and group.uniform_weight is not None:
        bound = value
    else:
        bound = level_bound(build_problem(group), Imbalance(Measure.MAKESPAN))
    return LevelValue("makespan", value, min(value, bound))
