"""Choose the number of moves of a plan in a table of the lowest maximum load for each number."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds.counting import level_bound, makespan_bound
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.evaluation import level_value
from kassay.solver.frontier.frontier import moves_table
from kassay.solver.frontier.moves_frontier import (
    add_assignment,
    add_solution,
    fill_quickly,
    search_further,
)
from kassay.solver.lexicographic.level_solver import has_few_choices
from kassay.solver.lexicographic.moves_table import MovesTable, Report
from kassay.solver.lexicographic.moves_table_search import search_greedily
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Imbalance, Level, Movement, MovementCost, Tolerance
from kassay.solver.solution import LevelValue, Solution, Status, UsedMethod
from kassay.solver.solve import solve

_SQUARES = Imbalance(Measure.SUM_OF_SQUARES)
_WORK_FOR_TIES = 0.1
"""Minimum time of the search for lighter moves after a search for even loads."""
FIRST_SHARE = 0.3
"""Share of the time for the searches that need no integer program."""
_DIRECT_SHARE, _OPTIMUM_SHARE, _MOVES_SHARE, _SQUARES_SHARE = 0.4, 0.25, 0.3, 0.1


def has_plan_levels(levels: Sequence[Level]) -> bool:
    """Return whether levels are the maximum load, then the number of moves."""
    match levels:
        case (Imbalance(measure=Measure.MAKESPAN), Movement(cost=MovementCost.COUNT) as moves):
            return not moves.tolerance
    return False


@dataclass(frozen=True, slots=True)
class MovesPlan:
    """Plan with the fewest moves within a tolerance of the lowest maximum load.

    The levels are the maximum load, the number of moves, and the sum of squared loads at this
    maximum load and number of moves.

    Parameters
    ----------
    tolerance
        Tolerance of the maximum load.
    max_moves
        Maximum number of moves, None for no limit.
    """

    table: MovesTable
    tolerance: Tolerance
    max_moves: int | None
    constraints: Sequence[Constraint]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Return the levels of the plan."""
        return (Imbalance(Measure.MAKESPAN, self.tolerance), Movement(), _SQUARES)

    @property
    def moves(self) -> int:
        """Return the number of moves of the plan."""
        return self.table.values.index(
            next(value for value in self.table.values if value <= self._limit)
        )

    @property
    def is_proven(self) -> bool:
        """Return whether no further search can change the number of moves of the plan."""
        fewest = self.table.fewest_moves(self._limit)
        is_within = self.table.values[self.moves] <= self.tolerance.limit(self._bound)
        return is_within and fewest == (self.moves, self.moves)

    @property
    def _bound(self) -> int:
        """Lower bound on the maximum load within the limit on moves."""
        is_limited = self.max_moves is not None and self.max_moves <= self.table.top
        return self.table.bounds[self._last] if is_limited else self.table.lowest

    @property
    def _last(self) -> int:
        return self.table.top if self.max_moves is None else min(self.max_moves, self.table.top)

    @property
    def _limit(self) -> int:
        return self.tolerance.limit(self.table.values[self._last])

    def start(self, budget: SearchBudget) -> None:
        """Fill the table by the searches that need no integer program."""
        fill_quickly(self.table, budget)
        self.table.even_out([self.moves], budget)

    def solve_directly(self, budget: SearchBudget, initial: Assignment | None) -> Solution | None:
        """Solve the levels without the table; return a plan only if it is proven.

        Do not try this for large groups and with a limit on moves, nor if greedy moves reach the
        lower bound on the maximum load: then the table mostly proves the plan in less time.
        """
        table = self.table
        is_large = not has_few_choices(table.problem)
        if self.max_moves is not None or is_large or not budget.has_work:
            return None
        search_greedily(table, budget.until(0))
        if initial is not None:
            add_assignment(table, initial)
        if table.values[-1] == table.lowest:
            return None
        found = self._solve(self.levels[:2], self.moves, budget.part(_DIRECT_SHARE))
        if found.assignment is None:
            return None
        if found.status is Status.OPTIMAL:
            return self._evened_out(found, found.assignment, budget)
        add_solution(table, found)
        within = self.tolerance.limit(found.imbalance.bound)
        table.raise_bound(found.movement.bound - 1, within + 1)
        return None

    def _evened_out(self, found: Solution, known: Assignment, budget: SearchBudget) -> Solution:
        """Lower the maximum load and the sum of squares of a solution with the fewest moves."""
        table, moves = self.table, found.movement.value
        add_assignment(table, known)
        table.even_out([moves], budget)
        return replace(
            found,
            assignment=table.problem.to_assignment(table.placements[moves]),
            levels=(replace(found.imbalance, value=table.values[moves]), found.movement),
            certificate=None,
        )

    def find_lowest(self, budget: SearchBudget) -> None:
        """Search for the lowest maximum load, whatever the number of moves."""
        table = self.table
        search_further(table, budget)
        if table.values[-1] > table.lowest and budget.has_work:
            exact = (Imbalance(Measure.MAKESPAN), Movement())
            add_solution(table, self._solve(exact, table.top, budget.part(_OPTIMUM_SHARE)))

    def find_fewest_moves(self, budget: SearchBudget, share: float = _MOVES_SHARE) -> None:
        """Search for fewer moves within the tolerance, and prove a bound on them.

        ``share`` is the share of the time for the integer program.
        """
        table, limit = self.table, self._limit
        known = table.fewest_moves(limit)
        if known is None or known[0] == known[1] or not budget.has_work:
            return
        within = (Imbalance(Measure.MAKESPAN, Tolerance(up_to=limit)), Movement())
        solution = self._solve(within, known[0], budget.part(share))
        if solution.assignment is not None:
            add_assignment(table, solution.assignment)
            table.raise_bound(solution.movement.bound - 1, limit + 1)

    def even_out(self, budget: SearchBudget) -> tuple[int, Origin]:
        """Lower the sum of squares of the plan; return a lower bound on it and its origin."""
        table, moves = self.table, self.moves
        table.even_out([moves], budget)
        is_fixed = moves == 0 and (table.problem.owner != NO_OWNER).all()
        if is_fixed or table.is_complete:
            value = level_value(table.problem, _SQUARES, table.placements[moves])
            return value, Origin.ENUMERATION
        counted = level_bound(table.problem, _SQUARES)
        if not budget.has_work:
            return counted, Origin.COUNTING
        from kassay.solver.cpsat.moved_partitions import MovedPartitionsModel  # noqa: PLC0415

        found = MovedPartitionsModel(table.problem, table.rules).lowest_squares(
            moves,
            table.values[moves],
            budget=budget.part(_SQUARES_SHARE),
            hint=table.placements[moves],
            bound=counted,
        )
        if found.placement is not None:
            table.replace(moves, found.placement)
            table.even_out([moves], budget.for_first_result(_WORK_FOR_TIES))
        if found.bound is None or found.bound <= counted:
            return counted, Origin.COUNTING
        return found.bound, Origin.CP_SAT

    def solution(self, squares_bound: int = 0, origin: Origin = Origin.COUNTING) -> Solution:
        """Return the planned entry as a solution with three levels."""
        moves = self.moves
        squares = level_value(self.table.problem, _SQUARES, self.table.placements[moves])
        evenness = LevelValue(_SQUARES.name, squares, min(squares, squares_bound), origin=origin)
        return self._entry(moves, self._bound, self._limit, (evenness,))

    def optimum(self) -> Solution:
        """Return the entry with the lowest maximum load as a solution."""
        table = self.table
        fewest = table.values.index(table.values[-1])
        return self._entry(fewest, table.lowest, table.values[-1], ())

    def _entry(
        self, moves: int, lowest: int, limit: int, further: tuple[LevelValue, ...]
    ) -> Solution:
        """Return an entry as a solution with the fewest moves within a limit on the loads.

        ``lowest`` is a lower bound on the maximum load.
        """
        table = self.table
        fewest = table.fewest_moves(limit)
        bound = moves if fewest is None else min(fewest[1], moves)
        is_counted = bound == 0 or table.counted_bound(bound - 1) > limit
        levels = (
            LevelValue(
                str(Measure.MAKESPAN),
                table.values[moves],
                lowest,
                max(0, min(limit, self.tolerance.limit(lowest)) - lowest),
                self._origin(is_counted=makespan_bound(table.problem) >= lowest),
            ),
            LevelValue(Movement.name, moves, bound, origin=self._origin(is_counted=is_counted)),
            *further,
        )
        method = UsedMethod.last(UsedMethod.of_origin(one.origin) for one in levels if one.origin)
        return Solution(
            table.problem.to_assignment(table.placements[moves]),
            method=str(method),
            levels=levels,
            group=table.problem.group,
        )

    def _origin(self, *, is_counted: bool) -> Origin:
        """Return the origin of a bound. The table keeps none: a search counts as CP-SAT."""
        if is_counted:
            return Origin.COUNTING
        return Origin.ENUMERATION if self.table.is_complete else Origin.CP_SAT

    def _solve(self, levels: tuple[Level, ...], moves: int, budget: SearchBudget) -> Solution:
        table = self.table
        return solve(
            table.problem.group,
            levels=levels,
            constraints=self.constraints,
            initial_assignment=table.problem.to_assignment(table.placements[moves]),
            limits=budget.rest(),
            seed=budget.seed,
        )


