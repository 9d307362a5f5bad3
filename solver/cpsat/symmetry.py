"""Rows that are interchangeable, so that the model counts them instead of naming them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.reference.model.topic_partitions import Column
from kassay.solver.constraints import Colocated, Constraint, Forbidden, MaxMoves, Pinned, Separated
from kassay.solver.evaluation import RackTable, bundles, movement_costs, separated_rows, topic_rows
from kassay.solver.objective import CrossRack, Level, Movement, MovementCost, TopicSpread
from kassay.solver.problem import Placement, Problem


@dataclass(frozen=True, slots=True)
class SymmetryClasses:
    """A partition of the rows into classes that no level or constraint tells apart.

    Parameters
    ----------
    of_row
        Class of each row.
    rows
        Rows of each class, ascending.
    """

    of_row: NDArray[np.int64]
    rows: tuple[Column, ...]

    def counts(self, placement: Placement, width: int) -> NDArray[np.int64]:
        """Return how many rows of each class each position has, shape (classes, positions)."""
        keys = self.of_row * width + placement
        return np.bincount(keys, minlength=len(self.rows) * width).reshape(-1, width)

    def spread_out(self, problem: Problem, counts: NDArray[np.int64]) -> Placement:
        """Turn counts into a placement, owners and then lower numbers first."""
        placement = np.full(problem.size, NO_OWNER, dtype=np.int32)
        positions = np.arange(problem.width, dtype=np.int32)
        for index, rows in enumerate(self.rows):
            left = counts[index].copy()
            free = []
            for row in rows.tolist():
                owner = problem.owner[row]
                if owner != NO_OWNER and left[owner] > 0:
                    placement[row] = owner
                    left[owner] -= 1
                else:
                    free.append(row)
            placement[free] = np.repeat(positions, left)
        return placement


def classify(
    problem: Problem, levels: Sequence[Level], constraints: Sequence[Constraint]
) -> SymmetryClasses:
    """Put rows together that agree in everything the levels and constraints look at."""
    if not problem.size:
        return SymmetryClasses(np.zeros(0, dtype=np.int64), ())
    columns = [problem.set_of_row, _codes(problem.weight)]
    if any(isinstance(level, Movement) for level in levels) or any(
        isinstance(constraint, MaxMoves) for constraint in constraints
    ):
        columns.append(problem.owner)
    for level in levels:
        if isinstance(level, Movement) and not isinstance(level.cost, MovementCost):
            columns.append(_codes(movement_costs(problem, level)))
        elif isinstance(level, CrossRack):
            columns.append(np.unique(RackTable(problem).near, axis=0, return_inverse=True)[1])
        elif isinstance(level, TopicSpread):
            columns.append(problem.topic)
    if any(isinstance(constraint, Forbidden) for constraint in constraints):
        columns.append(problem.topic)
    columns.append(_singled_out(problem, constraints))
    table = np.stack([np.asarray(column).reshape(-1) for column in columns], axis=1)
    of_row = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(of_row, kind="stable").astype(np.int32)
    starts = np.flatnonzero(np.diff(of_row[order])) + 1
    return SymmetryClasses(of_row, tuple(np.split(order, starts)))


def _codes(column: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(column, return_inverse=True)[1].reshape(-1)


def _singled_out(problem: Problem, constraints: Iterable[Constraint]) -> NDArray[np.int64]:
    """Give every row that a constraint names by itself a number of its own."""
    alone = np.zeros(problem.size, dtype=np.int64)
    for constraint in constraints:
        rows: list[int] = []
        match constraint:
            case Pinned() | Forbidden():
                if constraint.partition is not None:
                    rows = topic_rows(problem, constraint.topic, constraint.partition).tolist()
            case Colocated():
                rows = [row for rows in bundles(problem, constraint) for row in rows]
            case Separated():
                rows = separated_rows(problem, constraint)
            case _:
                pass
        alone[rows] = np.array(rows, dtype=np.int64) + 1
    return alone
