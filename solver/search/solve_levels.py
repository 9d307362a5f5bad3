"""Find the best placement of a lexicographic objective, with a claim per level.

Modules that load OR-Tools or SciPy are imported in functions, because most small groups are
solved by counting bounds alone and loading these libraries takes seconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import assert_never

import numpy as np

from kassay.reference.model.assignment import NO_OWNER, Assignment
from kassay.reference.model.metrics import LoadUnits, Measure
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.constraints import Capacity, Constraint, Forbidden, MaxPartitions, Pinned
from kassay.solver.counting_bounds import level_bound
from kassay.solver.enumeration import search_all
from kassay.solver.evaluation import level_value, load_units, violated
from kassay.solver.incumbent_pool import (
    FlowLevels,
    IncumbentPool,
    LevelResult,
    keep_owned,
    longest_processing_time,
    place_within,
    within_racks,
)
from kassay.solver.limits import SearchBudget
from kassay.solver.network.optimal_flow import flow_work
from kassay.solver.objective import (
    Colocation,
    CrossRack,
    FlowLevel,
    HostImbalance,
    Imbalance,
    Level,
    MembersUsed,
    Movement,
    MovementCost,
    Tolerance,
    TopicSpread,
    only_by_flows,
)
from kassay.solver.problem import Arithmetic, Placement, Problem, Scale, scale_to_fit
from kassay.solver.search.level_flows import find_conflict_by_flow, is_infeasible
from kassay.solver.search.load_searches import (
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
from kassay.solver.search.movement_search import (
    FewestMoves,
    LevelLimit,
    MovementSearch,
    add_few_moves,
)
from kassay.solver.search.overload_searches import add_any_repaired, add_repaired, repair_overloads
from kassay.solver.solution import ProgressPoint, UsedMethod

_MIN_WORK = 1.0
"""Minimum work to find any placement."""
_MODEL_WORK_PER_CHOICE = 1.5e-5
"""Work to build a CP-SAT model per partition and member."""
_MAX_CHOICES = 200_000
"""Partitions times members up to which a greedy rule for constraints or racks takes a second."""
_WORK_PER_CHOICE = 1e-5
"""Work of this rule per choice."""


@dataclass(frozen=True, slots=True)
class LexicographicResult:
    """Best placement with claims per level, or the conflicting constraints."""

    placement: Placement | None  # None if there is none, or none was found within the limits
    claims: tuple[LevelClaim, ...] = ()
    node_prices: tuple[int, ...] = ()
    conflict: tuple[Constraint, ...] = ()
    conflict_origin: Origin = Origin.CP_SAT
    progress: tuple[ProgressPoint, ...] = ()
    method: UsedMethod = UsedMethod.CP_SAT

    def placements(self, problem: Problem) -> tuple[Placement, ...]:
        """Return the answer, and placements that are better on a level with a tolerance."""
        if self.placement is None:
            return ()
        best = (problem.to_placement(claim.best) for claim in self.claims if claim.best)
        return (self.placement, *(one for one in best if one is not None))


@dataclass(frozen=True, slots=True)
class RelaxedStart:
    """Answer to the same problem with fewer constraints, or with merged partitions.

    ``placements`` are the answer and better placements on single levels with a tolerance.
    ``bounds`` are the valid bounds per level, with their origins. ``method`` is the method that
    proved bounds on all levels, or None.
    """

    placements: Sequence[Placement]
    bounds: tuple[tuple[int, Origin], ...]
    method: UsedMethod | None = None


def solve_levels(
    problem: Problem,
    *,
    levels: Sequence[Level],
    constraints: Sequence[Constraint],
    initial_assignment: Assignment | None,
    budget: SearchBudget,
    flow: Callable[[], FlowLevels] | None = None,
    starts: Sequence[RelaxedStart] = (),
) -> LexicographicResult:
    """Find the best placement and return it with a value and bound per level.

    The search starts with the placements and bounds of ``flow``, and of ``starts``.
    """
    flows = FlowLevels() if flow is None else flow()
    if flows.conflict:
        return LexicographicResult(
            None, conflict=flows.conflict, conflict_origin=Origin.FLOW, method=UsedMethod.FLOW
        )
    warm_start = None if initial_assignment is None else problem.to_placement(initial_assignment)
    given = [] if warm_start is None else [warm_start]
    given.extend(placement for start in starts for placement in start.placements)
    candidates = _initial_placements(
        problem, levels, constraints, flows, given=given, budget=budget
    )
    for start in starts:
        for index, bound in enumerate(start.bounds):
            flows.bounds[index] = max(flows.bounds.get(index, bound), bound, key=itemgetter(0))
    if problem.has_big_loads:
        rounded = _rounded_placement(problem, levels, constraints, initial_assignment, budget)
        candidates += [] if rounded is None else [rounded]
    candidates = [one for one in candidates if not any(violated(problem, constraints, one))]
    pool = IncumbentPool(problem, levels, constraints, candidates)
    if not candidates:
        result = _add_any_placement(pool, budget)
        if result is not None:
            return result
    add_few_moves(pool, budget)
    add_repaired(pool, budget)
    solver = LevelSolver(pool, flows)
    solver.contributed += [start.method for start in starts if start.method is not None]
    for index in range(len(levels)):
        solver.solve_level(index, budget)
    placement = pool.incumbent(levels[-1])
    claims, node_prices = flows.priced_claims(
        [_claim_about(problem, done.claim, placement, best=done.placement) for done in pool.reached]
    )
    return LexicographicResult(
        placement,
        claims,
        node_prices=node_prices,
        progress=tuple(solver.progress),
        method=UsedMethod.last(solver.contributed) or _method_without_search(flows, pool),
    )


def _add_any_placement(pool: IncumbentPool, budget: SearchBudget) -> LexicographicResult | None:
    """Add a placement that meets the constraints to the pool, and return None.

    If there is no placement, if none is found, or if all are compared, return the result.
    """
    from kassay.solver.cpsat.level_search import find_any_placement, find_conflict  # noqa: PLC0415

    problem, constraints = pool.problem, pool.constraints
    within = budget.for_first_result(_MIN_WORK)
    choices = problem.partition_count * problem.member_count
    conflict = _conflict_of_numbers(problem, constraints, within)
    if conflict:
        return LexicographicResult(
            None, conflict=conflict, conflict_origin=Origin.FLOW, method=UsedMethod.FLOW
        )
    add_any_repaired(pool, within)
    if pool.placements:
        return None
    if choices * _MODEL_WORK_PER_CHOICE > within.left + _MIN_WORK:
        return LexicographicResult(None)
    result = find_any_placement(problem, constraints, within)
    if result.infeasible:
        return LexicographicResult(None, conflict=find_conflict(problem, constraints, budget))
    if result.placement is None:
        # CP-SAT finds no assignment of some small groups with numbers of more than 50 bits.
        return enumerate_levels(problem, pool.levels, constraints) or LexicographicResult(None)
    pool.add(result.placement)
    return None


def _conflict_of_numbers(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> tuple[Constraint, ...]:
    """Return constraints that conflict whatever the weights, if flows of numbers prove it."""
    rules = [rule for rule in constraints if not isinstance(rule, Capacity)]
    may_start = partial(budget.may_start, flow_work(problem))
    is_counted = any(isinstance(rule, MaxPartitions | Pinned | Forbidden) for rule in rules)
    if not is_counted or not may_start() or not is_infeasible(problem, rules):
        return ()
    return find_conflict_by_flow(problem, rules, may_start)


def _initial_placements(
    problem: Problem,
    levels: Sequence[Level],
    constraints: Sequence[Constraint],
    flows: FlowLevels,
    *,
    given: Sequence[Placement],
    budget: SearchBudget,
) -> list[Placement]:
    """Return the initial placements: flows, greedy rules and the given placements.

    They may violate constraints. Greedy rules are not necessary if flows solve all levels. The
    greedy rule for constraints is slow, so that it needs work left or the lack of a placement.
    """
    if flows.is_complete:
        return [*flows.placements, *given]
    units: list[LoadUnits] = []
    if any(isinstance(level, HostImbalance) for level in levels):
        balanced = (level for level in levels if isinstance(level, Imbalance | HostImbalance))
        units = [load_units(problem, level) for level in balanced]
    placements = [*flows.placements, keep_owned(problem, units)]
    if not flows.placements or units:
        placements.append(longest_processing_time(problem, units))
    placements.extend(given)
    choices = problem.partition_count * problem.member_count
    if choices <= _MAX_CHOICES and any(isinstance(level, CrossRack) for level in levels):
        placements.append(longest_processing_time(within_racks(problem), units))
    if (
        constraints
        and choices <= _MAX_CHOICES
        and (
            budget.left > choices * _WORK_PER_CHOICE
            or all(any(violated(problem, constraints, one)) for one in placements)
        )
    ):
        within = place_within(problem, constraints, units)
        placements.extend([] if within is None else [within])
    return placements


def _rounded_placement(
    problem: Problem,
    levels: Sequence[Level],
    constraints: Sequence[Constraint],
    initial_assignment: Assignment | None,
    budget: SearchBudget,
) -> Placement | None:
    """Return the best placement of a problem with loads above 64 bits, for rounded weights.

    Weights are rounded up, so that the placement meets the capacities.
    """
    total = problem.total + problem.partition_count
    scale = scale_to_fit(
        problem.weight.tolist(), lambda unit: Arithmetic.FLOAT_SOLVER.represents(total // unit)
    )
    weight = [scale.quotient(each, rounds_up=True) for each in problem.weight.tolist()]
    result = solve_levels(
        replace(problem, weight=np.array(weight, dtype=np.int64)),
        levels=[replace(level, tolerance=_rounded_tolerance(level, scale)) for level in levels],
        constraints=[
            replace(rule, limit=scale.quotient(rule.limit)) if isinstance(rule, Capacity) else rule
            for rule in constraints
        ],
        initial_assignment=initial_assignment,
        budget=budget.part(1 / 2),
    )
    return result.placement


def _rounded_tolerance(level: Level, scale: Scale) -> Tolerance:
    """Return the tolerance of a level for rounded weights."""
    tolerance, unit = level.tolerance, scale.unit
    match level:
        case (
            Imbalance(measure=Measure.SUM_OF_SQUARES)
            | HostImbalance(measure=Measure.SUM_OF_SQUARES)
        ):
            unit = unit**2
        case Imbalance() | HostImbalance() | Movement(cost=MovementCost.WEIGHT):
            pass
        case _:
            return tolerance
    up_to = None if tolerance.up_to is None else tolerance.up_to // unit
    return replace(tolerance, absolute=tolerance.absolute // unit, up_to=up_to)


def _claim_about(
    problem: Problem, claim: LevelClaim, placement: Placement, *, best: Placement
) -> LevelClaim:
    """Set the value of a claim to the value of a placement.

    A tolerance may make this value worse than the best value of the level. Then add the best
    placement.
    """
    value = level_value(problem, claim.level, placement)
    shown = problem.to_assignment(best) if value > claim.value else None
    return replace(claim, value=value, best=shown)


def enumerate_levels(
    problem: Problem, levels: Sequence[Level], constraints: Sequence[Constraint]
) -> LexicographicResult | None:
    """Compare all placements of a small group, with one claim per level; None if not small."""
    complete = search_all(problem, levels, constraints)
    if complete is None:
        return None
    if complete.placement is None:
        return LexicographicResult(
            None,
            conflict=complete.conflict,
            conflict_origin=Origin.ENUMERATION,
            method=UsedMethod.ENUMERATION,
        )
    claims = []
    limits: list[tuple[Level, int]] = []
    for level, minimum, best in zip(levels, complete.minima, complete.best, strict=True):
        counted = level_bound(problem, level, limits)
        origin = Origin.COUNTING if counted >= minimum else Origin.ENUMERATION
        claim = LevelClaim(level, minimum, minimum, origin)
        claims.append(_claim_about(problem, claim, complete.placement, best=best))
        limits.append((level, level.tolerance.limit(minimum)))
    return LexicographicResult(complete.placement, tuple(claims), method=UsedMethod.ENUMERATION)


def _method_without_search(flows: FlowLevels, pool: IncumbentPool) -> UsedMethod:
    """Return the method if no search contributed: flows, or bounds by counting."""
    origins = {done.claim.origin for done in pool.reached}
    is_flow = flows.placements or origins & {Origin.FLOW, Origin.NODE_PRICES}
    return UsedMethod.FLOW if is_flow else UsedMethod.COUNTING


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
