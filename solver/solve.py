"""The one entry: the best assignment of a group, and what is proven about it."""

import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.solver.certificate.certificate import Certificate, LevelClaim, Origin
from kassay.solver.certificate.check import prices_prove
from kassay.solver.constraints import Constraint, check_constraints, group_constraints
from kassay.solver.evaluation import level_value
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Level, default_levels
from kassay.solver.problem import Problem, build_problem
from kassay.solver.solution import LevelValue, Solution

if TYPE_CHECKING:
    from kassay.solver.cpsat.entry import CpSatResult


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
    """Find the assignment that is best on the first level, then on the second, and so on.

    Parameters
    ----------
    group
        The rebalance. Capacities of its members always hold.
    levels
        What to minimise, in order. By default imbalance, then movement: see
        `default_levels`.
    constraints
        What must hold besides.
    initial_assignment
        Warm start, often a greedy assignment. It never changes the optimal values.
        The flow ignores it.
    method
        ``flow`` is exact for equal weights and knows no limit; ``cp-sat`` takes
        everything; ``auto`` takes the flow where it can.
    limits
        Limits of all levels together. When one is reached, the best assignment found so
        far is returned with its bounds. The flow ignores them.
    seed
        Seed of all searches.

    Returns
    -------
    Solution
        The assignment with value and bound of each level; a conflict where the
        constraints admit no assignment.

    Raises
    ------
    ValueError
        If there is no level, or ``flow`` is requested for what it cannot solve.
    InvalidGroupError
        If a constraint speaks of what the group does not have.

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
    >>> solution = solve(group)
    >>> solution.assignment.loads(), str(solution.status)
    ({'c0': 1, 'c1': 1, 'c2': 1}, 'optimal')
    """
    start = time.monotonic()
    chosen = default_levels(group) if levels is None else tuple(levels)
    given = tuple(constraints)
    rules = (*group_constraints(group), *given)
    if not chosen:
        raise ValueError("there must be at least one level")
    check_constraints(group, rules)
    flows = not rules and prices_prove(group, chosen)
    if Method(method) is Method.FLOW and not flows:
        raise ValueError(
            "flow takes equal weights, the levels sum_of_squares or leximax and then movement, "
            "without tolerance or constraints"
        )
    problem = build_problem(group)
    if flows and Method(method) is not Method.CP_SAT:
        return _by_flow(problem, chosen, start=start)
    # OR-Tools is loaded when something is solved: what only checks never loads it. That is
    # done once a process and costs a second or two, which no time limit is to pay for.
    waiting = time.monotonic()
    from kassay.solver.cpsat.entry import solve_problem  # noqa: PLC0415
    from kassay.solver.cpsat.search import SearchBudget  # noqa: PLC0415

    start += time.monotonic() - waiting
    budget = SearchBudget(deadline=start + limits.time, limits=limits, seed=seed)
    built = time.monotonic()
    outcome = solve_problem(
        problem,
        levels=chosen,
        constraints=rules,
        initial_assignment=initial_assignment,
        budget=budget,
    )
    times = (start, built, time.monotonic())
    return _to_solution(problem, chosen, given, outcome, times=times)


def _level_value(claim: LevelClaim) -> LevelValue:
    return LevelValue(claim.level.name, claim.value, claim.bound, claim.slack)


def _by_flow(problem: Problem, levels: Sequence[Level], *, start: float) -> Solution:
    waiting = time.monotonic()
    from kassay.solver.flow.method import solve_flow  # noqa: PLC0415

    start += time.monotonic() - waiting
    built = time.monotonic()
    flow = solve_flow(problem)
    solved = time.monotonic()
    assignment = problem.to_assignment(flow.placement)
    values = [level_value(problem, level, flow.placement) for level in levels]
    claims = tuple(
        LevelClaim(level, value, value, Origin.PRICES)
        for level, value in zip(levels, values, strict=True)
    )
    end = time.monotonic()
    return Solution(
        assignment=assignment,
        method=str(Method.FLOW),
        levels=tuple(map(_level_value, claims)),
        seconds=end - start,
        timings={"build": built - start, "search": solved - built, "read back": end - solved},
        certificate=Certificate(claims, prices=flow.prices),
    )


def _to_solution(
    problem: Problem,
    levels: Sequence[Level],
    constraints: tuple[Constraint, ...],
    outcome: "CpSatResult",
    *,
    times: tuple[float, float, float],
) -> Solution:
    start, built, solved = times
    placement = outcome.placement
    assignment = None if placement is None else problem.to_assignment(placement)
    claims: tuple[LevelClaim, ...] = ()
    if placement is not None:
        claims = tuple(
            LevelClaim(level, level_value(problem, level, placement), reached.bound, reached.origin)
            for level, reached in zip(levels, outcome.reached, strict=True)
        )
    end = time.monotonic()
    return Solution(
        assignment=assignment,
        method=str(Method.CP_SAT),
        levels=tuple(map(_level_value, claims)),
        seconds=end - start,
        timings={"build": built - start, "search": solved - built, "read back": end - solved},
        certificate=None if placement is None else Certificate(claims, constraints=constraints),
        conflict=tuple(str(constraint) for constraint in outcome.conflict),
    )
