"""The frontier: what imbalance every number of moves buys, with bounds."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.solver.constraints import Constraint, MaxMoves, check_constraints, group_constraints
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Measure, Movement, default_levels
from kassay.solver.problem import Problem, build_problem
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

if TYPE_CHECKING:
    from kassay.solver.flow.convex_frontier import Hull

# A search takes at most this share of the time left, so that some is left for other points.
_LARGEST_SHARE = 0.5
_MOST_SHARES = 10
_LARGEST_WEIGHT = 2**20  # so that squares of loads stay far from 64 bits


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One trade-off between moves and imbalance.

    Parameters
    ----------
    movement
        Partitions that move; the bound is for assignments at most as imbalanced.
    imbalance
        By the frontier's measure; the bound is for assignments with at most as many moves.
    assignment
        An assignment that has these values.
    """

    movement: LevelValue
    imbalance: LevelValue
    assignment: Assignment = field(repr=False)

    @property
    def is_proven(self) -> bool:
        """Whether no assignment has fewer moves without more imbalance, or the other way."""
        return self.movement.is_proven and self.imbalance.is_proven


@dataclass(frozen=True, slots=True)
class Frontier:
    """The points found that no other one dominates.

    Parameters
    ----------
    measure
        The measure of imbalance.
    points
        By ascending moves, hence by descending imbalance.
    complete
        Whether this is proven to be every non-dominated point.
    conflict
        Constraints that cannot hold together, in words; there are no points then.
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
    most_points: int | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> Frontier:
    """Find every non-dominated pair of moves and imbalance.

    Parameters
    ----------
    group
        The rebalance.
    measure
        Of the imbalance; by default as in `default_levels`.
    constraints
        What must hold besides.
    most_points
        Stop at so many points, spread over the numbers of moves; at least 2.
    limits
        Time for all points together; the other limits apply per search.
    seed
        Seed of all searches.

    Raises
    ------
    ValueError
        If a limit is out of range.
    InvalidGroupError
        If a constraint speaks of what the group does not have.

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
    if most_points is not None and most_points < 2:
        raise ValueError(f"most_points must be at least 2, got {most_points!r}")
    first, second = default_levels(group, measure=measure)
    if not isinstance(first, Imbalance) or not isinstance(second, Movement):
        raise TypeError("the default levels are imbalance, then movement")
    deadline = time.monotonic() + limits.time
    problem, rules = build_problem(group), tuple(constraints)
    check_constraints(group, rules)
    descent = _Descent(
        group=group,
        levels=(first, second),
        problem=problem,
        constraints=rules,
        step=_least_step(problem, first.measure),
        hull=_hull(problem, first.measure, (*group_constraints(group), *rules), limits.time),
        deadline=deadline,
        limits=limits,
        seed=seed,
    )
    return descent.run(most_points)


def _least_step(problem: Problem, measure: Measure) -> int:
    """Return by how much two different imbalances of a group differ at least."""
    if measure is not Measure.SUM_OF_SQUARES or not problem.size:
        return 1
    # The sum of squares has the parity of the sum of loads, which is fixed.
    return 2 * max(1, problem.group.common_weight or 0) ** 2


def _hull(
    problem: Problem, measure: Measure, rules: Sequence[Constraint], time_limit: float
) -> "Hull | None":
    """Find the hull by flows where they apply."""
    from kassay.solver.flow.convex_frontier import hull_of  # noqa: PLC0415

    if rules or not time_limit > 0 or measure is not Measure.SUM_OF_SQUARES or not problem.size:
        return None
    weight = problem.group.common_weight
    return hull_of(problem) if weight and weight < _LARGEST_WEIGHT else None


