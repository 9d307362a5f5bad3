"""Choose and run the searches that minimise one level of the objective."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds.level_bounds import level_bound
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.incumbent_pool import FlowLevels, IncumbentPool, LevelResult
from kassay.solver.lexicographic.host_and_speed_search import repair_overloads
from kassay.solver.lexicographic.makespan_searches import (
    MIN_PARTITIONS,
    ProvenBound,
    balance_loads,
    limit_moves,
    pack_identical,
)
from kassay.solver.lexicographic.movement_search import MovementSearch
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Level, Movement
from kassay.solver.solution import ProgressPoint

_MANY_PER_MEMBER = 4


@dataclass
class LevelSolver:
    """Solver that minimises the levels of one problem in order."""

    pool: IncumbentPool
    flow: FlowLevels
    proven: dict[int, int] | None = None  # by level index; None until requested
    progress: list[ProgressPoint] = field(default_factory=list)

    def solve_level(self, index: int, budget: SearchBudget) -> None:
        """Minimise one level within the limits of the finished levels.

        The level has a share of the remaining time. A level with an upper limit is minimised
        only until its value is within the limit.
        """
        pool = self.pool
        level = pool.levels[index]
        bound = level_bound(pool.problem, level, pool.limits())
        origin = Origin.COUNTING
        known = self.flow.bounds.get(index)
        if known is not None and (known[0] > bound or known == (bound, Origin.PRICES)):
            bound, origin = known
        budget = budget.share(1 + sum(map(self._needs_time, pool.levels[index + 1 :])))
        permitted = level.tolerance.up_to or 0
        if pool.value(level) > max(bound, permitted) and budget.seconds > 0:
            repair_overloads(pool, level, bound, budget)
        for search in self._searches(index, level, budget):
            if pool.value(level) <= max(bound, permitted):
                break
            higher, origin_of_search = search(bound)
            if higher > bound:
                bound, origin = higher, origin_of_search
        value = pool.value(level)
        claim = LevelClaim(level, value, min(bound, value), origin)
        limit = level.tolerance.limit(value)
        pool.reached.append(LevelResult(claim, limit, pool.incumbent(level)))

    def _searches(
        self, index: int, level: Level, budget: SearchBudget
    ) -> Iterator[Callable[[int], ProvenBound]]:
        """Yield the search functions of a level; each receives and returns a lower bound."""

        def enumerate_subsets(_: int) -> ProvenBound:
            return self._proven_values(budget).get(index, 0), Origin.ENUMERATION

        if budget.seconds > 0:
            problem = self.pool.problem
            # Few members with many partitions each: subsets of the mean load are frequent.
            if problem.partition_count >= _MANY_PER_MEMBER * problem.member_count:
                yield enumerate_subsets
            if isinstance(level, Imbalance):
                is_first = self.proven is None
                yield lambda _: pack_identical(
                    self.pool, level, budget, before_enumeration=is_first
                )
            yield enumerate_subsets
            if isinstance(level, Imbalance):
                yield lambda _: (balance_loads(self.pool, level, budget), Origin.EXCHANGE)
                yield lambda _: (limit_moves(self.pool, level, budget), Origin.EXCHANGE)
        if isinstance(level, Movement):
            search = MovementSearch(self.pool, self.progress)
            yield lambda bound: (search.run(level, bound, budget), Origin.EXCHANGE)
        yield lambda bound: (self._search_by_cpsat(level, bound, budget), Origin.CP_SAT)

    def _search_by_cpsat(self, level: Level, bound: int, budget: SearchBudget) -> int:
        if budget.seconds <= 0:
            return 0
        from kassay.solver.cpsat.level_search import search_level  # noqa: PLC0415

        return search_level(self.pool, level, bound, budget)

    def _needs_time(self, level: Level) -> bool:
        """Return whether a level may need time for search.

        Movement needs none if no partition is owned.
        """
        return not isinstance(level, Movement) or bool((self.pool.problem.owner != NO_OWNER).any())

    def _proven_values(self, budget: SearchBudget) -> dict[int, int]:
        """Return optimal values of the first levels by exact enumeration of small groups."""
        if self.proven is None:
            self.proven = {}
            pool, problem = self.pool, self.pool.problem
            if (
                problem.partition_count >= MIN_PARTITIONS
                and problem.group.is_weighted
                and problem.group.has_equal_speeds
                and not pool.constraints
            ):
                from kassay.solver.weighted.exact.component_optimum import solve_components  # noqa: PLC0415

                exact = budget.share(2)
                first = self.pool.reached[0].claim if self.pool.reached else None
                is_known = first is not None and first.value == first.bound
                optimum = solve_components(
                    problem,
                    pool.levels,
                    seed=budget.seed,
                    minimum=first.value if is_known and first is not None else None,
                    may_continue=lambda: exact.seconds > 0,
                )
                if optimum is not None:
                    pool.placements.append(optimum.placement)
                    self.proven = dict(enumerate(optimum.values))
        return self.proven
