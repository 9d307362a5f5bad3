"""Levels of a plan, which are objectives that are minimised in order."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.objective import (
    EXACT,
    Imbalance,
    Level,
    Movement,
    Tolerance,
    default_levels,
    default_measure,
)

WEIGHTED_TOLERANCE = Tolerance(relative=Fraction(2, 100))
"""Default imbalance tolerance for the plan of a group with partition weights.

Measured weights change by more than 2 % between two captures, and the last 2 % of balance cost
most of the moves.
"""


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


def planning_tolerance(group: Group, measure: Measure | str | None) -> Tolerance:
    """Return the default imbalance tolerance of a plan: 2 % if weights differ, else 0."""
    is_strict = measure is not None and Measure(measure) is Measure.LEXIMAX
    return WEIGHTED_TOLERANCE if group.is_weighted and not is_strict else EXACT


def ordered_levels(
    group: Group,
    *,
    measure: Measure | str | None = None,
    tolerance: Tolerance = EXACT,
    further: Sequence[Level] = (),
) -> tuple[Level, ...]:
    """Return the further levels in their order, with imbalance and movement.

    If the further levels contain no imbalance of members, it comes first. If they contain no
    movement, it comes directly after this imbalance.
    """
    first, movement = default_levels(group, measure=measure, tolerance=tolerance)
    levels = list(further)
    if not any(isinstance(level, Imbalance) for level in levels):
        levels.insert(0, first)
    if not any(isinstance(level, Movement) for level in levels):
        at = next(index for index, level in enumerate(levels) if isinstance(level, Imbalance))
        levels.insert(at + 1, movement)
    return tuple(levels)


def exact_levels(group: Group, levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return two levels: imbalance without tolerance, then movement."""
    measures = [level.measure for level in levels if isinstance(level, Imbalance)]
    return (Imbalance(measures[0] if measures else default_measure(group)), Movement())


def without_move_limit(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Remove limits on the number of moves from the constraints."""
    return tuple(rule for rule in constraints if not isinstance(rule, MaxMoves))