@dataclass(frozen=True, slots=True)
class _Descent:
    """The epsilon-constraint method: the optimum, then again with fewer moves allowed."""

    group: Group
    problem: Problem
    levels: tuple[Imbalance, Movement]
    constraints: tuple[Constraint, ...]
    step: int
    hull: "Hull | None"
    deadline: float
    limits: SearchLimits
    seed: int

    def run(self, most_points: int | None) -> Frontier:
        """Find the two ends, then what lies between."""
        measure = self.levels[0].measure
        if self.hull is not None:
            (least, _), (most, _) = self.hull.corners[0], self.hull.corners[-1]
            return self._joined(self._exact(most), self._exact(least), most_points)
        top = self._solve(self.levels, _LARGEST_SHARE)
        if top.assignment is None:
            return Frontier(measure, (), complete=bool(top.conflict), conflict=top.conflict)
        low = self._solve(self.levels[::-1], _LARGEST_SHARE, hint=top.assignment)
        if low.assignment is None:
            return Frontier(measure, (_point(top),), complete=False)
        return self._joined(_point(top), _point(low), most_points)

    def _joined(
        self, top: FrontierPoint, bottom: FrontierPoint, most_points: int | None
    ) -> Frontier:
        """Fill in what lies between the two ends."""
        found, complete = self._between(top, bottom, most_points)
        points = _undominated([*found, bottom])
        proven = complete and all(point.is_proven for point in points)
        return Frontier(self.levels[0].measure, points, complete=proven)

    def _between(
        self, top: FrontierPoint, bottom: FrontierPoint, most_points: int | None
    ) -> tuple[list[FrontierPoint], bool]:
        """Go down from the top; say besides whether no number of moves was skipped."""
        points, point, complete = [top], top, True
        last = bottom.movement.value
        while not self._is_next(point, bottom):
            room = point.movement.value - last
            steps = room if most_points is None else max(1, most_points - len(points))
            if time.monotonic() >= self.deadline or steps == 1 < room:
                return points, False
            cap = point.movement.value - max(1, room // steps)
            complete = complete and cap == point.movement.value - 1
            below = self._within(cap, bottom, 1 / min(max(2, room), _MOST_SHARES))
            if below is None:
                return points, False
            point = self._sharpened(below, point)
            points.append(point)
        return points, complete

    def _within(self, cap: int, bottom: FrontierPoint, share: float) -> FrontierPoint | None:
        """Return the point with at most so many moves; None if there was no time for it."""
        hint, floor = bottom.assignment, 0
        if self.hull is not None:
            known = self._exact(max(moves for moves in self.hull.counts if moves <= cap))
            unit = int(self.problem.weight[0]) ** 2
            floor = self.hull.floor(cap)
            # Every sum of squared counts is as odd as their sum.
            floor = (floor + (floor - self.problem.size) % 2) * unit
            if floor >= known.imbalance.value:
                return known
            hint = known.assignment
        found = self._solve(self.levels, share, hint=hint, rules=(MaxMoves(cap),))
        if found.assignment is None:
            return None
        point = _point(found)
        bound = max(point.imbalance.bound, floor)
        return replace(point, imbalance=replace(point.imbalance, bound=bound))

    def _exact(self, moves: int) -> FrontierPoint:
        """Return a point on the hull."""
        if self.hull is None:
            raise LookupError("there is no hull")
        placement = self.hull.placement(moves)
        squares = sum(load**2 for load in self.problem.loads(placement))
        assignment = self.problem.to_assignment(placement)
        return FrontierPoint(
            LevelValue(Movement.name, moves, moves),
            LevelValue(self.levels[0].name, squares, squares),
            assignment,
        )

    def _is_next(self, point: FrontierPoint, bottom: FrontierPoint) -> bool:
        """Say whether nothing can lie between a point and the one with the fewest moves."""
        if bottom.movement.value + 1 >= point.movement.value:
            return True
        nearest = point.imbalance.value + (self.step if point.movement.is_proven else 0)
        return nearest + self.step > bottom.imbalance.value

    def _sharpened(self, point: FrontierPoint, above: FrontierPoint) -> FrontierPoint:
        """Raise a point's bound by what is known of the point with more moves.

        Fewer moves than the fewest at some imbalance cost at least one step more of it.
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
        hint: Assignment | None = None,
        rules: Sequence[Constraint] = (),
    ) -> Solution:
        left = max(0.0, self.deadline - time.monotonic())
        return solve(
            self.group,
            levels=levels,
            constraints=(*self.constraints, *rules),
            initial_assignment=hint,
            limits=replace(self.limits, time=left * share),
            seed=self.seed,
        )


def _point(solution: Solution) -> FrontierPoint:
    if solution.assignment is None:
        raise LookupError("there is no assignment, so there is no point")
    (imbalance,) = (level for level in solution.levels if level.name != Movement.name)
    return FrontierPoint(solution.movement, imbalance, solution.assignment)


def _undominated(points: Sequence[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """Sort by moves and drop what has no less imbalance than a point with as few."""
    kept: list[FrontierPoint] = []
    for point in sorted(points, key=lambda point: (point.movement.value, point.imbalance.value)):
        if not kept or point.imbalance.value < kept[-1].imbalance.value:
            kept.append(point)
    return tuple(kept)
