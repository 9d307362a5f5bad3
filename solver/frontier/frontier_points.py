"""Classes for the frontier and for its points."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InternalError
from kassay.reference.model.metrics import Measure
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


def frontier_point(solution: Solution) -> FrontierPoint:
    """Convert a solution with an assignment to a frontier point."""
    if solution.assignment is None:
        raise InternalError("a solution without an assignment has no frontier point")
    imbalance = next(one for one in solution.levels if one.name in set(Measure))
    # A point is proven only without tolerance.
    exact = replace(imbalance, slack=0)
    return FrontierPoint(replace(solution.movement, slack=0), exact, solution.assignment)


def non_dominated(points: Sequence[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """Sort frontier points by number of moves and remove dominated points."""
    kept: list[FrontierPoint] = []
    for point in sorted(points, key=lambda point: (point.movement.value, point.imbalance.value)):
        if not kept or point.imbalance.value < kept[-1].imbalance.value:
            kept.append(point)
    return tuple(kept)
