"""Levels of a plan, which are objectives that are minimised in order."""

from collections.abc import Iterable, Sequence

from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.objective import (
    Imbalance,
    Level,
    Movement,
    Tolerance,
    default_measure,
    ordered_levels,
    planning_tolerance,
)


def planning_levels(
    group: Group,
    *,
    measure: Measure | str | None = None,
    tolerance: Tolerance | None = None,
    further: Sequence[Level] = (),
) -> tuple[Level, ...]:
    """Return the levels of a plan, with a default tolerance of 2 % if weights differ.

    If weights are equal, or for the measure leximax, the default tolerance is 0.
    """
    if tolerance is None:
        tolerance = planning_tolerance(group, measure)
    return ordered_levels(group, measure=measure, tolerance=tolerance, further=further)


def exact_levels(group: Group, levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return two levels: imbalance without tolerance, then movement."""
    measures = [level.measure for level in levels if isinstance(level, Imbalance)]
    return (Imbalance(measures[0] if measures else default_measure(group)), Movement())


def without_move_limit(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Remove limits on the number of moves from the constraints."""
    return tuple(rule for rule in constraints if not isinstance(rule, MaxMoves))
