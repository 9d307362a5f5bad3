"""Levels of a plan, which are objectives that are minimised in order, and its maximum load."""

from collections.abc import Sequence

from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, measures
from kassay.solver.bounds.counting import level_bound, makespan_bound_within
from kassay.solver.constraints import (
    Capacity,
    Constraint,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
)
from kassay.solver.objective import (
    Imbalance,
    Level,
    Movement,
    MovementCost,
    Tolerance,
    default_levels,
    planning_tolerance,
)
from kassay.solver.problem import build_problem
from kassay.solver.solution import LevelValue, Solution

_SEPARABLE = Capacity | MaxPartitions | Pinned | Forbidden
"""Constraints on members or single partitions: the possible loads have one optimum."""
_WORDS = {
    "makespan": "maximum load",
    "host_makespan": "maximum load of hosts",
    "movement": "moves",
    "cross_rack": "reads across racks",
}


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
    return with_even_loads(default_levels(group, measure=measure, tolerance=tolerance))


def with_even_loads(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Add the sum of squared loads as third level after the maximum load and the moves."""
    match levels:
        case (Imbalance(measure=Measure.MAKESPAN), Movement(cost=MovementCost.COUNT)):
            return (*levels, Imbalance(Measure.SUM_OF_SQUARES))
    return tuple(levels)


def makespan_of(
    group: Group, solution: Solution, constraints: Sequence[Constraint] = ()
) -> LevelValue | None:
    """Return the maximum load of a solution, with a lower bound.

    If members differ in speed, it is the maximum relative load. With equal weights and speeds,
    minimum sum of squares implies minimum makespan (docs/problem.md), unless a constraint limits
    moves or relates partitions. For any other measure, and if another level precedes imbalance,
    the bound is computed without search.
    """
    if solution.assignment is None:
        return None
    value = measures(group, solution.assignment)[Measure.MAKESPAN]
    first = solution.levels[0]
    if first.name == Measure.MAKESPAN:
        bound = first.bound
    elif (
        first.name in (Measure.SUM_OF_SQUARES, Measure.LEXIMAX)
        and first.gap == 0
        and group.uniform_weight is not None
        and all(isinstance(one, _SEPARABLE) for one in constraints)
    ):
        bound = value
    else:
        problem = build_problem(group)
        bound = level_bound(problem, Imbalance(Measure.MAKESPAN))
        limits = [one.limit for one in constraints if isinstance(one, MaxMoves)]
        if limits:
            bound = makespan_bound_within(problem, min(limits), high=max(value, bound), low=bound)
    return LevelValue("makespan", value, min(value, bound))


def level_words(name: str) -> str:
    """Return the words for a level or a measure: its name, or the name that users know.

    Examples
    --------
    >>> level_words("makespan"), level_words("host_makespan"), level_words("sum_of_squares")
    ('maximum load', 'maximum load of hosts', 'sum of squares')
    """
    return _WORDS.get(name, name.replace("_", " "))
