"""Find the assignment of a plan: by the table of lowest loads, or level by level."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kassay.experiments.comparison.optimum import CaseLimits
from kassay.experiments.planning.group_plan.plan_alternatives import FEW_MOVES
from kassay.experiments.planning.moves.move_schedule import schedule_moves
from kassay.experiments.planning.preparation.plan_verdict import count_of
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import LoadUnits, Measure
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.constraints import Constraint
from kassay.solver.frontier.frontier import frontier
from kassay.solver.frontier.frontier_points import Frontier
from kassay.solver.frontier.moves_frontier import prove_points, shown_moves, table_frontier
from kassay.solver.frontier.moves_plan import FIRST_SHARE, MovesPlan, moves_plan, without_move_limit
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.lexicographic.level_solver import has_few_choices
from kassay.solver.lexicographic.moves_table import MovesTable
from kassay.solver.lexicographic.moves_table_search import prove_moves
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Level, Movement, MovementCost, default_measure
from kassay.solver.solution import Solution
from kassay.solver.solve import solve

_MAX_POINTS = 60
"""Maximum number of points of the frontier, without those up to the number of moves of the plan."""
_FURTHER_WORK = 3.0
"""Minimum work, if the limit permits it, for the parts of a plan after its moves are proven."""
Progress = Callable[[str], None]
"""Function that is called with the name of each part of the plan when the part starts."""


@dataclass(frozen=True, slots=True)
class PlanningTime:
    """Time limit that all searches of a plan share, and report of their progress."""

    limits: CaseLimits
    whole: SearchBudget
    seed: int
    progress: Progress | None
    units: LoadUnits

    @property
    def is_stopped(self) -> bool:
        """Return whether the caller stopped the searches. A reached time limit does not count."""
        return self.limits.is_stopped

    @property
    def is_interrupted(self) -> bool:
        """Return whether the caller or the safety limit ended a search."""
        return self.whole.counter.is_interrupted

    def shortened(self) -> "PlanningTime":
        """Return a planning time that ends after as much work again, at least `_FURTHER_WORK`."""
        further = max(_FURTHER_WORK, self.whole.counter.spent)
        return replace(self, whole=self.whole.until(further))

    def share(self, name: str, share: float, *, parts: int = 1) -> CaseLimits:
        """Report that a part of the planning starts, and return the limits for its searches."""
        self._report(name)
        return CaseLimits.of(self.whole.part(share / parts).rest())

    def budget(self, name: str, share: float) -> SearchBudget:
        """Report that a part of the planning starts, and return its budget."""
        self._report(name)
        return self.whole.part(share)

    def report_entry(self, moves: int, value: int, bound: int) -> None:
        """Report the lowest maximum load found for a number of moves."""
        proof = "proven" if value == bound else f"lower bound {self.units.shown(bound):,}"
        load = f"{self.units.shown(value):,}"
        self._report(f"{count_of(moves, 'move')}: maximum load {load} ({proof})")

    def _report(self, text: str) -> None:
        if self.progress is not None and not self.is_stopped:
            self.progress(text)


@dataclass(slots=True)
class PlannedSolution:
    """Search for the assignment of a plan, and for the optimum and the frontier.

    ``planned_levels`` are the levels with those that the plan adds. ``optimum`` has neither
    tolerance nor limit on moves. ``is_first`` states that only the fast searches ran.
    """

    group: Group
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]
    time: PlanningTime
    planned_levels: tuple[Level, ...] = field(init=False)
    solution: Solution = field(init=False)
    optimum: Solution = field(init=False)
    table: MovesTable | None = field(init=False, default=None)
    is_first: bool = field(init=False, default=False)

    def find(self, first: Callable[[], None] | None) -> None:
        """Find the planned solution and the optimum; call ``first`` after the fast searches."""
        report = self.time.report_entry
        search = moves_plan(self.group, self.levels, self.constraints, report=report)
        if search is None:
            self.planned_levels = self.levels
            self.solution, self.optimum = self._solve_levels()
            return
        self.table, self.planned_levels = search.table, search.levels
        search.start(self.time.budget("first plan", FIRST_SHARE))
        self.solution, self.optimum = search.solution(), search.optimum()
        if first is not None and not self.time.is_stopped:
            self.is_first = True
            first()
            self.is_first = False
        if has_few_choices(self.table.problem):
            search.find_fewest_moves(self.time.budget("fewest moves", 0.15), share=1.0)
        self._shorten(search)
        search.find_lowest(self.time.budget("minimum imbalance", 0.25))
        if not search.is_proven:
            search.find_fewest_moves(self.time.budget("fewest moves", 1.0))
        self._shorten(search)
        moves = dict.fromkeys((search.moves, FEW_MOVES, 1))
        prove_moves(self.table, list(moves), self.time.budget("proof of the fewest moves", 0.1))
        counts = _shown_moves(self.table, search.moves)
        prove_points(self.table, counts, self.time.budget("loads by number of moves", 0.12))
        most_moves = search.moves + 1
        while search.moves < most_moves:
            most_moves = search.moves
            proof = search.even_out(self.time.budget("sum of squares at this maximum load", 0.4))
            # The first moves of the plan can reach its tolerance, if the time was too short.
            _add_prefixes(self.table, search.solution(*proof).assignment)
        self.solution, self.optimum = search.solution(*proof), search.optimum()

    def _shorten(self, search: MovesPlan) -> None:
        """Leave less work for the further parts of the plan if its number of moves is proven."""
        if search.is_proven:
            self.time = self.time.shortened()

    def _solve_levels(self) -> tuple[Solution, Solution]:
        """Solve for the optimum first, because the tolerance is relative to its imbalance."""
        exact = _exact_levels(self.group, self.levels)
        rules = without_move_limit(self.constraints)
        is_exact = self.levels[:2] == exact and rules == self.constraints
        optimum = solve(
            self.group,
            levels=self.levels if is_exact else exact,
            constraints=rules,
            limits=self.time.share("minimum imbalance", 0.5 if is_exact else 0.25),
            seed=self.time.seed,
        )
        if is_exact or optimum.assignment is None:
            return optimum, optimum
        solution = solve(
            self.group,
            levels=self.levels,
            constraints=self.constraints,
            initial_assignment=optimum.assignment,
            limits=self.time.share("fewest moves", 0.35),
            seed=self.time.seed,
        )
        return solution, optimum

    def frontier(self) -> Frontier:
        """Return the frontier with the planned solution."""
        if self.table is not None:
            counts = _shown_moves(self.table, self.solution.movement.value)
            return table_frontier(self.table, counts)
        return frontier(
            self.group,
            measure=Measure(self.solution.imbalance.name),
            constraints=without_move_limit(self.constraints),
            max_points=_MAX_POINTS,
            optimum=self.optimum,
            known=self._known(),
            limits=self.time.share("loads by number of moves", 0.5),
            seed=self.time.seed,
        )

    def _known(self) -> list[Solution]:
        """Return the planned solution for the frontier, if its movement is a number of moves."""
        moves = [level for level in self.planned_levels if isinstance(level, Movement)]
        is_counted = all(level.cost is MovementCost.COUNT for level in moves)
        return [self.solution] if is_counted else []


def _exact_levels(group: Group, levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return two levels: imbalance without tolerance, then movement."""
    measures = [level.measure for level in levels if isinstance(level, Imbalance)]
    return (Imbalance(measures[0] if measures else default_measure(group)), Movement())


def _add_prefixes(table: MovesTable, assignment: Assignment | None) -> None:
    """Add the assignments after each of the ordered moves to an assignment to the table."""
    problem = table.problem
    placement = keep_owned(problem)
    for batch in () if assignment is None else schedule_moves(problem.group, assignment):
        placement = placement.copy()
        for move in batch.moves:
            partition = problem.partition_index[TopicPartition(move.topic, move.partition)]
            placement[partition] = problem.member_index[move.target]
        table.add(placement)


def _shown_moves(table: MovesTable, planned: int) -> list[int]:
    """Return the numbers of moves of the points: the first numbers up to the plan's, and others."""
    first = range(min(planned, _MAX_POINTS) + 1)
    return shown_moves(table, _MAX_POINTS, (*first, planned, FEW_MOVES))
