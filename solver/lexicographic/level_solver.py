"""Choose and run the searches that minimise one level of the objective."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds.level_bounds import level_bound
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.incumbent_pool import FlowLevels, IncumbentPool, LevelResult
from kassay.solver.lexicographic.load_searches import (
    ProvenBound,
    balance_loads,
    is_large_enough,
    limit_moves,
    pack_identical,
    repair_overloads,
)
from kassay.solver.lexicographic.movement_search import MovementSearch
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import (
    Colocation,
    CrossRack,
    HostImbalance,
    Imbalance,
    Level,
    MembersUsed,
    Movement,
    TopicSpread,
)
from kassay.solver.solution import ProgressPoint

_MANY_PER_MEMBER = 4
"""Partitions per member from which subsets with the mean load are frequent."""

_MAX_CHOICES_OF_CPSAT = 10_000
"""Partitions times members up to which CP-SAT mostly proves the fewest moves within seconds."""
_FIRST_SHARE = 0.3
"""Share of the time left for CP-SAT before the other searches for few moves."""

_Search = Callable[[int], ProvenBound]
"""Search that receives the greatest bound, adds placements to the pool, and returns a bound."""


@dataclass
class LevelSolver:
    """Solver that minimises the levels of one problem in order."""

    pool: IncumbentPool
    flow: FlowLevels
    progress: list[ProgressPoint] = field(default_factory=list)
    enumerated: Mapping[int, int] | None = None
    """Optimal values by level index. The enumeration minimises the first two levels together, and
    therefore runs only once, at the first level that needs it."""

    def solve_level(self, index: int, budget: SearchBudget) -> None:
        """Minimise one level within the limits of the finished levels.

        The level has a share of the remaining time. A level with an upper limit is minimised
        only until its value is within the limit.
        """
        pool, level = self.pool, self.pool.levels[index]
        budget = budget.part(1 / (1 + sum(map(self._needs_time, pool.levels[index + 1 :]))))
        proven = self._known_bound(index)
        permitted = level.tolerance.up_to or 0
        # Each search starts from the best placement and bound of the searches before it.
        for search in self._searches(index, budget):
            if pool.value(level) <= max(proven.value, permitted):
                break
            found = search(proven.value)
            if found.value > proven.value:
                proven = found
        value = pool.value(level)
        claim = LevelClaim(level, value, min(proven.value, value), proven.origin)
        limit = level.tolerance.limit(value)
        pool.reached.append(LevelResult(claim, limit, pool.incumbent(level)))

    def _known_bound(self, index: int) -> ProvenBound:
        """Return the greater one of the bounds by counting and by network flows."""
        pool = self.pool
        counted = level_bound(pool.problem, pool.levels[index], pool.limits())
        known = self.flow.bounds.get(index)
        if known is not None and (known[0] > counted or known == (counted, Origin.PRICES)):
            return ProvenBound(*known)
        return ProvenBound(counted, Origin.COUNTING)

    def _searches(self, index: int, budget: SearchBudget) -> list[_Search]:
        """Return the searches of a level in the order in which they run.

        A search that does not apply to the group returns the bound 0.
        """
        pool, problem, level = self.pool, self.pool.problem, self.pool.levels[index]
        has_many_per_member = problem.partition_count >= _MANY_PER_MEMBER * problem.member_count

        def enumerate_subsets(_: int) -> ProvenBound:
            return self._enumerated_bound(index, budget)

        def search_by_cpsat(bound: int) -> ProvenBound:
            return self._search_by_cpsat(level, bound, budget)

        def repair(bound: int) -> ProvenBound:
            return repair_overloads(pool, level, bound, budget)

        timed: list[_Search]
        untimed: list[_Search] = [search_by_cpsat]
        match level:
            case Imbalance():
                exact: list[_Search] = [
                    lambda _: pack_identical(
                        pool, level, budget, before_enumeration=not has_many_per_member
                    ),
                    enumerate_subsets,
                ]
                timed = [
                    repair,
                    *(reversed(exact) if has_many_per_member else exact),
                    lambda _: balance_loads(pool, level, budget),
                    lambda _: limit_moves(pool, level, budget),
                ]
            case Movement():
                timed = [
                    lambda bound: self._search_few_choices(level, bound, budget),
                    repair,
                    enumerate_subsets,
                ]
                search = MovementSearch(pool, level, budget, self.progress)
                untimed = [search.run, search_by_cpsat]
            case HostImbalance() | CrossRack() | TopicSpread() | MembersUsed() | Colocation():
                timed = [repair, enumerate_subsets]
            case _:
                assert_never(level)
        return [*timed, *untimed] if budget.has_time else untimed

    def _search_few_choices(self, level: Movement, bound: int, budget: SearchBudget) -> ProvenBound:
        """Search with CP-SAT before all other searches if it is likely to prove the minimum.

        Later searches of a small group, or within constraints, rarely end earlier.
        """
        problem = self.pool.problem
        if problem.partition_count * problem.member_count > _MAX_CHOICES_OF_CPSAT:
            return ProvenBound(0, Origin.CP_SAT)
        return self._search_by_cpsat(level, bound, budget.part(_FIRST_SHARE))

    def _search_by_cpsat(self, level: Level, bound: int, budget: SearchBudget) -> ProvenBound:
        if not budget.has_time:
            return ProvenBound(0, Origin.CP_SAT)
        from kassay.solver.cpsat.level_search import search_level  # noqa: PLC0415

        return ProvenBound(search_level(self.pool, level, bound, budget), Origin.CP_SAT)

    def _needs_time(self, level: Level) -> bool:
        """Return whether a level may need time for search.

        Movement needs none if no partition is owned.
        """
        return not isinstance(level, Movement) or bool((self.pool.problem.owner != NO_OWNER).any())

    def _enumerated_bound(self, index: int, budget: SearchBudget) -> ProvenBound:
        """Return the optimal value of a level by exact enumeration of small groups."""
        if self.enumerated is None:
            self.enumerated = self._enumerate(budget)
        return ProvenBound(self.enumerated.get(index, 0), Origin.ENUMERATION)

    def _enumerate(self, budget: SearchBudget) -> Mapping[int, int]:
        """Minimise the first two levels exactly; return their values by level index."""
        pool, problem = self.pool, self.pool.problem
        if pool.constraints or not problem.group.is_weighted or not is_large_enough(problem):
            return {}
        from kassay.solver.weighted.exact.component_optimum import solve_components  # noqa: PLC0415

        within = budget.part(1 / 2)
        first = pool.reached[0].claim if pool.reached else None
        optimum = solve_components(
            problem,
            pool.levels,
            seed=budget.seed,
            minimum=first.value if first is not None and first.value == first.bound else None,
            may_continue=lambda: within.has_time,
        )
        if optimum is None:
            return {}
        pool.placements.append(optimum.placement)
        return dict(enumerate(optimum.values))
