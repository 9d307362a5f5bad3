"""Classes for the frontier and for its points."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.display import first_items
from kassay.reference.model.errors import InternalError
from kassay.reference.model.metrics import Measure
from kassay.solver.objective import Movement
from kassay.solver.solution import LevelValue, Solution


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """Point of the frontier: moves, imbalance, and an assignment with these values.

    Each bound applies to assignments with at most the other value.
    """

    movement: LevelValue
    imbalance: LevelValue
    assignment: Assignment = field(repr=False)

    @property
    def is_proven(self) -> bool:
        """Return whether the point is proven to be non-dominated."""
        return self.movement.is_proven and self.imbalance.is_proven


class FrontierRow(NamedTuple):
    """Row of the table of frontier points, which all outputs of a frontier read."""

    moves: int
    moves_bound: int
    imbalance: int
    imbalance_bound: int
    is_proven: bool

    def record(self) -> dict[str, object]:
        """Return the row as a JSON object."""
        return {
            "moves": self.moves,
            "imbalance": self.imbalance,
            "bound": {"moves": self.moves_bound, "imbalance": self.imbalance_bound},
            "proven": self.is_proven,
        }


@dataclass(frozen=True, slots=True)
class Frontier:
    """Non-dominated points (moves, imbalance), by ascending number of moves.

    Imbalance descends.

    Parameters
    ----------
    complete
        Whether these are proven to be all non-dominated points.
    conflict
        Infeasible constraints as text, if there are no points.
    """

    measure: Measure
    points: tuple[FrontierPoint, ...]
    complete: bool
    conflict: tuple[str, ...] = ()

    def __repr__(self) -> str:
        points = [f"{row.moves:,} moves: {row.imbalance:,}" for row in self.table()]
        return f"<frontier of {self.measure}: {first_items(points or self.conflict)}>"

    def table(self) -> list[FrontierRow]:
        """Return one row per point, by ascending number of moves."""
        return [
            FrontierRow(
                moves=one.movement.value,
                moves_bound=one.movement.bound,
                imbalance=one.imbalance.value,
                imbalance_bound=one.imbalance.bound,
                is_proven=one.is_proven,
            )
            for one in self.points
        ]


def frontier_point(solution: Solution) -> FrontierPoint:
    """Convert a solution with an assignment to a frontier point.

    The bounds of levels after a level other than imbalance and movement do not apply to the
    frontier: they become 0.
    """
    if solution.assignment is None:
        raise InternalError("a solution without an assignment has no frontier point")
    known = (*Measure, Movement.name)
    others = (index for index, level in enumerate(solution.levels) if level.name not in known)
    first_other = next(others, len(solution.levels))
    imbalance, movement = (
        # A point is proven only without tolerance.
        replace(
            level, slack=0, bound=level.bound if solution.levels.index(level) < first_other else 0
        )
        for level in (solution.imbalance, solution.movement)
    )
    return FrontierPoint(movement, imbalance, solution.assignment)


def non_dominated(points: Sequence[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """Sort frontier points by number of moves and remove dominated points."""
    kept: list[FrontierPoint] = []
    for point in sorted(points, key=lambda point: (point.movement.value, point.imbalance.value)):
        if not kept or point.imbalance.value < kept[-1].imbalance.value:
            kept.append(point)
    return tuple(kept)


def geometric_moves(most: int, max_points: int | None = None) -> list[int]:
    """Return numbers of moves below ``most`` that grow geometrically: 1, 2, 3, 5, 7, 10, ...

    With ``max_points``, at most that number minus 2, as both ends of the frontier are points.

    Examples
    --------
    >>> geometric_moves(60)
    [1, 2, 3, 5, 7, 10, 15, 20, 30, 50]
    >>> geometric_moves(60, 5)
    [2, 10, 30]
    """
    steps = {
        step * 10**power // 10
        for power in range(len(str(most)))
        for step in (10, 15, 20, 30, 50, 70)
    }
    moves = sorted(step for step in steps if step < most)
    kept = len(moves) if max_points is None else min(len(moves), max_points - 2)
    return [moves[(2 * place + 1) * len(moves) // (2 * kept)] for place in range(kept)]
