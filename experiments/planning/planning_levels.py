"""Levels of a plan, which are objectives that are minimised in order."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.objective import EXACT, Imbalance, Level, Movement, Tolerance, default_levels

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
        is_strict = measure is not None and Measure(measure) is Measure.LEXIMAX
        tolerance = WEIGHTED_TOLERANCE if group.is_weighted and not is_strict else EXACT
    return ordered_levels(group, measure=measure, tolerance=tolerance, further=further)


def ordered_levels(
    group: Group,
    *,
    measure: Measure | str | None = None,
    tolerance: Tolerance = EXACT,
    further: Sequence[Level] = (),
) -> tuple[Level, ...]:
    """Return the levels in order: imbalance first, then movement and further levels.

    Movement comes before the further levels unless it is one of them.
    """
    first, movement = default_levels(group, measure=measure, tolerance=tolerance)
    return (first, *further) if _has_movement(further) else (first, movement, *further)


def exact_levels(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return two levels: imbalance without tolerance, then movement."""
    measures = [level.measure for level in levels if isinstance(level, Imbalance)]
    return (Imbalance(measures[0]), Movement())


def without_move_limit(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Remove limits on the number of moves from the constraints."""
    return tuple(rule for rule in constraints if not isinstance(rule, MaxMoves))


def _has_movement(levels: Iterable[Level]) -> bool:
    return any(isinstance(level, Movement) for level in levels)