def moves_plan(
    group: Group,
    levels: Sequence[Level],
    constraints: Iterable[Constraint] = (),
    *,
    report: Report | None = None,
) -> MovesPlan | None:
    """Return a plan with an empty table, or None if a plan of these levels has no table."""
    if not has_plan_levels(levels):
        return None
    constraints = tuple(constraints)
    rules = without_move_limit(constraints)
    table = moves_table(group, measure=Measure.MAKESPAN, constraints=rules, report=report)
    if table is None:
        return None
    limits = [one.limit for one in constraints if isinstance(one, MaxMoves)]
    return MovesPlan(table, levels[0].tolerance, min(limits, default=None), rules)


def solve_as_planned(
    group: Group,
    *,
    levels: Sequence[Level],
    constraints: Iterable[Constraint] = (),
    initial_assignment: Assignment | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> Solution:
    """Find an assignment with the fewest moves, as the searches of a plan do.

    Unlike a plan, this function first tries `MovesPlan.solve_directly`. Therefore, a plan that is
    not proven can have more moves than its result. Without a table of moves, the result is that of
    `solve`.
    """
    constraints = tuple(constraints)
    search = moves_plan(group, levels, constraints)
    if search is None:
        return solve(
            group,
            levels=levels,
            constraints=constraints,
            initial_assignment=initial_assignment,
            limits=limits,
            seed=seed,
        )
    budget = SearchBudget.start(limits, seed)
    direct = search.solve_directly(budget, initial_assignment)
    if direct is not None:
        return direct
    search.start(budget.part(FIRST_SHARE))
    if initial_assignment is not None:
        add_assignment(search.table, initial_assignment)
    within = search.tolerance.up_to
    if within is None or search.table.values[-1] > within:
        search.find_lowest(budget)
    search.find_fewest_moves(budget, share=1.0)
    solution = search.solution()
    return replace(solution, levels=solution.levels[: len(levels)])


def without_move_limit(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Remove limits on the number of moves from the constraints."""
    return tuple(rule for rule in constraints if not isinstance(rule, MaxMoves))
