"""Epsilon-constraint method: solve repeatedly with a decreasing limit on moves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.frontier.frontier_points import (
    Frontier,
    FrontierPoint,
    frontier_point,
    geometric_moves,
    non_dominated,
)
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.problem import Problem
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

if TYPE_CHECKING:
    from kassay.solver.flow.convex_hull import ConvexHull

# Maximum share of the remaining time for one search, and the reciprocal of the minimum share.
_MAX_SHARE = 0.5
_MAX_SHARES = 10


@dataclass(frozen=True, slots=True)
class EpsilonConstraint:
    """Epsilon-constraint method: solve repeatedly with a decreasing limit on moves."""

    group: Group
    problem: Problem
    levels: tuple[Imbalance, Movement]
    constraints: tuple[Constraint, ...]
    step: int
    hull: "ConvexHull | None"
    budget: SearchBudget

    def run(
        self, max_points: int | None, optimum: Solution | None, known: Sequence[FrontierPoint]
    ) -> Frontier:
        """Find both ends of the frontier, then the points between them."""
        measure = self.levels[0].measure
        if self.hull is not None:
            top = self._hull_point(self.hull, self.hull.corners[-1].moves)
            bottom = self._hull_point(self.hull, self.hull.corners[0].moves)
        else:
            best = optimum or self._solve(self.levels, _MAX_SHARE)
            if best.assignment is None:
                return Frontier(measure, (), complete=bool(best.conflict), conflict=best.conflict)
            top = frontier_point(best)
            fewest = self._fewest_moves(best.assignment)
            if fewest is None:
                return Frontier(measure, (top,), complete=False)
            bottom = fewest
        points = self._geometric(top, bottom, max_points, known)
        filled, covered = self._fill(points, max_points)
        kept = non_dominated(filled)
        complete = covered and all(point.is_proven for point in kept)
        return Frontier(measure, kept, complete=complete)

    def _fewest_moves(self, start: Assignment) -> FrontierPoint | None:
        """Find the frontier point with the fewest moves.

        Return None if no assignment was found in time.
        """
        still = self._solve(self.levels, _MAX_SHARE / 2, start=start, rules=(MaxMoves(0),))
        if still.assignment is not None:
            return frontier_point(still)
        fewest = self._solve(self.levels[::-1], _MAX_SHARE, start=start)
        return None if fewest.assignment is None else frontier_point(fewest)

    def _geometric(
        self,
        top: FrontierPoint,
        bottom: FrontierPoint,
        max_points: int | None,
        known: Sequence[FrontierPoint],
    ) -> list[FrontierPoint]:
        """Find frontier points at geometrically growing numbers of moves.

        The result includes both ends of the frontier, by descending moves.
        """
        first, room = bottom.movement.value, top.movement.value - bottom.movement.value
        caps = [first + moves for moves in geometric_moves(room, max_points)]
        found = [bottom]
        for index, cap in enumerate(caps):
            if self._is_next(top, found[-1]):
                break
            if not self.budget.has_work:
                break
            below = self._within(cap, found[-1], 1 / (len(caps) - index + 1))
            if below is not None:
                found.append(below)
        ordered = non_dominated([*found, top, *known])[::-1]
        points = list(ordered[:1])
        for point in ordered[1:]:
            points.append(self._with_bound_of(point, points[-1]))
        return points

    def _fill(
        self, points: list[FrontierPoint], max_points: int | None
    ) -> tuple[list[FrontierPoint], bool]:
        """Find points between the given points; return whether all numbers of moves were tried."""
        filled: list[FrontierPoint] = []
        complete = True
        for index, (upper, lower) in enumerate(pairwise(points)):
            known = len(filled) + len(points) - index
            most = None if max_points is None else max(2, max_points - known + 2)
            between, covered = self._between(upper, lower, most)
            filled += between
            complete = complete and covered
        return [*filled, points[-1]], complete

    def _between(
        self, top: FrontierPoint, bottom: FrontierPoint, max_points: int | None
    ) -> tuple[list[FrontierPoint], bool]:
        """Find points between two points; return whether all numbers of moves were tried."""
        points, point, complete = [top], top, True
        last = bottom.movement.value
        while not self._is_next(point, bottom):
            room = point.movement.value - last
            steps = room if max_points is None else max(1, max_points - len(points))
            if not self.budget.has_work or steps == 1 < room:
                return points, False
            cap = point.movement.value - max(1, room // steps)
            complete = complete and cap == point.movement.value - 1
            below = self._within(cap, bottom, 1 / min(max(2, room), _MAX_SHARES))
            if below is None:
                return points, False
            point = self._with_bound_of(below, point)
            points.append(point)
        return points, complete

    def _within(self, cap: int, bottom: FrontierPoint, share: float) -> FrontierPoint | None:
        """Find the point with minimum imbalance and at most ``cap`` moves.

        Return None if the time limit was reached.
        """
        start, bound = bottom.assignment, 0
        if self.hull is not None:
            moves = max(moves for moves in self.hull.points if moves <= cap)
            known = self._hull_point(self.hull, moves)
            unit = int(self.problem.weight[0]) ** 2
            bound = self.hull.min_squares(cap)
            # The sum of squared counts has the parity of the sum of counts.
            bound = (bound + (bound - self.problem.partition_count) % 2) * unit
            if bound >= known.imbalance.value:
                return known
            start = known.assignment
        solution = self._solve(self.levels, share, start=start, rules=(MaxMoves(cap),))
        if solution.assignment is None:
            return None
        point = frontier_point(solution)
        bound = max(point.imbalance.bound, bound)
        return replace(point, imbalance=replace(point.imbalance, bound=bound))

    def _hull_point(self, hull: "ConvexHull", moves: int) -> FrontierPoint:
        placement = hull.placement(moves)
        squares = sum(load**2 for load in self.problem.loads(placement))
        return FrontierPoint(
            LevelValue(Movement.name, moves, moves),
            LevelValue(self.levels[0].name, squares, squares),
            self.problem.to_assignment(placement),
        )

    def _is_next(self, point: FrontierPoint, bottom: FrontierPoint) -> bool:
        """Return whether no further frontier point can exist between two points."""
        if bottom.movement.value + 1 >= point.movement.value:
            return True
        nearest = point.imbalance.value + (self.step if point.movement.is_proven else 0)
        return nearest + self.step > bottom.imbalance.value

    def _with_bound_of(self, point: FrontierPoint, above: FrontierPoint) -> FrontierPoint:
        """Raise the imbalance bound of a point to the bound of a point with more moves.

        More moves cannot be worse. If the moves of the point above are the fewest at its
        imbalance, fewer moves cost at least one step of imbalance.
        """
        known = above.imbalance.bound
        if above.movement.is_proven:
            known = max(known, above.imbalance.value + self.step)
        bound = max(point.imbalance.bound, known)
        return replace(point, imbalance=replace(point.imbalance, bound=bound))

    def _solve(
        self,
        levels: Sequence[Imbalance | Movement],
        share: float,
        *,
        start: Assignment | None = None,
        rules: Sequence[Constraint] = (),
    ) -> Solution:
        return solve(
            self.group,
            levels=levels,
            constraints=(*self.constraints, *rules),
            initial_assignment=start,
            limits=self.budget.part(share).rest(),
            seed=self.budget.seed,
        )
