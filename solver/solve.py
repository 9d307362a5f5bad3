"""Find the optimal assignment of a group."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.solver.certificate.certificate import Certificate, LevelClaim, Origin
from kassay.solver.certificate.check import prices_prove
from kassay.solver.constraints import Constraint, check_constraints, group_constraints
from kassay.solver.evaluation import level_value
from kassay.solver.flow.optimal_flow import solve_flow
from kassay.solver.lexicographic import LexicographicResult, solve_levels
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Level, default_levels
from kassay.solver.problem import Problem, build_problem
from kassay.solver.solution import Solution, level_values


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
        ``flow`` is exact for equal weights and ignores warm start and limits; ``cp-sat``
        solves everything; ``auto`` uses the flow if it applies, and compares all assignments
        of small groups.
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
    start = time.monotonic()
    levels = default_levels(group) if levels is None else tuple(levels)
    constraints = tuple(constraints)
    rules = (*group_constraints(group), *constraints)
    enumerates = Method(method) is Method.AUTO
    method = _applicable_method(group, levels, rules, Method(method))
    problem = build_problem(group)
    built = time.monotonic()
    if method is Method.FLOW:
        result = _solve_by_flow(problem, levels)
    else:
        result = solve_levels(
            problem,
            levels=levels,
            constraints=rules,
            initial_assignment=initial_assignment,
            budget=SearchBudget(start + limits.time, limits, seed),
            enumerates=enumerates,
        )
    solved = time.monotonic()
    solution = _solution(problem, method, result, constraints)
    end = time.monotonic()
    timings = {"build": built - start, "search": solved - built, "read back": end - solved}
    return replace(solution, seconds=end - start, timings=timings)


def _applicable_method(
    group: Group, levels: Sequence[Level], rules: Sequence[Constraint], method: Method
) -> Method:
    """Check levels and constraints, and return the method to use: flow or CP-SAT."""
    if not levels:
        raise UsageError("levels must contain at least one level, got none")
    check_constraints(group, rules)
    flow_applies = not rules and prices_prove(group, levels)
    if method is Method.FLOW and not flow_applies:
        raise UsageError(
            "the method flow requires equal weights; two levels, imbalance (sum_of_squares or "
            "leximax) and then movement; no tolerance; no constraints"
        )
    return Method.FLOW if flow_applies and method is not Method.CP_SAT else Method.CP_SAT


def _solve_by_flow(problem: Problem, levels: Sequence[Level]) -> LexicographicResult:
    flow = solve_flow(problem)
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
        return Solution(None, str(method), conflict=tuple(map(str, result.conflict)))
    return Solution(
        assignment=problem.to_assignment(result.placement),
        method=str(method),
        levels=level_values(result.claims),
        certificate=Certificate(result.claims, prices=result.prices, constraints=constraints),
    )
