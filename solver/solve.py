"""Find the optimal assignment of a group."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group, require_group
from kassay.solver.certificate.certificate import (
    Certificate,
    Conflict,
    LevelClaim,
    Origin,
    prices_prove,
)
from kassay.solver.constraints import Constraint, check_constraints, group_constraints
from kassay.solver.evaluation import check_levels, level_value
from kassay.solver.incumbent_pool import FlowLevels
from kassay.solver.lexicographic.solve_levels import LexicographicResult, solve_levels
from kassay.solver.limits import FlowClock, SearchBudget, SearchLimits
from kassay.solver.objective import HostImbalance, Level, default_levels
from kassay.solver.problem import Problem, build_problem
from kassay.solver.solution import Solution, level_values

_FLOW_ORIGINS = (Origin.PRICES, Origin.COUNTING, Origin.FLOW)


class Method(StrEnum):
    """Method that finds the optimum: flow, CP-SAT, or automatic choice."""

    AUTO = "auto"
    FLOW = "flow"
    CP_SAT = "cp-sat"


def solve(
    group: Group,
    *,
    levels: Iterable[Level] | None = None,
    constraints: Iterable[Constraint] = (),
    initial_assignment: Assignment | None = None,
    method: Method | str = Method.AUTO,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> Solution:
    """Find an assignment with minimum imbalance and, among those, fewest moves.

    Parameters
    ----------
    levels
        Levels to minimise, in order; by default `default_levels`.
    constraints
        Constraints besides the capacities of the members, which always apply.
    initial_assignment
        Warm start, often a greedy assignment. It never changes the optimal values.
    method
        ``flow`` is exact for equal weights without further levels and constraints, and ignores
        the warm start; ``cp-sat`` solves everything; ``auto`` uses flows wherever they apply,
        compares all assignments of small groups, and uses CP-SAT for everything else.
    limits
        Limits of all levels together. When one is reached, the best assignment found so
        far is returned with its bounds.

    Raises
    ------
    UsageError
        If there is no level, or ``flow`` does not apply.
    InputError
        If a constraint refers to a member, topic or partition that the group does not have.
    """
    require_group(group)
    start = time.monotonic()
    levels = default_levels(group) if levels is None else tuple(levels)
    constraints = tuple(constraints)
    rules = (*group_constraints(group), *constraints)
    is_pure = _is_pure_flow(group, levels, rules, Method(method))
    problem = build_problem(group)
    built = time.monotonic()
    budget = SearchBudget(start + limits.time, limits, seed)
    used, result = _search(
        problem,
        levels,
        rules,
        initial_assignment,
        budget,
        seconds_to_build=built - start,
        is_pure=is_pure,
        is_auto=Method(method) is Method.AUTO,
    )
    solved = time.monotonic()
    solution = _solution(problem, used, result, constraints)
    end = time.monotonic()
    timings = {"build": built - start, "search": solved - built, "read back": end - solved}
    progress = tuple(replace(at, seconds=at.seconds - start) for at in result.progress)
    return replace(solution, seconds=end - start, timings=timings, group=group, progress=progress)


def _is_pure_flow(
    group: Group, levels: Sequence[Level], rules: Sequence[Constraint], method: Method
) -> bool:
    """Check the levels and constraints, and return whether one network flow is sufficient."""
    if not levels:
        raise UsageError("levels is empty; pass at least one level, for example Imbalance()")
    check_constraints(group, rules)
    check_levels(group, levels)
    is_pure = not rules and prices_prove(group, levels)
    if method is Method.FLOW and not is_pure:
        raise UsageError(
            "the method 'flow' requires equal weights, and the levels imbalance (sum_of_squares or "
            "leximax), then movement; it supports neither tolerances nor constraints"
        )
    return is_pure and method is not Method.CP_SAT


def _search(
    problem: Problem,
    levels: Sequence[Level],
    rules: Sequence[Constraint],
    initial_assignment: Assignment | None,
    budget: SearchBudget,
    *,
    seconds_to_build: float,
    is_pure: bool,
    is_auto: bool,
) -> tuple[Method, LexicographicResult]:
    """Solve a problem by one network flow if possible, otherwise level by level.

    Return the method that was used, and the result.
    """
    flow = None
    if is_pure or (is_auto and problem.group.common_weight and problem.partition_count):
        # Imported here, because different weights do not need flows.
        from kassay.solver.flow.optimal_flow import expected_seconds  # noqa: PLC0415

        clock = FlowClock(budget, expected_seconds(problem, seconds_to_build))
        pure = _solve_by_flow(problem, levels, clock) if is_pure else None
        if pure is not None:
            return Method.FLOW, pure
        if is_auto and problem.partition_count:
            flow = partial(_flow_method(problem, levels), problem, levels, rules, clock)
    result = solve_levels(
        problem,
        levels=levels,
        constraints=rules,
        initial_assignment=initial_assignment,
        budget=budget,
        flow=flow,
        enumerates=is_auto,
    )
    by_flow = flow is not None and result.is_proven_by(_FLOW_ORIGINS)
    return Method.FLOW if by_flow else Method.CP_SAT, result


def _flow_method(problem: Problem, levels: Sequence[Level]) -> Callable[..., FlowLevels]:
    """Return the function that solves or bounds the first levels by network flows."""
    if problem.group.has_equal_speeds and not any(isinstance(one, HostImbalance) for one in levels):
        from kassay.solver.flow.flow_levels import solve_levels_by_flow  # noqa: PLC0415

        return solve_levels_by_flow
    from kassay.solver.flow.ordered_level_flows import solve_ordered_levels  # noqa: PLC0415

    return solve_ordered_levels


def _solve_by_flow(
    problem: Problem, levels: Sequence[Level], clock: FlowClock
) -> LexicographicResult | None:
    from kassay.solver.flow.optimal_flow import solve_flow  # noqa: PLC0415

    flow = solve_flow(problem, clock)
    if flow is None:
        return None
    values = [(level, level_value(problem, level, flow.placement)) for level in levels]
    claims = tuple(LevelClaim(level, value, value, Origin.PRICES) for level, value in values)
    return LexicographicResult(flow.placement, claims, flow.prices)


def _solution(
    problem: Problem,
    method: Method,
    result: LexicographicResult,
    constraints: tuple[Constraint, ...],
) -> Solution:
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
    return Solution(
        assignment=problem.to_assignment(result.placement),
        method=str(method),
        levels=level_values(result.claims),
        certificate=Certificate(result.claims, prices=result.prices, constraints=constraints),
    )
