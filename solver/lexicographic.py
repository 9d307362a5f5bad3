"""Lexicographic solver: minimise one level after the other.

Modules that load OR-Tools or SciPy are imported in functions, because most small groups are
solved by counting bounds alone and loading these libraries takes seconds.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds import level_bound, makespan_bound, max_loads_within
from kassay.solver.certificate.certificate import LevelClaim, Origin, PriceTable
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.enumeration.complete_search import CompleteResult, search_all
from kassay.solver.evaluation import imbalance_of, level_value, movement_costs, violated
from kassay.solver.flow.flow_levels import FlowLevels
from kassay.solver.incumbent_pool import IncumbentPool, LevelResult
from kassay.solver.initial_solutions import keep_owned, longest_processing_time
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Level, Movement
from kassay.solver.problem import EXACT_IN_64_BITS, Placement, Problem
from kassay.solver.solution import ProgressPoint

if TYPE_CHECKING:
    from kassay.solver.weighted.few_moves import FewMovesSearch

# Finding any placement at all may take this many seconds, whatever the limit.
_MIN_SECONDS = 1.0
# CP-SAT solves smaller groups faster than any other method starts.
_MIN_PARTITIONS = 12
_MANY_PER_MEMBER = 4
# The first placement with few moves may take this many seconds, whatever the limit.
_SECONDS_FOR_FEW_MOVES = 1.0
_MIN_PARTITIONS_FOR_EXCHANGE = 60
_MIN_CHOICES_FOR_LONG_EXCHANGE = 3_000
_MIN_CHOICES_FOR_LIMITED_MOVES = 2_000


@dataclass(frozen=True, slots=True)
class LexicographicResult:
    """Best placement with claims per level, or the conflicting constraints."""

    placement: Placement | None  # None if there is none, or none was found in time
    claims: tuple[LevelClaim, ...] = ()
    prices: PriceTable | None = None
    conflict: tuple[Constraint, ...] = ()
    conflict_origin: Origin = Origin.CP_SAT
    progress: tuple[ProgressPoint, ...] = ()  # seconds of `time.monotonic`

    def is_proven_by(self, origins: Collection[Origin]) -> bool:
        """Return whether a placement exists and all its bounds have one of these origins."""
        return self.placement is not None and all(claim.origin in origins for claim in self.claims)


def solve_levels(
    problem: Problem,
    *,
    levels: Sequence[Level],
    constraints: Sequence[Constraint],
    initial_assignment: Assignment | None,
    budget: SearchBudget,
    flow: Callable[[], FlowLevels] | None = None,
    enumerates: bool = True,
) -> LexicographicResult:
    """Find the best placement and return it with a value and bound per level.

    With ``enumerates``, all placements of a small group are compared. Otherwise only those of
    groups with loads beyond 64 bits. Other groups start with the placements and bounds of
    ``flow``.
    """
    if enumerates or problem.total >= EXACT_IN_64_BITS:
        complete = search_all(problem, levels, constraints)
        if complete is not None:
            return _enumerated(problem, levels, complete)
    flows = FlowLevels() if flow is None else flow()
    if flows.conflict:
        return LexicographicResult(None, conflict=flows.conflict, conflict_origin=Origin.FLOW)
    candidates = [*flows.placements, keep_owned(problem)]
    if not flows.placements:
        candidates.append(longest_processing_time(problem))
    if initial_assignment is not None:
        warm_start = problem.to_placement(initial_assignment)
        candidates += [] if warm_start is None else [warm_start]
    candidates = [one for one in candidates if not any(violated(problem, constraints, one))]
    if not candidates:
        from kassay.solver.cpsat.infeasibility import (  # noqa: PLC0415
            find_any_placement,
            find_conflict,
        )

        result = find_any_placement(problem, constraints, budget.at_least(_MIN_SECONDS))
        if result.infeasible:
            return LexicographicResult(None, conflict=find_conflict(problem, constraints, budget))
        if result.placement is None:
            return LexicographicResult(None)
        candidates = [result.placement]
    pool = IncumbentPool(problem, levels, constraints, candidates)
    _add_few_moves(pool)
    solver = _LexicographicSolver(pool, flows)
    for index in range(len(levels)):
        solver.solve_level(index, budget)
    placement = pool.incumbent(levels[-1])
    return LexicographicResult(
        placement,
        tuple(_final_claim(problem, done, placement) for done in pool.reached),
        flows.prices if any(done.claim.origin is Origin.PRICES for done in pool.reached) else None,
        progress=tuple(solver.progress),
    )


def _add_few_moves(pool: IncumbentPool) -> None:
    """Add a placement with the best makespan so far that moves few owned partitions."""
    problem, level = pool.problem, pool.levels[0]
    if (
        not isinstance(level, Imbalance)
        or level.measure is not Measure.MAKESPAN
        or not problem.group.is_weighted
        or not (problem.owner != NO_OWNER).any()
        or not all(isinstance(rule, MaxMoves) for rule in pool.constraints)
        or problem.total >= EXACT_IN_64_BITS
    ):
        return
    owned = keep_owned(problem)
    best = pool.value(level)
    if max(problem.loads(owned)) <= best:
        return
    from kassay.solver.weighted.few_moves import FewMovesSearch  # noqa: PLC0415

    costs = np.ones(problem.partition_count, dtype=np.int64)
    deadline = time.monotonic() + _SECONDS_FOR_FEW_MOVES
    for max_load in dict.fromkeys((best, makespan_bound(problem))):
        search = FewMovesSearch(problem, max_load, costs, np.random.default_rng(0))
        placement = search.initial_solution(owned, lambda: time.monotonic() < deadline)
        if placement is not None:
            pool.add(placement)


def _final_claim(problem: Problem, done: LevelResult, placement: Placement) -> LevelClaim:
    """Return the claim of a level about the final placement, which a tolerance may worsen."""
    return _claim_about(problem, done.claim, placement, best=done.placement)


def _claim_about(
    problem: Problem, claim: LevelClaim, placement: Placement, *, best: Placement
) -> LevelClaim:
    """Return a claim about a placement that may be worse than the best one of the level."""
    value = level_value(problem, claim.level, placement)
    shown = problem.to_assignment(best) if value > claim.value else None
    return replace(claim, value=value, best=shown)


def _enumerated(
    problem: Problem, levels: Sequence[Level], complete: CompleteResult
) -> LexicographicResult:
    """Return the result of the comparison of all placements as claims."""
    if complete.placement is None:
        return LexicographicResult(
            None, conflict=complete.conflict, conflict_origin=Origin.ENUMERATION
        )
    claims = []
    limits: list[tuple[Level, int]] = []
    for level, minimum, best in zip(levels, complete.minima, complete.best, strict=True):
        counted = level_bound(problem, level, max_loads_within(problem, limits))
        origin = Origin.COUNTING if counted >= minimum else Origin.ENUMERATION
        claim = LevelClaim(level, minimum, minimum, origin)
        claims.append(_claim_about(problem, claim, complete.placement, best=best))
        limits.append((level, level.tolerance.limit(minimum)))
    return LexicographicResult(complete.placement, tuple(claims))


@dataclass
class _LexicographicSolver:
    """Solver of the levels of one problem, in order."""

    pool: IncumbentPool
    flow: FlowLevels
    proven: dict[int, int] | None = None  # by level index; None until requested
    progress: list[ProgressPoint] = field(default_factory=list)

    def solve_level(self, index: int, budget: SearchBudget) -> None:
        """Minimise a level within the limits of the finished levels and its share of time."""
        pool = self.pool
        level = pool.levels[index]
        bound = level_bound(pool.problem, level, pool.max_loads())
        origin = Origin.COUNTING
        known = self.flow.bounds.get(index)
        if known is not None and (known[0] > bound or known == (bound, Origin.PRICES)):
            bound, origin = known
        budget = budget.share(1 + sum(map(self._needs_time, pool.levels[index + 1 :])))
        for origin_of_step, search in self._searches(index, level, budget):
            if pool.value(level) <= bound:
                break
            higher = search(bound)
            if higher > bound:
                bound, origin = higher, origin_of_step
        value = pool.value(level)
        claim = LevelClaim(level, value, min(bound, value), origin)
        limit = level.tolerance.limit(value)
        pool.reached.append(LevelResult(claim, limit, pool.incumbent(level)))

    def _searches(
        self, index: int, level: Level, budget: SearchBudget
    ) -> Iterator[tuple[Origin, Callable[[int], int]]]:
        """Yield the searches of a level; each takes the bound and returns a bound or 0."""
        if budget.seconds > 0:
            problem = self.pool.problem
            # Few members with many partitions each: subsets of the mean load are frequent.
            if problem.partition_count >= _MANY_PER_MEMBER * problem.member_count:
                yield Origin.ENUMERATION, lambda _: self._proven_values(budget).get(index, 0)
            if isinstance(level, Imbalance):
                yield Origin.PACKING, lambda _: self._pack_identical(level, budget)
            yield Origin.ENUMERATION, lambda _: self._proven_values(budget).get(index, 0)
            if isinstance(level, Imbalance):
                yield Origin.EXCHANGE, lambda _: self._balance_loads(level, budget)
                yield Origin.EXCHANGE, lambda _: self._limit_moves(level, budget)
        if isinstance(level, Movement):
            yield Origin.EXCHANGE, lambda bound: self._exchange(level, bound, budget)
        yield Origin.CP_SAT, lambda bound: self._search_by_cpsat(level, bound, budget)

    def _search_by_cpsat(self, level: Level, bound: int, budget: SearchBudget) -> int:
        if budget.seconds <= 0:
            return 0
        from kassay.solver.cpsat.level_search import search_level  # noqa: PLC0415

        return search_level(self.pool, level, bound, budget)

    def _needs_time(self, level: Level) -> bool:
        """Return whether a later level may need search.

        Movement needs none if no partition is owned.
        """
        return not isinstance(level, Movement) or bool((self.pool.problem.owner != NO_OWNER).any())

    def _pack_identical(self, level: Imbalance, budget: SearchBudget) -> int:
        """Minimise the makespan of identical members; return a lower bound or 0."""
        pool, problem = self.pool, self.pool.problem
        if (
            pool.reached
            or pool.constraints
            or level.measure is not Measure.MAKESPAN
            or budget.seconds <= 0
            or problem.partition_count < _MIN_PARTITIONS
            or not problem.group.is_weighted
        ):
            return 0
        from kassay.solver.identical_members.identical_components import (  # noqa: PLC0415
            minimise_makespan,
        )
        from kassay.solver.identical_members.search_clock import SearchClock  # noqa: PLC0415
        from kassay.solver.weighted.subset_enumeration import MAX_ITEMS  # noqa: PLC0415

        rng = np.random.default_rng(budget.seed)
        clock = SearchClock.of(budget)
        if problem.partition_count <= MAX_ITEMS and self.proven is None:
            # The enumeration of subsets may prove the same, and the movement too.
            clock = clock.part(0.5)
        result = minimise_makespan(problem, pool.incumbent(level), clock, rng)
        if result is None:
            return 0
        pool.add(result.placement)
        return result.bound

    def _proven_values(self, budget: SearchBudget) -> dict[int, int]:
        """Return optimal values of the first levels by exact enumeration of small groups."""
        if self.proven is None:
            self.proven = {}
            pool, problem = self.pool, self.pool.problem
            if problem.partition_count >= _MIN_PARTITIONS and problem.group.is_weighted:
                from kassay.solver.weighted.solve_components import solve_components  # noqa: PLC0415

                exact = budget.share(2)
                first = self.pool.reached[0].claim if self.pool.reached else None
                is_known = first is not None and first.value == first.bound
                optimum = solve_components(
                    problem,
                    pool.levels,
                    pool.constraints,
                    seed=budget.seed,
                    minimum=first.value if is_known and first is not None else None,
                    may_continue=lambda: exact.seconds > 0,
                )
                if optimum is not None:
                    pool.placements.append(optimum.placement)
                    self.proven = dict(enumerate(optimum.values))
        return self.proven

    def _balance_loads(self, level: Imbalance, budget: SearchBudget) -> int:
        """Improve the incumbent on the first level by local search; return no bound, 0."""
        pool, problem = self.pool, self.pool.problem
        if pool.reached or pool.constraints:
            return 0
        if problem.partition_count < _MIN_PARTITIONS:
            return 0
        from kassay.solver.weighted.load_local_search import LoadBalancer  # noqa: PLC0415

        rng = np.random.default_rng(budget.seed)
        best = pool.value(level)
        start = min(
            (one for one in pool.placements if level_value(problem, level, one) == best),
            key=lambda one: imbalance_of(Measure.SUM_OF_SQUARES, problem.loads(one)),
        )
        balancer = LoadBalancer(problem, start.copy(), rng)
        may_continue = _continuation(budget.share(2), 5_000)
        balancer.lower_makespan(makespan_bound(problem), may_continue)
        balancer.even_out(may_continue)
        pool.placements.append(balancer.placement)
        return 0

    def _limit_moves(self, level: Imbalance, budget: SearchBudget) -> int:
        """Search the minimum makespan within a number of moves.

        Return a lower bound on it, or 0 if none is proven.
        """
        pool, problem = self.pool, self.pool.problem
        limits = [rule.limit for rule in pool.constraints if isinstance(rule, MaxMoves)]
        if (
            not limits
            or pool.reached
            or level.measure is not Measure.MAKESPAN
            or problem.partition_count < _MIN_PARTITIONS
            or problem.total >= EXACT_IN_64_BITS
            or not problem.group.is_weighted
        ):
            return 0
        from kassay.solver.weighted.limited_moves import LimitedMovesSearch  # noqa: PLC0415

        rng = np.random.default_rng(budget.seed)
        search = LimitedMovesSearch(problem, min(limits), pool.incumbent(level), rng)
        # CP-SAT improves this bound little if there are many choices.
        is_large = problem.partition_count * problem.member_count >= _MIN_CHOICES_FOR_LIMITED_MOVES
        share = budget.until(budget.seconds * (0.9 if is_large else 0.5))
        search.run(_continuation(share, 150))
        pool.add(search.placement)
        return search.bound

    def _exchange(self, level: Movement, bound: int, budget: SearchBudget) -> int:
        """Search for fewer moves within the maximum loads.

        Return a lower bound on the moves, or 0 if none is proven.
        """
        pool, problem, max_loads = self.pool, self.pool.problem, self.pool.max_loads()
        if (
            max_loads is None
            or not all(isinstance(rule, MaxMoves) for rule in pool.constraints)
            or problem.partition_count < _MIN_PARTITIONS_FOR_EXCHANGE
            or problem.total >= EXACT_IN_64_BITS
            or not problem.group.is_weighted
        ):
            return 0
        from kassay.solver.weighted.few_moves import FewMovesSearch  # noqa: PLC0415

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
                pool.add(start)  # Without search, so that it is there when no time is left.
            if budget.seconds <= 0:
                return 0
            if start is None or search.cost(start) > pool.value(level):
                start = pool.incumbent(level)
            first = _continuation(budget.until(budget.seconds * (0.5 if is_large else 0.25)), 60)
            self._record(search.cost(start), bound)
            pool.add(search.improve(start, bound, first))
            self._record_found(search, bound)
        if budget.seconds <= 0:
            return 0
        from kassay.solver.weighted.movement_bound import exchange_bound  # noqa: PLC0415

        rest = budget.until(budget.seconds * (0.95 if is_large else 0.5))
        bounding = rest.until(rest.seconds * (0.7 if is_large else 1.0))
        proven = exchange_bound(
            problem,
            max_loads,
            costs,
            incumbent=pool.value(level),
            may_continue=_continuation(bounding, 250),
        )
        if search is not None:
            self._record(pool.value(level), max(bound, proven))
        if search is not None and is_large:
            best = pool.incumbent(level)
            improved = search.improve(best, max(bound, proven), _continuation(rest, 60))
            pool.add(improved)
            self._record_found(search, max(bound, proven))
        return proven

    def _record(self, value: int, bound: int) -> None:
        self.progress.append(ProgressPoint(time.monotonic(), value, bound))

    def _record_found(self, search: "FewMovesSearch", bound: int) -> None:
        self.progress += [ProgressPoint(at, cost, bound) for at, cost in search.found]
        search.found.clear()


def _continuation(budget: SearchBudget, most: int) -> Callable[[], bool]:
    """Return a function that reports whether time, or the deterministic limit, is left."""
    if budget.limits.deterministic is None:
        return lambda: budget.seconds > 0
    turns = iter(range(most))
    return lambda: next(turns, None) is not None
