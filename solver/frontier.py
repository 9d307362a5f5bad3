"""Frontier: all non-dominated pairs of imbalance and number of moves."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InternalError, UsageError
from kassay.reference.model.group import Group, require_group
from kassay.reference.model.metrics import Measure
from kassay.solver.bounds import overload_moves_bound
from kassay.solver.constraints import Constraint, MaxMoves, check_constraints, group_constraints
from kassay.solver.evaluation import level_value, violated
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Movement, default_levels
from kassay.solver.problem import EXACT_IN_64_BITS, Problem, build_problem
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

if TYPE_CHECKING:
    from kassay.solver.flow.convex_frontier import ConvexHull

# Maximum share of the time left that one search takes, and the reciprocal of the minimum.
_MAX_SHARE = 0.5
_MAX_SHARES = 10
_SCAN_SECONDS = 2.0
_MIN_SCANNED_PARTITIONS = 12
_MAX_WEIGHT = 2**20  # squares of loads fit 64 bits


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
    """Non-dominated points by ascending moves, hence by descending imbalance.

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


def frontier(
    group: Group,
    *,
    measure: Measure | str | None = None,
    constraints: Iterable[Constraint] = (),
    max_points: int | None = None,
    optimum: Solution | None = None,
    known: Sequence[Solution] = (),
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> Frontier:
    """Find non-dominated pairs of moves and imbalance, each with bounds.

    Points at geometric numbers of moves come first (1, 2, 3, 5, 7, 10, 15, 20, ...), then the
    points between them as long as time is left.

    Parameters
    ----------
    measure
        Measure of imbalance; by default as in `default_levels`.
    max_points
        Maximum number of points, geometric in the number of moves; at least 2.
    optimum
        Solution of the same measure and constraints, then movement, if it is known.
    known
        Further solutions that meet the constraints; each one gives a point.
    limits
        Time for all points together; the other limits apply per search.

    Raises
    ------
    UsageError
        If ``max_points`` is below 2.
    InputError
        If a constraint refers to a member, topic or partition that the group does not have.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> members = (
    ...     Member(id="a", subscription=("t",), owned=[("t", p) for p in range(4)]),
    ...     Member(id="b", subscription=("t",)),
    ... )
    >>> group = Group(topics=(Topic(name="t", partitions=4),), members=members)
    >>> [(point.movement.value, point.imbalance.value) for point in frontier(group).points]
    [(0, 16), (1, 10), (2, 8)]
    """
    require_group(group)
    if max_points is not None and max_points < 2:
        raise UsageError(f"max_points must be at least 2, got {max_points!r}")
    first, second = default_levels(group, measure=measure)
    if not isinstance(first, Imbalance) or not isinstance(second, Movement):
        raise InternalError("the default levels must be imbalance, then movement")
    deadline = time.monotonic() + limits.time
    problem, rules = build_problem(group), tuple(constraints)
    check_constraints(group, rules)
    search = _EpsilonConstraint(
        group=group,
        levels=(first, second),
        problem=problem,
        constraints=rules,
        step=_min_step(problem, first.measure),
        hull=_hull(problem, first.measure, (*group_constraints(group), *rules), limits.time),
        deadline=deadline,
        limits=limits,
        seed=seed,
    )
    return search.run(max_points, optimum, [_point(one) for one in known])


def geometric_moves(most: int, max_points: int | None = None) -> list[int]:
    """Return round numbers below ``most`` that grow geometrically: 1, 2, 3, 5, 7, 10, 15, ...

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


def _min_step(problem: Problem, measure: Measure) -> int:
    """Return the minimum difference of two different imbalances of a group."""
    if measure is not Measure.SUM_OF_SQUARES or not problem.partition_count:
        return 1
    # The sum of squares has the parity of the sum of loads, which is fixed.
    return 2 * max(1, problem.group.common_weight or 0) ** 2


def _hull(
    problem: Problem, measure: Measure, rules: Sequence[Constraint], time_limit: float
) -> "ConvexHull | None":
    """Find the convex hull of the frontier by network flows, if weights are equal."""
    if rules or measure is not Measure.SUM_OF_SQUARES or not time_limit > 0:
        return None
    weight = problem.group.common_weight
    if not problem.partition_count or not weight or weight >= _MAX_WEIGHT:
        return None
    # Imported here: only equal weights need OR-Tools' flows.
    from kassay.solver.flow.convex_frontier import convex_hull  # noqa: PLC0415

    return convex_hull(problem)


@dataclass(frozen=True, slots=True)
class _EpsilonConstraint:
    """Epsilon-constraint method: solve repeatedly with a decreasing limit on moves."""

    group: Group
    problem: Problem
    levels: tuple[Imbalance, Movement]
    constraints: tuple[Constraint, ...]
    step: int
    hull: "ConvexHull | None"
    deadline: float
    limits: SearchLimits
    seed: int

    def run(
        self,
        max_points: int | None,
        optimum: Solution | None,
        known: Sequence[FrontierPoint],
    ) -> Frontier:
        """Find both ends of the frontier, then the points between them."""
        measure = self.levels[0].measure
        if self.hull is not None:
            top = self._hull_point(self.hull.corners[-1].moves)
            bottom = self._hull_point(self.hull.corners[0].moves)
        else:
            best = optimum or self._solve(self.levels, _MAX_SHARE)
            if best.assignment is None:
                return Frontier(measure, (), complete=bool(best.conflict), conflict=best.conflict)
            top = _point(best)
            fewest = self._fewest_moves(best.assignment)
            if fewest is None:
                return Frontier(measure, (top,), complete=False)
            bottom = fewest
        points = self._geometric(top, bottom, max_points, known)
        points, complete = self._fill(points, max_points)
        kept = _non_dominated(points)
        proven = complete and all(point.is_proven for point in kept)
        return Frontier(measure, kept, complete=proven)

    def _fewest_moves(self, start: Assignment) -> FrontierPoint | None:
        """Return the point with the fewest moves, or None if no assignment was found in time."""
        still = self._solve(self.levels, _MAX_SHARE / 2, start=start, rules=(MaxMoves(0),))
        if still.assignment is not None:
            return _point(still)
        fewest = self._solve(self.levels[::-1], _MAX_SHARE, start=start)
        return None if fewest.assignment is None else _point(fewest)

    def _geometric(
        self,
        top: FrontierPoint,
        bottom: FrontierPoint,
        max_points: int | None,
        known: Sequence[FrontierPoint],
    ) -> list[FrontierPoint]:
        """Return points at geometric numbers of moves and both ends, by descending moves."""
        first, room = bottom.movement.value, top.movement.value - bottom.movement.value
        caps = [first + moves for moves in geometric_moves(room, max_points)]
        scanned = self._scanned()
        found = [bottom]
        for index, cap in enumerate(caps):
            if self._is_next(top, found[-1]):
                break
            start = min(
                (point for point in [*scanned, found[-1]] if point.movement.value <= cap),
                key=lambda point: (point.imbalance.value, point.movement.value),
            )
            below = None
            if time.monotonic() < self.deadline:
                below = self._within(cap, start, 1 / (len(caps) - index + 1))
            found.append(start if below is None else below)
        ordered = _non_dominated([*found, top, *known])[::-1]
        points = list(ordered[:1])
        for point in ordered[1:]:
            points.append(self._with_bound_of(point, points[-1]))
        return points

    def _scanned(self) -> list[FrontierPoint]:
        """Return points of weighted groups that need no search."""
        problem = self.problem
        if (
            self.levels[0].measure is not Measure.MAKESPAN
            or not problem.group.is_weighted
            or problem.total >= EXACT_IN_64_BITS
            or problem.partition_count < _MIN_SCANNED_PARTITIONS
        ):
            return []
        # Imported here: only weighted groups need OR-Tools.
        from kassay.solver.weighted.limited_moves import (  # noqa: PLC0415
            makespan_bound_within,
            scan_load_limits,
        )

        rules = (*group_constraints(self.group), *self.constraints)
        points = []
        for placement in scan_load_limits(problem, _SCAN_SECONDS):
            if any(violated(problem, rules, placement)):
                continue
            makespan = max(problem.loads(placement))
            moves = level_value(problem, self.levels[1], placement)
            fewest = overload_moves_bound(
                problem, self.levels[1], [makespan] * problem.member_count
            )
            lowest = min(makespan_bound_within(problem, moves), makespan)
            points.append(
                FrontierPoint(
                    LevelValue(Movement.name, moves, min(fewest, moves)),
                    LevelValue(self.levels[0].name, makespan, lowest),
                    problem.to_assignment(placement),
                )
            )
        return points

    def _fill(
        self, points: list[FrontierPoint], max_points: int | None
    ) -> tuple[list[FrontierPoint], bool]:
        """Search the points between the given ones, and return whether all moves were covered."""
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
        """Return points by descending moves, and whether every number of moves was covered."""
        points, point, complete = [top], top, True
        last = bottom.movement.value
        while not self._is_next(point, bottom):
            room = point.movement.value - last
            steps = room if max_points is None else max(1, max_points - len(points))
            if time.monotonic() >= self.deadline or steps == 1 < room:
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
        """Return the point with at most ``cap`` moves, or None if the time limit was reached."""
        start, bound = bottom.assignment, 0
        if self.hull is not None:
            known = self._hull_point(max(moves for moves in self.hull.points if moves <= cap))
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
        point = _point(solution)
        bound = max(point.imbalance.bound, bound)
        return replace(point, imbalance=replace(point.imbalance, bound=bound))

    def _hull_point(self, moves: int) -> FrontierPoint:
        """Convert a point of the convex hull to a frontier point."""
        if self.hull is None:
            raise InternalError("the convex hull was not computed")
        placement = self.hull.placement(moves)
        squares = sum(load**2 for load in self.problem.loads(placement))
        assignment = self.problem.to_assignment(placement)
        return FrontierPoint(
            LevelValue(Movement.name, moves, moves),
            LevelValue(self.levels[0].name, squares, squares),
            assignment,
        )

    def _is_next(self, point: FrontierPoint, bottom: FrontierPoint) -> bool:
        """Return whether no frontier point can exist between a point and the last found point."""
        if bottom.movement.value + 1 >= point.movement.value:
            return True
        nearest = point.imbalance.value + (self.step if point.movement.is_proven else 0)
        return nearest + self.step > bottom.imbalance.value

    def _with_bound_of(self, point: FrontierPoint, above: FrontierPoint) -> FrontierPoint:
        """Raise the bound of a point with the bound of the next point, which has more moves.

        If the moves of the point above are the fewest at its imbalance, fewer moves cost at
        least one step of imbalance.
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
        left = max(0.0, self.deadline - time.monotonic())
        return solve(
            self.group,
            levels=levels,
            constraints=(*self.constraints, *rules),
            initial_assignment=start,
            limits=replace(self.limits, time=left * share),
            seed=self.seed,
        )


def _point(solution: Solution) -> FrontierPoint:
    if solution.assignment is None:
        raise InternalError("the frontier point has no assignment")
    imbalance = next(one for one in solution.levels if one.name in set(Measure))
    # A point is proven only without tolerance.
    exact = replace(imbalance, slack=0)
    return FrontierPoint(replace(solution.movement, slack=0), exact, solution.assignment)


def _non_dominated(points: Sequence[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """Sort frontier points by number of moves and remove dominated points."""
    kept: list[FrontierPoint] = []
    for point in sorted(points, key=lambda point: (point.movement.value, point.imbalance.value)):
        if not kept or point.imbalance.value < kept[-1].imbalance.value:
            kept.append(point)
    return tuple(kept)
