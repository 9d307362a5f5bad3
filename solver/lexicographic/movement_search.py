"""Searches for fewer moves of a weighted group within the maximum loads."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds.level_bounds import makespan_bound
from kassay.solver.constraints import MaxMoves
from kassay.solver.evaluation import movement_costs
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.problem import EXACT_IN_64_BITS
from kassay.solver.solution import ProgressPoint

if TYPE_CHECKING:
    from kassay.solver.weighted.search.few_moves import FewMovesSearch

# The first placement with few moves may take this many seconds, whatever the limit.
_SECONDS_FOR_FEW_MOVES = 1.0
_MIN_PARTITIONS_FOR_EXCHANGE = 60
_MIN_CHOICES_FOR_LONG_EXCHANGE = 3_000


def add_few_moves(pool: IncumbentPool, budget: SearchBudget) -> None:
    """Add placements with few moves, within the best known makespan, to the pool."""
    problem, level = pool.problem, pool.levels[0]
    if (
        not isinstance(level, Imbalance)
        or level.measure is not Measure.MAKESPAN
        or not problem.group.is_weighted
        or not problem.group.has_equal_speeds
        or not (problem.owner != NO_OWNER).any()
        or not all(isinstance(rule, MaxMoves) for rule in pool.constraints)
        or problem.total >= EXACT_IN_64_BITS
    ):
        return
    owned = keep_owned(problem)
    best = pool.value(level)
    if max(problem.loads(owned)) <= best:
        return
    from kassay.solver.weighted.search.few_moves import FewMovesSearch  # noqa: PLC0415

    costs = np.ones(problem.partition_count, dtype=np.int64)
    soon = budget.at_least(_SECONDS_FOR_FEW_MOVES).until(_SECONDS_FOR_FEW_MOVES)
    for max_load in dict.fromkeys((best, makespan_bound(problem))):
        search = FewMovesSearch(problem, max_load, costs, np.random.default_rng(0))
        placement = search.initial_solution(owned, lambda: soon.seconds > 0)
        if placement is not None:
            pool.add(placement)


@dataclass(frozen=True, slots=True)
class MovementSearch:
    """Search for placements with fewer moves; it records each improvement."""

    pool: IncumbentPool
    progress: list[ProgressPoint]

    def run(self, level: Movement, bound: int, budget: SearchBudget) -> int:
        """Search for placements with fewer moves within the maximum loads.

        Return a lower bound on the moves, or 0 if none is proven.
        """
        pool, problem, max_loads = self.pool, self.pool.problem, self.pool.max_loads()
        if max_loads is None or not self._is_applicable():
            return 0
        from kassay.solver.weighted.search.few_moves import FewMovesSearch  # noqa: PLC0415

        costs = movement_costs(problem, level)
        # CP-SAT improves little if there are many choices.
        is_large = problem.partition_count * problem.member_count >= _MIN_CHOICES_FOR_LONG_EXCHANGE
        search = None
        if all(
            isinstance(done.claim.level, Imbalance) and done.claim.level.measure is Measure.MAKESPAN
            for done in pool.reached
        ):
            rng = np.random.default_rng(budget.seed)
            search = FewMovesSearch(problem, min(max_loads), costs, rng)
            soon = budget.until(budget.seconds * 0.6).at_least(_SECONDS_FOR_FEW_MOVES / 2)
            start = search.initial_solution(keep_owned(problem), lambda: soon.seconds > 0)
            if start is not None:
                pool.add(start)  # Found without search, in case that no time is left.
            if budget.seconds <= 0:
                return 0
            if start is None or search.cost(start) > pool.value(level):
                start = pool.incumbent(level)
            share = (0.5 if search.is_tight else 0.2) if is_large else 0.25
            first = budget.until(budget.seconds * share).continuation(60)
            self._record(search.cost(start), bound)
            pool.add(search.improve(start, bound, first))
            self._record_found(search, bound)
        if budget.seconds <= 0:
            return 0
        from kassay.solver.weighted.bounds.movement_bound import price_and_branch  # noqa: PLC0415

        rest = budget.until(budget.seconds * (0.95 if is_large else 0.5))
        is_bound_hard = search is None or search.is_tight or not is_large
        bounding = rest.until(rest.seconds * (0.85 if is_bound_hard else 0.6))
        is_timed = budget.limits.deterministic is None
        priced = price_and_branch(
            problem,
            max_loads,
            costs,
            start=pool.incumbent(level),
            may_continue=bounding.continuation(250),
            seconds=lambda: bounding.seconds / 3 if is_timed else None,
        )
        proven = priced.bound
        pool.add(priced.placement)
        if search is not None:
            self._record(pool.value(level), max(bound, proven))
        if search is not None and is_large:
            best = pool.incumbent(level)
            improved = search.improve(best, max(bound, proven), rest.continuation(60))
            pool.add(improved)
            self._record_found(search, max(bound, proven))
        return proven

    def _is_applicable(self) -> bool:
        """Return whether the searches accept the constraints, the size and the weights."""
        problem = self.pool.problem
        return (
            all(isinstance(rule, MaxMoves) for rule in self.pool.constraints)
            and problem.partition_count >= _MIN_PARTITIONS_FOR_EXCHANGE
            and problem.total < EXACT_IN_64_BITS
            and problem.group.is_weighted
        )

    def _record(self, value: int, bound: int) -> None:
        self.progress.append(ProgressPoint(time.monotonic(), value, bound))

    def _record_found(self, search: "FewMovesSearch", bound: int) -> None:
        self.progress.extend(ProgressPoint(at, cost, bound) for at, cost in search.found)
        search.found.clear()
