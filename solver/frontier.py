"""Find the frontier of a group: the minimum imbalance for each number of moves.

The epsilon-constraint method solves the group for several limits on the number of moves. With
equal weights, network flows give the points on the convex hull without further searches.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from kassay.reference.model.assignment import NO_OWNER, Assignment
from kassay.reference.model.display import first_items
from kassay.reference.model.errors import InternalError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group, require_single_copies
from kassay.reference.model.load_metrics import Measure
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.counting_bounds import level_bound, makespan_bound_within
from kassay.solver.evaluation import check_constraints, group_constraints, level_value, violated
from kassay.solver.greedy_placements import keep_owned, within_pins
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.network.optimal_flow import ConvexHull, FlowPoint
from kassay.solver.network.subscription_network import build_network
from kassay.solver.objective import Imbalance, Movement, default_levels
from kassay.solver.problem import Arithmetic, Placement, Problem, build_problem
from kassay.solver.search.load_searches import heaviest_moved
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

_MAX_ARCS = 40_000
"""Maximum total capacity of the members. Flows in larger networks take too long."""
_OPTIMUM_SHARE = 0.4  # share of the work left for each end of the frontier
_FIRST_MOVES, _FIRST_SHARE = 500, 0.15
"""Maximum number of moves of the searches for first points, and share of the work left of each."""
_BEAMS = ((8, _FIRST_MOVES), (50, 40))
"""Width and maximum number of moves of each beam search. A wide beam finds lower loads for few
moves."""
_MAX_SHARE = 0.5  # maximum share of the work left for one number of moves


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """Number of moves and imbalance of one assignment on the frontier, with bounds."""

    movement: LevelValue
    imbalance: LevelValue
    assignment: Assignment = field(repr=False)

    @property
    def is_proven(self) -> bool:
        """Return whether the point is proven to be on the frontier."""
        return self.movement.is_proven and self.imbalance.is_proven

    def record(self) -> dict[str, object]:
        """Return the point as a JSON object."""
        return {
            "moves": self.movement.value,
            "imbalance": self.imbalance.value,
            "bound": {"moves": self.movement.bound, "imbalance": self.imbalance.bound},
            "proven": self.is_proven,
        }


@dataclass(frozen=True, slots=True)
class Frontier:
    """Points of the frontier in ascending order of the number of moves.

    Parameters
    ----------
    complete
        Whether these are proven to be all points of the frontier.
    conflict
        Infeasible constraints as text, if there are no points.
    """

    measure: Measure
    points: tuple[FrontierPoint, ...]
    complete: bool
    conflict: tuple[str, ...] = ()

    def __repr__(self) -> str:
        points = [f"{one.movement.value:,} moves: {one.imbalance.value:,}" for one in self.points]
        return f"<frontier of {self.measure}: {first_items(points or self.conflict)}>"


def frontier(
    group: Group,
    *,
    measure: Measure | str | None = None,
    constraints: Iterable[Constraint] = (),
    max_points: int | None = None,
    optimum: Solution | None = None,
    known: Iterable[Assignment] = (),
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
) -> Frontier:
    """Find the minimum imbalance for each number of moves.

    Points at geometric numbers of moves come first (1, 2, 3, 5, 7, 10, 15, 20, ...), then the
    points between them as long as work is left.

    Parameters
    ----------
    measure
        Measure of imbalance; by default as in `default_levels`.
    max_points
        Maximum number of points, geometric in the number of moves; at least 2.
    optimum
        Solution of the same measure and constraints, then movement, if it is known.
    known
        Further assignments. Each one that meets the constraints gives a point.
    limits
        Limits of all points together.

    Raises
    ------
    UsageError
        If ``max_points`` is below 2, or ``group`` is not a group.
    InputError
        If a constraint refers to a member, topic or partition that the group does not have.

    Examples
    --------
    >>> from kassay import Member, Topic
    >>> members = (
    ...     Member(id="a", subscription=("t",), owned=[("t", p) for p in range(4)]),
    ...     Member(id="b", subscription=("t",)),
    ... )
    >>> group = Group(topics=(Topic(name="t", partitions=4),), members=members)
    >>> [(point.movement.value, point.imbalance.value) for point in frontier(group).points]
    [(0, 16), (1, 10), (2, 8)]
    """
    require_group(group)
    require_single_copies(group)
    if max_points is not None and max_points < 2:
        raise UsageError(f"max_points must be at least 2, got {max_points!r}")
    constraints, limits = check_constraints(group, constraints), SearchLimits.of(limits)
    first = default_levels(group, measure=measure)[0]
    if not isinstance(first, Imbalance):
        raise InternalError(
            "internal error: no imbalance level; report a bug with this group document"
        )
    problem, budget = build_problem(group), SearchBudget.start(limits, seed)
    search = _FrontierSearch(
        problem=problem,
        level=Imbalance(first.measure),
        constraints=constraints,
        hull=_hull(problem, first.measure, (*group_constraints(group), *constraints), budget),
        budget=budget,
    )
    return search.run(max_points, optimum, known)


@dataclass
class _FrontierSearch:
    """State of a frontier search. The index of a list is the number of moves above the minimum."""

    problem: Problem
    level: Imbalance
    constraints: tuple[Constraint, ...]
    hull: ConvexHull | None
    budget: SearchBudget
    fewest: LevelValue = field(init=False)
    lowest: int = field(init=False)  # lower bound on the imbalance with any number of moves
    points: list[FrontierPoint] = field(default_factory=list)
    bounds: list[int] = field(default_factory=list)

    def run(
        self, max_points: int | None, optimum: Solution | None, known: Iterable[Assignment]
    ) -> Frontier:
        measure = self.level.measure
        if self.hull is not None:
            bottom, top = self.hull.ends
            self._start(self._hull_point(self.hull, bottom))
            self._add_end(self._hull_point(self.hull, top))
        else:
            unmoved = self._without_moves()
            if unmoved is not None:
                self._start(unmoved)
                self._add_single_moves()
            best = self._lowest(optimum)
            if best is not None and best.assignment is None and not self.points:
                return Frontier(measure, (), complete=bool(best.conflict), conflict=best.conflict)
            if best is not None and best.assignment is not None:
                if not self.points:
                    levels = Movement(), self.level
                    fewest = self._solve(levels, _OPTIMUM_SHARE, start=best.assignment)
                    if fewest.assignment is None:
                        return Frontier(measure, (_frontier_point(best),), complete=False)
                    self._start(_frontier_point(fewest))
                self._add_end(_frontier_point(best))
        found = [self._add_assignment(one) for one in known]
        counts = self._shown(max_points, [moves for moves in found if moves is not None])
        self._search(counts)
        shown = [self._point(count) for count in counts]
        is_complete = (
            len(counts) == len(self.points) and self.fewest.is_proven and self._has_lowest()
        )
        return Frontier(
            measure,
            _non_dominated(shown),
            complete=is_complete and all(point.is_proven for point in shown),
        )

    def _without_moves(self) -> FrontierPoint | None:
        problem = self.problem
        owned = keep_owned(problem)
        if any(violated(problem, self._rules, owned)):
            return None
        if (problem.owner != NO_OWNER).all():
            return self._point_of(owned, bound=level_value(problem, self.level, owned))
        return self._point_of(owned, bound=level_bound(problem, self.level))

    def _point_of(self, placement: Placement, *, fewest: int = 0, bound: int = 0) -> FrontierPoint:
        moves = level_value(self.problem, Movement(), placement)
        value = level_value(self.problem, self.level, placement)
        return FrontierPoint(
            LevelValue(Movement.name, moves, min(fewest, moves)),
            LevelValue(self.level.name, value, min(bound, value)),
            self.problem.to_assignment(placement),
        )

    def _lowest(self, optimum: Solution | None) -> Solution | None:
        """Find the minimum imbalance, or return None if the minimum is already known."""
        if optimum is not None:
            return optimum
        if self.points and (self._has_lowest() or not self.budget.has_work):
            return None
        start = self.points[-1].assignment if self.points else None
        return self._solve((self.level, Movement()), _OPTIMUM_SHARE, start=start)

    def _start(self, bottom: FrontierPoint) -> None:
        self.fewest, self.points = bottom.movement, [bottom]
        self.lowest = level_bound(self.problem, self.level)
        self.bounds = [self.lowest]

    def _add_end(self, top: FrontierPoint) -> None:
        bottom = self.points[0].imbalance.bound
        self._add(top)
        self.lowest = max(self.lowest, min(top.imbalance.bound, self.points[-1].imbalance.value))
        self._raise_bound(len(self.points) - 1, self.lowest)
        self._raise_bound(0, bottom)
        # Fewer moves than the bound of the top cost at least one step of imbalance.
        fewer = top.movement.bound - 1 - self.fewest.value
        self._raise_bound(fewer, top.imbalance.value + self._step)

    def _add_single_moves(self) -> None:
        if self.level.measure is Measure.LEXIMAX or self.problem.has_big_loads:
            return
        for search in self._single_moves():
            for found in search:
                self._add_placement(found)
                if level_value(self.problem, self.level, found) <= self.lowest:
                    break

    def _single_moves(self) -> Iterator[Iterator[Placement]]:
        """Yield searches that make one move after the other."""
        from kassay.solver.search.load_searches import MovesBeam, lower_squares, move_work  # noqa: PLC0415

        within, start = within_pins(self.problem, self._rules), keep_owned(self.problem)
        for (width, most), heaviest in product(_BEAMS, heaviest_moved(self.problem)):
            beam = MovesBeam(within, width, heaviest)
            may_continue = self.budget.part(_FIRST_SHARE).counted(beam.step)
            yield beam.search(start, most, may_continue)
        may_continue = self.budget.part(_FIRST_SHARE).counted(move_work(self.problem))
        yield lower_squares(within, start, _FIRST_MOVES, may_continue)

    @property
    def _rules(self) -> tuple[Constraint, ...]:
        return (*group_constraints(self.problem.group), *self.constraints)

    def _search(self, counts: Sequence[int]) -> None:
        """Solve the group for each number of moves without a proven minimum."""
        last = len(self.points) - 1
        first = {0, *geometric_moves(last), last}
        order = sorted(counts, key=lambda count: (count not in first, count))
        for number, count in enumerate(order):
            most = self.fewest.value + count
            if self.hull is not None:
                self._add_within(self.hull, count, most)
            self._raise_bound(count, self._counted_bound(count))
            if self._is_proven(count):
                continue
            if not self.budget.has_work:
                return
            unproven = sum(not self._is_proven(one) for one in order[number:])
            share = min(_MAX_SHARE, 2 / (unproven + 1))
            start = self.points[count].assignment
            solution = self._solve((self.level,), share, start=start, most=most)
            if solution.assignment is not None:
                self._add_assignment(solution.assignment)
                self._raise_bound(count, solution.imbalance.bound)

    def _counted_bound(self, count: int) -> int:
        if self.level.measure is not Measure.MAKESPAN or self.problem.has_big_loads:
            return 0
        low, high = self.bounds[count], self.points[count].imbalance.value
        return makespan_bound_within(self.problem, self.fewest.value + count, high=high, low=low)

    def _has_lowest(self) -> bool:
        return self.points[-1].imbalance.value < self.lowest + self._step

    def _is_proven(self, count: int) -> bool:
        return self.points[count].imbalance.value < self.bounds[count] + self._step

    def _add_assignment(self, assignment: Assignment) -> int | None:
        placement = self.problem.to_placement(assignment)
        return None if placement is None else self._add_placement(placement)

    def _add_placement(self, placement: Placement) -> int | None:
        if any(violated(self.problem, self._rules, placement)):
            return None
        point = self._point_of(placement)
        self._add(point)
        return point.movement.value

    def _add(self, point: FrontierPoint) -> None:
        """Store a point for each number of moves at which the point has the lowest imbalance."""
        value, count = point.imbalance.value, max(point.movement.value - self.fewest.value, 0)
        if count >= len(self.points) and value < self.points[-1].imbalance.value:
            further = count + 1 - len(self.points)
            self.points += self.points[-1:] * further
            self.bounds += self.bounds[-1:] * further
        for more in range(count, len(self.points)):
            if self.points[more].imbalance.value <= value:
                return
            self.points[more] = point

    def _raise_bound(self, count: int, bound: int) -> None:
        """Raise the bound on the imbalance for a number of moves and for fewer moves."""
        for fewer in range(min(count, len(self.bounds) - 1), -1, -1):
            if self.bounds[fewer] >= bound:
                return
            self.bounds[fewer] = bound

    def _point(self, count: int) -> FrontierPoint:
        """Return the point with the imbalance of ``points[count]`` and the fewest moves."""
        value = self.points[count].imbalance.value
        first = next(at for at, one in enumerate(self.points) if one.imbalance.value == value)
        least = next((at for at, bound in enumerate(self.bounds) if bound <= value), first)
        fewest = self.fewest.value + least if least else self.fewest.bound
        moves = self.points[first].movement.value
        # Different values of the imbalance differ by at least one step.
        bound = value if self._is_proven(first) else self.bounds[first]
        return FrontierPoint(
            LevelValue(Movement.name, moves, min(fewest, moves)),
            LevelValue(self.level.name, value, bound),
            self.points[first].assignment,
        )

    def _shown(self, max_points: int | None, further: Sequence[int]) -> list[int]:
        last = len(self.points) - 1
        if max_points is None or last < max_points:
            return list(range(last + 1))
        shown = {0, *geometric_moves(last, max_points), last}
        shown |= {moves - self.fewest.value for moves in further}
        return [count for count in range(last + 1) if count in shown]

    @property
    def _step(self) -> int:
        """Return the minimum difference between two values of the imbalance."""
        group = self.problem.group
        has_parity = self.level.measure is Measure.SUM_OF_SQUARES and group.has_equal_speeds
        if not has_parity or not self.problem.partition_count:
            return 1
        # The sum of squares has the parity of the sum of loads, which is fixed.
        return 2 * max(1, group.common_weight or 0) ** 2

    def _add_within(self, hull: ConvexHull, count: int, most: int) -> None:
        found = hull.within_moves(most, lambda: not self.budget.limits.is_stopped)
        if found is not None:
            self._add(self._hull_point(hull, found.point))
            self._raise_bound(count, found.bound * int(self.problem.weight[0]) ** 2)

    def _hull_point(self, hull: ConvexHull, point: FlowPoint) -> FrontierPoint:
        squares = point.squares * int(self.problem.weight[0]) ** 2
        placement = hull.arcs.network.place(point.counts)
        return self._point_of(placement, fewest=point.moves, bound=squares)

    def _solve(
        self,
        levels: Sequence[Imbalance | Movement],
        share: float,
        *,
        start: Assignment | None = None,
        most: int | None = None,
    ) -> Solution:
        limit = () if most is None else (MaxMoves(most),)
        return solve(
            self.problem.group,
            levels=levels,
            constraints=(*self.constraints, *limit),
            initial_assignment=start,
            limits=self.budget.part(share).rest(),
            seed=self.budget.seed,
        )


def _hull(
    problem: Problem, measure: Measure, rules: Sequence[Constraint], budget: SearchBudget
) -> ConvexHull | None:
    """Find the convex hull of the frontier by flows; return None if flows do not apply."""
    if rules or measure is not Measure.SUM_OF_SQUARES or not budget.has_work:
        return None
    squares, weight = problem.total**2, problem.group.uniform_weight
    if not problem.partition_count or not weight or not Arithmetic.INT64.represents(squares):
        return None
    network = build_network(problem)
    is_small = int(network.max_counts.sum()) <= _MAX_ARCS
    return ConvexHull.of(network) if is_small else None


def _frontier_point(solution: Solution) -> FrontierPoint:
    """Convert a solution with an assignment to a frontier point.

    The bounds of levels after a level other than imbalance and movement do not apply to the
    frontier: they become 0.
    """
    if solution.assignment is None:
        raise InternalError(
            "internal error: no assignment found; report a bug with this group document"
        )
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


def _non_dominated(points: Sequence[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    kept: list[FrontierPoint] = []
    for point in sorted(points, key=lambda point: (point.movement.value, point.imbalance.value)):
        if not kept or point.imbalance.value < kept[-1].imbalance.value:
            kept.append(point)
    return tuple(kept)


def geometric_moves(most: int, max_points: int | None = None) -> list[int]:
    """Return numbers of moves below ``most`` that grow geometrically: 1, 2, 3, 5, 7, 10, ...

    With ``max_points``, at most that number minus 2, as both ends of the frontier are points.
    """
    steps = {
        step * 10**power // 10
        for power in range(len(str(most)))
        for step in (10, 15, 20, 30, 50, 70)
    }
    moves = sorted(step for step in steps if step < most)
    kept = len(moves) if max_points is None else min(len(moves), max_points - 2)
    return [moves[(2 * place + 1) * len(moves) // (2 * kept)] for place in range(kept)]
