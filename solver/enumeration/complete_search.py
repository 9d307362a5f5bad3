"""Find the lexicographic minimum over all placements of a small group."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kassay.solver.constraints import Constraint
from kassay.solver.enumeration.level_columns import level_column
from kassay.solver.enumeration.placement_table import list_placements
from kassay.solver.number_ranges import Weights
from kassay.solver.objective import Imbalance, Level, Movement, MovementCost
from kassay.solver.problem import Placement, Problem


@dataclass(frozen=True, slots=True)
class CompleteResult:
    """Best placement and the minimum of each level, or the conflicting constraints.

    A tolerance may make the placement worse than ``best``, a placement with the minimum of each
    level.
    """

    placement: Placement | None
    minima: tuple[int, ...] = ()
    best: tuple[Placement, ...] = ()
    conflict: tuple[Constraint, ...] = ()


def search_all(
    problem: Problem, levels: Sequence[Level], constraints: Sequence[Constraint]
) -> CompleteResult | None:
    """Compare all placements; return the best, or None if there may be too many.

    The minimum of a level is taken over the placements within the tolerances of the earlier
    levels.
    """
    table = list_placements(problem, constraints)
    if table is None:
        return None
    if not len(table.members):
        return CompleteResult(None, conflict=minimal_conflict(problem, constraints))
    minima, best = [], []
    columns: list[Weights] = []
    for level in levels:
        column = level_column(table, level)
        minima.append(int(column.min()))
        best.append(table.placement(int(column.argmin())))
        within = np.asarray(column <= level.tolerance.limit(minima[-1]), dtype=np.bool_)
        columns = [earlier[within] for earlier in [*columns, column]]
        table = table.select(within)
    # The last level is compared first; the earlier levels break ties in their order.
    rows = np.arange(len(table.members))
    for column in [columns[-1], *columns[:-1]]:
        values = column[rows]
        rows = rows[np.asarray(values == values.min(), dtype=np.bool_)]
    return CompleteResult(table.placement(int(rows[0])), tuple(minima), tuple(best))


def lowest_per_moves(
    problem: Problem, level: Level, constraints: Sequence[Constraint], *, most: int
) -> list[Placement] | None:
    """Return placements with the lowest value of a level for at most 0, 1, 2, … moves.

    Among equal values, they have the lowest sum of squared loads, then the lowest moved weight.
    The list ends at ``most`` moves, or at the lowest value of all. Return None if there may be too
    many placements.
    """
    table = list_placements(problem, constraints)
    if table is None:
        return None
    moves, values = level_column(table, Movement()), level_column(table, level)
    moved_weight = level_column(table, Movement(MovementCost.WEIGHT))
    columns = (values, level_column(table, Imbalance()), moves, moved_weight)
    found: list[Placement] = []
    for count in range(most + 1):
        rows = np.flatnonzero(np.asarray(moves <= count, dtype=np.bool_))
        for column in columns:
            rows = rows[np.asarray(column[rows] == column[rows].min(), dtype=np.bool_)]
        found.append(table.placement(int(rows[0])))
        if values[rows[0]] == values.min():
            break
    return found


def minimal_conflict(problem: Problem, constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Return a minimal subset of conflicting constraints.

    Constraints are removed one by one while the remaining constraints conflict.
    """
    conflict = tuple(constraints)
    for constraint in constraints:
        others = tuple(other for other in conflict if other is not constraint)
        table = list_placements(problem, others)
        if table is not None and not len(table.members):
            conflict = others
    return conflict
