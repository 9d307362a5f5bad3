"""Searches for fewer moves of a weighted group within the maximum loads."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.counting import makespan_bound
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import Capacity, MaxMoves
from kassay.solver.evaluation import movement_costs
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.lexicographic.load_searches import ProvenBound, max_loads
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Level, Movement
from kassay.solver.problem import Placement
from kassay.solver.solution import ProgressPoint

if TYPE_CHECKING:
    from kassay.solver.weighted.search.few_moves import FewMovesSearch

_WORK_FOR_FEW_MOVES, _MOVE_STEP = 1.0, 1e-4
"""Work for the first placement with few moves, whatever the limit, and of one move."""
_EXCHANGE_STEP = 5e-4
"""Measured work of one exchange of a beam search."""
_MIN_PARTITIONS = 60
_MANY_CHOICES = 3_000
"""Number of partitions times members from which CP-SAT, which runs later, improves little."""
_INITIAL_SHARE = 0.6
"""Share of the work left for the first placement."""
_IMPROVEMENT_SHARE, _SHARE_BEFORE_CPSAT, _BOUND_SHARE = 0.3, 0.95, 0.7
"""Shares of the work left for the first improvement of the placement, for the bound and the second
improvement together, and for the bound."""


def _is_makespan(level: Level) -> bool:
    return isinstance(level, Imbalance) and level.measure is Measure.MAKESPAN


def add_few_moves(pool: IncumbentPool, budget: SearchBudget) -> None:
    """Add placements with few moves, within the best known makespan or the bound, to the pool."""
    problem, level = pool.problem, pool.levels[0]
    if (
        not _is_makespan(level)
        or not problem.group.is_weighted
        or not problem.group.has_equal_speeds
        or not (problem.owner != NO_OWNER).any()
        or not all(isinstance(rule, MaxMoves | Capacity) for rule in pool.constraints)
        or problem.has_big_loads
    ):
        return
    owned = keep_owned(problem)
    best = pool.value(level)
    if max(problem.loads(owned)) <= best:
        return
    from kassay.solver.weighted.search.few_moves import FewMovesSearch  # noqa: PLC0415

    costs = np.ones(problem.partition_count, dtype=np.int64)
    soon = budget.for_first_result(_WORK_FOR_FEW_MOVES).until(_WORK_FOR_FEW_MOVES)
    least = makespan_bound(problem)
    limit = level.tolerance.limit(least)
    for max_load in sorted({limit, best, least}, reverse=True):
        search = FewMovesSearch(problem, max_load, costs, np.random.default_rng(0))
        placement = search.initial_solution(owned, soon.counted(_MOVE_STEP))
        if placement is not None:
            pool.add(placement)
            if max_load <= limit:
                return


@dataclass(frozen=True, slots=True)
class MovementSearch:
    """Search for placements with fewer moves, and for a lower bound on the moves.

    It adds placements to the pool, and records each improvement in ``progress``.
    """

    pool: IncumbentPool
    level: Movement
    budget: SearchBudget
    progress: list[ProgressPoint]

    def run(self, bound: int) -> ProvenBound:
        """Search for placements with fewer moves within the maximum loads.

        ``bound`` is a known lower bound on the moves.
        """
        permitted = max_loads(self.pool, self.pool.limits())
        proven = 0
        if permitted is not None and self._is_applicable():
            has_one_limit = min(permitted) == max(permitted)
            if has_one_limit and all(_is_makespan(finished) for finished, _ in self.pool.limits()):
                proven = self._search_and_bound(permitted, bound)
            elif self.budget.has_work:
                proven = self._bound_moves(permitted, self.budget.part(_BOUND_SHARE))
        return ProvenBound(proven, Origin.EXCHANGE)

    def _search_and_bound(self, permitted: list[int], bound: int) -> int:
        """Improve the placement, raise the bound, and improve the placement again."""
        from kassay.solver.weighted.search.few_moves import FewMovesSearch  # noqa: PLC0415

        problem, pool = self.pool.problem, self.pool
        costs, rng = movement_costs(problem, self.level), np.random.default_rng(self.budget.seed)
        search = FewMovesSearch(problem, min(permitted), costs, rng, self.budget)
        start = self._initial_placement(search)
        if not self.budget.has_work:
            return 0
        self._record(search.cost(start), bound)
        self._improve(search, start, bound, self.budget.part(_IMPROVEMENT_SHARE))
        rest = self.budget.part(_SHARE_BEFORE_CPSAT if self._has_many_choices else _BOUND_SHARE)
        if not rest.has_work:
            return 0
        proven = self._bound_moves(permitted, rest.part(_BOUND_SHARE))
        bound = max(bound, proven)
        self._record(pool.value(self.level), bound)
        if self._has_many_choices:
            self._improve(search, pool.incumbent(self.level), bound, rest)
        return proven

    def _initial_placement(self, search: "FewMovesSearch") -> Placement:
        """Return the first placement, which the search continues from.

        It is found without search, and added to the pool in case that no work is left.
        """
        soon = self.budget.part(_INITIAL_SHARE).for_first_result(_WORK_FOR_FEW_MOVES / 2)
        start = search.initial_solution(keep_owned(self.pool.problem), soon.counted(_MOVE_STEP))
        if start is not None:
            self.pool.add(start)
        if start is None or search.cost(start) > self.pool.value(self.level):
            return self.pool.incumbent(self.level)
        return start

    def _improve(
        self, search: "FewMovesSearch", start: Placement, bound: int, within: SearchBudget
    ) -> None:
        self.pool.add(search.improve(start, bound, within.counted(_EXCHANGE_STEP)))
        self.progress.extend(ProgressPoint(at, cost, bound) for at, cost in search.found)
        search.found.clear()

    def _bound_moves(self, permitted: list[int], within: SearchBudget) -> int:
        """Return a lower bound on the moves; add the placement that its patterns give."""
        from kassay.solver.weighted.bounds.movement_bound import price_and_branch, price_step  # noqa: PLC0415

        priced = price_and_branch(
            self.pool.problem,
            permitted,
            movement_costs(self.pool.problem, self.level),
            start=self.pool.incumbent(self.level),
            may_continue=within.counted(price_step(self.pool.problem)),
            budget=within,
        )
        self.pool.add(priced.placement)
        return priced.bound

    @property
    def _has_many_choices(self) -> bool:
        problem = self.pool.problem
        return problem.partition_count * problem.member_count >= _MANY_CHOICES

    def _is_applicable(self) -> bool:
        """Return whether the searches accept the constraints, the size and the weights."""
        problem = self.pool.problem
        return (
            all(isinstance(rule, MaxMoves | Capacity) for rule in self.pool.constraints)
            and problem.partition_count >= _MIN_PARTITIONS
            and not problem.has_big_loads
            and movement_costs(problem, self.level).dtype != object
            and problem.group.is_weighted
        )

    def _record(self, value: int, bound: int) -> None:
        self.progress.append(ProgressPoint(self.budget.counter.spent, value, bound))
