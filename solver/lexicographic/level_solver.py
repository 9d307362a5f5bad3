"""Choose and run the searches that minimise one level of the objective."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.bounds.counting import level_bound
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.evaluation import level_value
from kassay.solver.incumbent_pool import FlowLevels, IncumbentPool, LevelResult
from kassay.solver.lexicographic.fewest_moves import FewestMoves, LevelLimit
from kassay.solver.lexicographic.load_searches import (
    MIN_PARTITIONS,
    ProvenBound,
    balance_loads,
    fill_members,
    limit_moves,
    limits_moves,
    move_greedily,
    pack_identical,
    spread_loads,
)
from kassay.solver.lexicographic.movement_search import MovementSearch
from kassay.solver.lexicographic.overload_searches import repair_overloads
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import (
    Colocation,
    CrossRack,
    FlowLevel,
    HostImbalance,
    Imbalance,
    Level,
    MembersUsed,
    Movement,
    TopicSpread,
    only_by_flows,
)
from kassay.solver.problem import Problem
from kassay.solver.solution import ProgressPoint, UsedMethod

_MAX_CHOICES_OF_CPSAT = 10_000
"""Partitions times members up to which CP-SAT mostly proves the fewest moves within seconds."""
_EVEN_LOADS_WORK = 1.0
"""Work of the search for lower loads with the fewest moves. A proof is rare."""
_FIRST_BALANCING_WORK = 0.1
"""Work to lower the loads before the first search for the fewest moves."""

_Search = Callable[[int], ProvenBound]
"""Search that receives the greatest bound, adds placements to the pool, and returns a bound."""


def has_few_choices(problem: Problem) -> bool:
    """Return whether CP-SAT mostly proves the fewest moves of a group of this size in seconds."""
    return problem.partition_count * problem.member_count <= _MAX_CHOICES_OF_CPSAT


@dataclass
class LevelSolver:
    """Solver that minimises the levels of one problem in order."""

    pool: IncumbentPool
    flow: FlowLevels
    progress: list[ProgressPoint] = field(default_factory=list)
    contributed: list[UsedMethod] = field(default_factory=list)
    fewest_moves: ProvenBound | None = None
    """Fewest moves of the last level, if they are proven before the minimum of the level before."""
    moves_searched_at: tuple[int, int] | None = None
    """Level and its best known value, when the fewest moves were last searched before it."""
    moves_searches: list[FewestMoves] = field(default_factory=list)
    """Searches for the fewest moves, with their bounds and prices."""

    def solve_level(self, index: int, budget: SearchBudget) -> None:
        """Minimise one level within the limits of the finished levels.

        The level has a share of the remaining work. A level with an upper limit is minimised
        only until its value is within the limit.
        """
        pool, level = self.pool, self.pool.levels[index]
        proven = self._known_bound(index)
        permitted = level.tolerance.up_to or 0
        # Each search starts from the best placement and bound of the searches before it.
        for search in self._searches(index, budget):
            is_known = self.fewest_moves is not None and not self._is_after_moves()
            if pool.value(level) <= max(proven.value, permitted) or is_known:
                break
            before = pool.value(level)
            found = search(proven.value)
            if found.value > proven.value or pool.value(level) < before:
                self.contributed.append(UsedMethod.of_origin(found.origin))
            if found.value > proven.value:
                proven = found
        if isinstance(level, Movement):
            self.moves_searches.append(self._moves_search(level, pool.limits()))
            self.moves_searches[-1].raise_bound(*proven)
        value = pool.value(level)
        claim = LevelClaim(level, value, min(proven.value, value), proven.origin)
        is_open = self.fewest_moves is not None and not self._is_after_moves()
        is_open = is_open and not isinstance(level, Movement)
        limit = level.tolerance.limit(claim.bound if is_open else value)
        pool.reached.append(LevelResult(claim, limit, pool.incumbent(level)))

    def _is_after_moves(self) -> bool:
        """Return whether the number of moves is a finished level."""
        return any(isinstance(done.claim.level, Movement) for done in self.pool.reached)

    def _known_bound(self, index: int) -> ProvenBound:
        """Return the greatest bound by counting, network flows or searches for the fewest moves."""
        pool, level = self.pool, self.pool.levels[index]
        counted = level_bound(pool.problem, level, pool.limits())
        known = [ProvenBound(*self.flow.bounds[index])] if index in self.flow.bounds else []
        if isinstance(level, Movement):
            known += [] if self.fewest_moves is None else [self.fewest_moves]
            known += [self._moves_search(level, pool.limits()).proven] * bool(self.moves_searches)
        greatest = ProvenBound(counted, Origin.COUNTING)
        for bound in known:
            if bound.value > greatest.value or bound == (counted, Origin.NODE_PRICES):
                greatest = bound
        return greatest

    def _searches(self, index: int, whole: SearchBudget) -> list[_Search]:
        """Return the searches of a level in the order in which they run.

        A search that does not apply to the group returns the bound 0. With hosts, the search for
        the fewest moves uses ``whole``, the work left for all levels.
        """
        pool, level = self.pool, self.pool.levels[index]
        later = sum(map(self._needs_search, pool.levels[index + 1 :]))
        budget = whole.part(1 / (1 + later))
        search_by_cpsat = partial(self._search_by_cpsat, level, budget=budget)
        repair = partial(repair_overloads, pool, level, budget=budget)
        search_moves_first = partial(self._search_moves_first, index, budget=budget)
        searches: list[_Search]
        always: list[_Search] = [search_by_cpsat]
        match level:
            case Imbalance() if self._is_after_moves():
                brief = budget.until(_EVEN_LOADS_WORK)
                search_by_cpsat = partial(self._search_by_cpsat, level, budget=brief)
                searches, always = [lambda _: spread_loads(pool, level, budget)], [search_by_cpsat]
            case Imbalance() if limits_moves(pool):
                # Searches for lower loads with any number of moves find nothing.
                searches = [
                    lambda _: fill_members(pool, level),
                    lambda _: limit_moves(pool, level, budget),
                    repair,
                ]
            case Imbalance():
                searches = [
                    lambda _: fill_members(pool, level),
                    repair,
                    # Lower loads help only if the fewest moves depend on the minimum.
                    lambda _: balance_loads(pool, level, budget.until(_FIRST_BALANCING_WORK)),
                    partial(search_moves_first, is_last=False),
                    lambda _: balance_loads(pool, level, budget),
                    search_moves_first,
                    lambda _: pack_identical(pool, level, budget),
                ]
            case Movement() if pool.limits_squares():
                searches, always = [lambda _: move_greedily(pool, budget)], [search_by_cpsat]
            case Movement():
                searches = [
                    lambda _: move_greedily(pool, budget),
                    lambda bound: self._search_few_choices(level, bound, budget),
                    repair,
                ]
                search = MovementSearch(pool, level, budget, self.progress)
                always = [search.run, search_by_cpsat]
            case HostImbalance():
                search_moves = partial(self._search_moves_first, index, budget=whole)
                searches = [repair, search_moves]
            case CrossRack() | TopicSpread() | MembersUsed() | Colocation():
                searches = []
            case FlowLevel():
                raise only_by_flows(level)
            case _:
                assert_never(level)
        # Without work, the last searches still add placements that need no search.
        return [*searches, *always] if budget.has_work else always

    def _search_moves_first(
        self, index: int, bound: int, budget: SearchBudget, *, is_last: bool = True
    ) -> ProvenBound:
        """Search for the fewest moves before the minimum of loads that have a tolerance.

        The minima of the loads are between their bounds and the best known values. If the fewest
        moves are equal within the tolerances of both, the minima do not matter for the moves.
        Unless this is the last attempt, there is no search if counted bounds differ already, or if
        the search needs prices, which are better for lower loads.
        """
        pool, unproven = self.pool, ProvenBound(0, Origin.CP_SAT)
        best = (index, pool.value(pool.levels[index]))
        later = range(index, len(pool.levels))
        last = next((at for at in later if isinstance(pool.levels[at], Movement)), index)
        moves = pool.levels[last]
        if (
            not isinstance(moves, Movement)
            or not pool.problem.group.is_weighted
            or pool.problem.partition_count < MIN_PARTITIONS
            or not has_few_choices(pool.problem)
            or self.moves_searched_at == best
        ):
            return unproven
        strict, loose = pool.limits(), pool.limits()
        for level in pool.levels[index:last]:
            if (
                not isinstance(level, Imbalance | HostImbalance)
                or level.tolerance.up_to is not None
            ):
                return unproven
            least = bound if level is pool.levels[index] else level_bound(pool.problem, level)
            known = pool.best(level, strict)
            lowest = level.tolerance.limit(least)
            if known is None or level_value(pool.problem, level, known) > lowest:
                return unproven
            loose.append((level, level.tolerance.limit(level_value(pool.problem, level, known))))
            strict.append((level, lowest))
        search = self._moves_search(moves, loose)
        is_early = search.bound != level_bound(pool.problem, moves, strict) or (
            search.prices_first and not search.is_proven
        )
        if not is_last and is_early:
            return unproven
        self.moves_searched_at = best
        within, proven = budget.part(search.first_share), {}
        for is_loose in (True, False):
            search = self._moves_search(moves, loose if is_loose else strict)
            search.preferred = strict if is_loose else None
            self.moves_searches.append(search)
            search.run(within)
            if not search.is_proven:
                break
            proven[is_loose] = search.proven
        if len({bound.value for bound in proven.values()}) == 1 < len(proven):
            self.fewest_moves = proven[True]
        if search.has_searched:
            self.contributed.append(UsedMethod.of_origin(Origin.CP_SAT))
        return unproven

    def _search_few_choices(self, level: Movement, bound: int, budget: SearchBudget) -> ProvenBound:
        """Search with CP-SAT before all other searches if it is likely to prove the minimum.

        Later searches of a small group, or within constraints, rarely end earlier.
        """
        if not has_few_choices(self.pool.problem):
            return ProvenBound(0, Origin.CP_SAT)
        search = self._moves_search(level, self.pool.limits(), bound)
        self.moves_searches.append(search)
        search.run(budget.part(search.first_share))
        return search.proven

    def _moves_search(
        self, level: Movement, limits: Sequence[LevelLimit], bound: int = 0
    ) -> FewestMoves:
        """Return a search for the fewest moves; continue one with higher limits if there is one."""
        permitted = dict(limits)
        looser = [
            one
            for one in self.moves_searches
            if one.level == level
            and all(permitted.get(limited, limit + 1) <= limit for limited, limit in one.limits)
        ]
        if not looser:
            return FewestMoves(self.pool, level, limits, bound)
        known = max(looser, key=lambda one: (one.bound, one.priced is not None)).within(limits)
        return replace(known, bound=max(known.bound, bound))

    def _search_by_cpsat(self, level: Level, bound: int, budget: SearchBudget) -> ProvenBound:
        if not budget.has_work:
            return ProvenBound(0, Origin.CP_SAT)
        from kassay.solver.cpsat.level_search import search_level  # noqa: PLC0415

        return ProvenBound(search_level(self.pool, level, bound, budget), Origin.CP_SAT)

    def _needs_search(self, level: Level) -> bool:
        """Return whether a level may need a search.

        Movement needs none if no partition is owned.
        """
        return not isinstance(level, Movement) or bool((self.pool.problem.owner != NO_OWNER).any())
