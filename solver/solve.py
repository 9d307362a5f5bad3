"""Find the optimal assignment of a group."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InternalError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group
from kassay.solver.certificate.certificate import Certificate, Conflict, LevelClaim, Origin
from kassay.solver.colocated_groups import merge_colocated
from kassay.solver.constraints import Constraint, check_constraints, group_constraints
from kassay.solver.evaluation import binding_constraints, check_levels, level_value, violated
from kassay.solver.incumbent_pool import FlowLevels
from kassay.solver.limits import SearchBudget, SearchLimits, now
from kassay.solver.network.level_network import (
    check_arc_costs,
    has_arc_costs,
    is_optimal_by_squares_and_moves,
    placement_prices,
)
from kassay.solver.network.optimal_flow import flow_work, solve_flow
from kassay.solver.objective import FLOW_LEVELS, FlowLevel, Level, TopicSpread, requested_levels
from kassay.solver.problem import Problem, build_problem
from kassay.solver.search.level_flows import solve_levels_by_flow
from kassay.solver.search.solve_levels import (
    LexicographicResult,
    RelaxedStart,
    enumerate_levels,
    solve_levels,
)
from kassay.solver.solution import Solution, UsedMethod, level_values


class Method(StrEnum):
    """Method that finds the optimum: flow, CP-SAT, or automatic choice."""

    AUTO = "auto"
    FLOW = "flow"
    CP_SAT = "cp-sat"


def solve(
    group: Group,
    *,
    levels: Iterable[Level | str] | str | None = None,
    constraints: Iterable[Constraint] = (),
    initial_assignment: Assignment | None = None,
    method: Method | str = Method.AUTO,
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
) -> Solution:
    """Find an assignment with minimum imbalance and, among those, fewest moves.

    Parameters
    ----------
    levels
        Levels to minimise, in order, or their names; by default `default_levels`.
    constraints
        Constraints besides the capacities of the members, which always apply.
    initial_assignment
        Warm start, often a greedy assignment. It never changes the optimal values.
    method
        ``flow`` is exact for equal weights without further levels and constraints, and ignores
        the warm start. ``cp-sat`` uses searches, and flows only to show that maximum numbers of
        partitions, pins and exclusions conflict; it supports neither copies of partitions nor the
        levels in ``FLOW_LEVELS``. ``auto`` uses the first method that applies: flows,
        comparison of all assignments of a small group, searches.
    limits
        Limits of all levels together, or a safety limit in seconds. When one is reached, the best
        assignment found so far is returned with its bounds.

    Raises
    ------
    UsageError
        If there is no level, or the method, a level or a constraint does not fit the group.
    InputError
        If a constraint refers to a member, topic or partition that the group does not have.
    """
    require_group(group)
    if method not in list(Method):
        raise UsageError(f"method must be one of {', '.join(Method)}, got {method!r}")
    start = now()
    levels, limits = requested_levels(group, levels), SearchLimits.of(limits)
    budget = SearchBudget.start(limits, seed)
    constraints, work = tuple(constraints), budget.counter.spent
    rules = (*group_constraints(group), *constraints)
    _check_request(group, levels, rules, Method(method))
    problem = build_problem(group)
    rules = binding_constraints(problem, rules)
    built = now()
    request = _Request(problem, levels, rules, Method(method), initial_assignment, budget)
    result = _run_first_method(request)
    solved = now()
    solution = _solution(problem, result, constraints)
    end = now()
    timings = {"build": built - start, "search": solved - built, "read back": end - solved}
    return replace(
        solution,
        seconds=end - start,
        timings=timings,
        work=budget.counter.spent - work,
        interrupted=budget.counter.is_interrupted and not solution.is_optimal,
        group=group,
        progress=result.progress,
    )


def _check_request(
    group: Group, levels: Sequence[Level], rules: Sequence[Constraint], method: Method
) -> None:
    """Check that levels and constraints fit the group, and that the method applies to them."""
    if not levels:
        raise UsageError("levels is empty; pass at least one level, for example Imbalance()")
    check_constraints(group, rules)
    check_levels(group, levels)
    check_arc_costs(group, levels, rules)
    needs_arcs = group.has_copies or any(isinstance(level, FlowLevel) for level in levels)
    if needs_arcs and method is not Method.AUTO:
        raise UsageError(
            "a group with copies of partitions or state, and the levels "
            f"{', '.join(FLOW_LEVELS)}, require the method 'auto', got {str(method)!r}"
        )
    is_one_flow = not rules and is_optimal_by_squares_and_moves(group, levels)
    if method is Method.FLOW and not is_one_flow:
        raise UsageError(
            "the method 'flow' requires equal weights and speeds, and one level of imbalance, or "
            "sum_of_squares or leximax, then movement; it supports neither tolerances nor "
            "constraints, including capacities of members; use the method 'auto'"
        )


@dataclass(frozen=True, slots=True)
class _Request:
    """Problem with levels and constraints, and the properties that decide how it is solved."""

    problem: Problem
    levels: tuple[Level, ...]
    rules: tuple[Constraint, ...]
    method: Method
    initial_assignment: Assignment | None
    budget: SearchBudget

    def is_one_flow(self) -> bool:
        """Return whether one flow finds and proves the optimum of all levels."""
        is_permitted = self.method is not Method.CP_SAT and not self.rules
        return is_permitted and is_optimal_by_squares_and_moves(self.problem.group, self.levels)

    def has_arc_costs(self) -> bool:
        """Return whether all levels are convex costs of arcs, and another method is slower."""
        if self.problem.group.has_copies:
            return True
        needs_arcs = any(isinstance(level, TopicSpread | FlowLevel) for level in self.levels)
        is_permitted = self.method is Method.AUTO
        return needs_arcs and is_permitted and has_arc_costs(self.problem.group, self.levels)

    def has_flows(self) -> bool:
        """Return whether counts of partitions describe an assignment, so that flows apply."""
        return bool(
            self.method is Method.AUTO
            and self.problem.group.common_weight
            and self.problem.partition_count
        )

    def may_start_flow(self) -> bool:
        """Return whether a flow may start, and count its work if so."""
        return self.budget.may_start(flow_work(self.problem))

    def may_enumerate(self) -> bool:
        """Return whether all assignments may be compared.

        This includes loads beyond 64 bits if CP-SAT is prescribed, which proves nothing about them.
        """
        return self.method is Method.AUTO or self.problem.has_big_loads


def _by_one_flow(request: _Request) -> LexicographicResult | None:
    """Solve all levels by one minimum cost flow, or return None if too little work is left."""
    problem = request.problem
    if not request.may_start_flow():
        return None
    placement, prices = solve_flow(problem, len(request.levels))
    values = [(level, level_value(problem, level, placement)) for level in request.levels]
    claims = tuple(LevelClaim(level, value, value, Origin.NODE_PRICES) for level, value in values)
    return LexicographicResult(placement, claims, node_prices=prices, method=UsedMethod.FLOW)


def _by_arc_costs(request: _Request) -> LexicographicResult | None:
    """Solve all levels by flows with convex costs.

    Return None if flows cannot minimise a level, or if the optimum violates a constraint. A group
    with copies has no other method: levels without a result have the bound 0.
    """
    problem, levels = request.problem, request.levels
    flows = solve_levels_by_flow(problem, levels, (), request.may_start_flow)
    if not flows.placements or not (flows.is_complete or problem.group.has_copies):
        if problem.group.has_copies:
            return LexicographicResult(None, method=UsedMethod.FLOW)
        return None
    values = {
        tuple(level_value(problem, level, placement) for level in levels): placement
        for placement in reversed(flows.placements)
    }
    best = min(values)
    if any(violated(problem, request.rules, values[best])):
        return None
    prices = None
    if flows.is_complete:
        prices = placement_prices(problem, levels, values[best])
        if prices is None:
            raise InternalError("the flow of all levels is not optimal")
    claims = [
        LevelClaim(level, value, value, Origin.NODE_PRICES)
        if prices is not None
        else LevelClaim(level, value, *flows.bounds.get(index, (0, Origin.COUNTING)))
        for index, (level, value) in enumerate(zip(levels, best, strict=True))
    ]
    return LexicographicResult(
        values[best], tuple(claims), node_prices=prices or (), method=UsedMethod.FLOW
    )


def _by_enumeration(request: _Request) -> LexicographicResult | None:
    """Compare all assignments, or return None if there may be too many."""
    return enumerate_levels(request.problem, request.levels, request.rules)


_MIN_WORK = 0.1
"""Least work of a search that adds a constraint."""
_MERGED_SHARE, _MERGED_SHARE_WITH_EQUAL_OWNERS = 0.5, 0.9
"""Shares of the work left for the group in which colocated partitions are one partition."""


def _merged_starts(request: _Request) -> tuple[RelaxedStart, ...]:
    """Solve the group in which colocated partitions are one partition, if there are any."""
    merged = merge_colocated(request.problem, request.rules)
    levels = () if merged is None else merged.levels(request.levels)
    if merged is None or not levels:
        return ()
    share = _MERGED_SHARE_WITH_EQUAL_OWNERS if merged.has_equal_owners else _MERGED_SHARE
    result = _run_first_method(
        _Request(
            merged.problem,
            levels,
            binding_constraints(merged.problem, merged.rules),
            request.method,
            None,
            request.budget.part(share),
        )
    )
    if result.placement is None:
        return ()
    bounds = merged.bounds(request.levels, result.claims)
    origins = (_origin_without_check(claim.origin) for claim in result.claims)
    return (
        RelaxedStart(
            tuple(map(merged.original_placement, result.placements(merged.problem))),
            tuple(zip(bounds, origins, strict=False)),
            method=result.method if len(bounds) == len(request.levels) else None,
        ),
    )


def _origin_without_check(origin: Origin) -> Origin:
    """Return the origin of a bound whose certificate is about a merged group.

    Without a solver, only bounds on the original group are checked.
    """
    if origin is Origin.NODE_PRICES:
        return Origin.FLOW
    return Origin.PACKING if origin.is_checked else origin


def _by_flows(request: _Request) -> LexicographicResult:
    """Solve one level after the other, with placements and bounds of flows."""
    flow = partial(
        solve_levels_by_flow, request.problem, request.levels, request.rules, request.may_start_flow
    )
    return _by_levels(request, _merged_starts(request), flow)


def _by_search(request: _Request) -> LexicographicResult:
    """Solve one level after the other.

    If no placement is found, add the constraints that the answer without them violates, one by
    one: repairs meet one more constraint more easily than all of them together.
    """
    starts = _merged_starts(request)
    found = _by_levels(request, starts)
    if found.placement is not None or found.conflict or not request.rules:
        return found
    # The bounds of these starts are valid only with all constraints.
    starts = tuple(replace(one, bounds=()) for one in starts)
    rules: tuple[Constraint, ...] = ()
    while True:
        budget = request.budget.for_first_result(_MIN_WORK)
        found = _by_levels(replace(request, rules=rules, budget=budget), starts)
        placements = found.placements(request.problem)
        violations = (violated(request.problem, request.rules, one) for one in placements)
        broken = next((rule for each in violations for rule in each), None)
        if broken is None:
            return found
        rules, starts = (*rules, broken), (RelaxedStart(placements, ()),)


def _by_levels(
    request: _Request, starts: Sequence[RelaxedStart], flow: Callable[[], FlowLevels] | None = None
) -> LexicographicResult:
    return solve_levels(
        request.problem,
        levels=request.levels,
        constraints=request.rules,
        initial_assignment=request.initial_assignment,
        budget=request.budget,
        flow=flow,
        starts=starts,
    )


class _Row(NamedTuple):
    """Row of the table of methods: condition, method, and reason for the method."""

    applies: Callable[[_Request], bool]
    run: Callable[[_Request], LexicographicResult | None]
    reason: str


_METHODS = (
    _Row(
        _Request.is_one_flow,
        _by_one_flow,
        "one flow is fastest, and its node prices prove all levels",
    ),
    _Row(
        _Request.has_arc_costs,
        _by_arc_costs,
        "flows with convex costs per topic and copy are fast, and node prices prove all levels",
    ),
    _Row(
        _Request.may_enumerate,
        _by_enumeration,
        "all assignments of a small group are compared in less time than a search starts",
    ),
    _Row(
        _Request.has_flows,
        _by_flows,
        "flows of equal weights solve or bound the first levels, whatever the constraints",
    ),
    _Row(
        lambda _: True,
        _by_search,
        "all other groups need a search per level: packing, column generation, CP-SAT",
    ),
)
"""Methods in the order of preference. The first one that applies and has a result is used."""


def _run_first_method(request: _Request) -> LexicographicResult:
    """Return the result of the first method in the table that has one."""
    for row in _METHODS:
        result = row.run(request) if row.applies(request) else None
        if result is not None:
            return result
    raise InternalError("no method of the solver applies to the group")


def _solution(
    problem: Problem, result: LexicographicResult, constraints: tuple[Constraint, ...]
) -> Solution:
    """Convert a result to a solution, after a check of its placement."""
    method = result.method
    if result.placement is None:
        if not result.conflict:
            return Solution(None, str(method))
        conflict = Conflict(result.conflict, result.conflict_origin)
        return Solution(
            None,
            str(method),
            certificate=Certificate((), constraints=constraints, conflict=conflict),
            conflict=tuple(map(str, result.conflict)),
        )
    rules = (*group_constraints(problem.group), *constraints)
    for rule in violated(problem, rules, result.placement):
        raise InternalError(f"the result of the method {method} violates a constraint: {rule}")
    return Solution(
        assignment=problem.to_assignment(result.placement),
        method=str(method),
        levels=level_values(result.claims),
        certificate=Certificate(
            result.claims, node_prices=result.node_prices, constraints=constraints
        ),
    )
