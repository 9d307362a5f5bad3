"""Find the optimal assignment of a group."""

import time
from collections.abc import Iterable
from enum import StrEnum

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.solver.certificate.certificate import Certificate, LevelClaim, Origin, PriceTable
from kassay.solver.certificate.check import prices_prove
from kassay.solver.constraints import Constraint, check_constraints, group_constraints
from kassay.solver.evaluation import level_value
from kassay.solver.flow.optimal_flow import solve_flow
from kassay.solver.lexicographic import LexicographicResult, solve_levels
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Level, default_levels
from kassay.solver.problem import build_problem
from kassay.solver.solution import LevelValue, Solution


class Method(StrEnum):
    """How to find the optimum."""

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
        The flow ignores it.
    method
        ``flow`` is exact for equal weights and ignores the limits; ``cp-sat`` solves
        everything; ``auto`` uses the flow if it applies.
    limits
        Limits of all levels together. When one is reached, the best assignment found so
        far is returned with its bounds.

    Raises
    ------
    UsageError
        If there is no level, or ``flow`` does not apply.
    InputError
        If a constraint refers to a member, topic or partition that the group does not have.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t0", partitions=1), Topic(name="t1", partitions=2)),
    ...     members=(
    ...         Member(id="c0", subscription=("t1",)),
    ...         Member(id="c1", subscription=("t0", "t1")),
    ...         Member(id="c2", subscription=("t0",)),
    ...     ),
    ... )
    >>> solve(group).assignment.loads()
    {'c0': 1, 'c1': 1, 'c2': 1}
    """
    start = time.monotonic()
    method = Method(method)
    levels = default_levels(group) if levels is None else tuple(levels)
    constraints = tuple(constraints)
    rules = (*group_constraints(group), *constraints)
    if not levels:
        raise UsageError("there must be at least one level")
    check_constraints(group, rules)
    flow_applies = not rules and prices_prove(group, levels)
    if method is Method.FLOW and not flow_applies:
        raise UsageError(
            "flow requires equal weights, the levels sum_of_squares or leximax and then "
            "movement, and neither tolerance nor constraints"
        )
    problem = build_problem(group)
    built = time.monotonic()
    prices: PriceTable | None = None
    if flow_applies and method is not Method.CP_SAT:
        method = Method.FLOW
        flow = solve_flow(problem)
        values = [level_value(problem, level, flow.placement) for level in levels]
        claims = tuple(
            LevelClaim(level, value, value, Origin.PRICES)
            for level, value in zip(levels, values, strict=True)
        )
        prices, result = flow.prices, LexicographicResult(flow.placement, claims)
    else:
        method = Method.CP_SAT
        result = solve_levels(
            problem,
            levels=levels,
            constraints=rules,
            initial_assignment=initial_assignment,
            budget=SearchBudget(start + limits.time, limits, seed),
        )
    solved = time.monotonic()
    assignment = None if result.placement is None else problem.to_assignment(result.placement)
    end = time.monotonic()
    return Solution(
        assignment=assignment,
        method=str(method),
        levels=tuple(
            LevelValue(claim.level.name, claim.value, claim.bound, claim.slack)
            for claim in result.claims
        ),
        seconds=end - start,
        timings={"build": built - start, "search": solved - built, "read back": end - solved},
        certificate=None
        if assignment is None
        else Certificate(result.claims, prices=prices, constraints=constraints),
        conflict=tuple(map(str, result.conflict)),
    )
