"""Find the optimal assignment of a group."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InternalError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group
from kassay.solver import engine, evaluation, objective
from kassay.solver.certificate.certificate import Certificate, Conflict, LevelClaim, Origin
from kassay.solver.constraints import Constraint
from kassay.solver.counting_bounds import level_bound
from kassay.solver.engine import LevelTask, search_by_cpsat
from kassay.solver.limits import SearchBudget, SearchLimits, now
from kassay.solver.problem import Problem, build_problem
from kassay.solver.search.initial_placements import Start
from kassay.solver.search.movement_search import FewestMovesProofs
from kassay.solver.search_interface import (
    LevelResult,
    LexicographicResult,
    ProvenBound,
    Request,
    claim_about,
)
from kassay.solver.solution import Method, ProgressPoint, Solution, UsedMethod, level_values


def solve(
    group: Group,
    *,
    levels: Iterable[objective.Level | str] | str | None = None,
    constraints: Iterable[Constraint] = (),
    initial_assignment: Assignment | None = None,
    method: Method | str = Method.AUTO,
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
) -> Solution:
    """Find an assignment that minimises the levels in lexicographic order.

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
    levels, limits = objective.requested_levels(group, levels), SearchLimits.of(limits)
    budget = SearchBudget.start(limits, seed)
    constraints = evaluation.check_constraints(group, constraints)
    work = budget.counter.spent
    rules = (*evaluation.group_constraints(group), *constraints)
    _check_request(group, levels, rules, Method(method))
    problem = build_problem(group)
    rules = evaluation.binding_constraints(problem, rules)
    built = now()
    given = None if initial_assignment is None else problem.to_placement(initial_assignment)
    warm = () if given is None else (given,)
    result = solve_request(Request(problem, levels, rules, budget, Method(method), warm))
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
    group: Group, levels: Sequence[objective.Level], rules: Sequence[Constraint], method: Method
) -> None:
    if not levels:
        raise UsageError("levels is empty; pass at least one level, for example Imbalance()")
    if any(map(objective.is_preference, levels[:-1])):
        raise UsageError("only the last level can be a preference; move the preference to the end")
    evaluation.check_levels(group, levels)
    evaluation.check_arc_costs(group, levels, rules)
    needs_arcs = group.has_copies or any(isinstance(level, objective.FlowLevel) for level in levels)
    if needs_arcs and method is not Method.AUTO:
        raise UsageError(
            "stateful topics, copies of partitions and the levels "
            f"{', '.join(objective.FLOW_LEVELS)} require the method 'auto', got {str(method)!r}"
        )
    is_one_flow = not rules and objective.is_optimal_by_squares_and_moves(group, levels)
    if method is Method.FLOW and not is_one_flow:
        raise UsageError(
            "the method 'flow' requires equal weights and speeds, without tolerances, constraints "
            "and capacities. The levels must be one imbalance, or sum_of_squares or leximax, then "
            "movement. Use the method 'auto'"
        )


def solve_request(request: Request) -> LexicographicResult:
    """Solve all levels at once if a method applies, else one level after the other."""
    for row in engine.rows_for(request.problem, engine.METHODS):
        result = row.run(request) if row.applies(request) else None
        if result is not None:
            return result
    start = Start(request, solve_request)
    for step in engine.rows_for(request.problem, engine.STARTS):
        result = step.run(start) if step.applies(start) else None
        if result is not None:
            return result
    return _minimise_levels(start) if start.has_placement else LexicographicResult(None)


def _minimise_levels(start: Start) -> LexicographicResult:
    pool, known, methods = start.pool, start.known(), start.methods
    moves, progress = FewestMovesProofs(pool), list[ProgressPoint]()
    for index in range(len(pool.levels)):
        task = LevelTask(pool, index, known, moves, progress, start.request.budget)
        methods += minimise_level(task)
    placement = pool.incumbent(pool.levels[-1])
    claims, node_prices = known.priced_claims(
        [
            claim_about(pool.problem, done.claim, placement, best=done.placement)
            for done in pool.reached
        ]
    )
    if moves.has_found:
        methods.append(UsedMethod.of_origin(Origin.CP_SAT))
    if not methods:
        origins = {done.claim.origin for done in pool.reached}
        is_flow = known.placements or origins & {Origin.FLOW, Origin.NODE_PRICES}
        methods.append(UsedMethod.FLOW if is_flow else UsedMethod.COUNTING)
    return LexicographicResult(
        placement,
        claims,
        node_prices=node_prices,
        progress=tuple(progress),
        method=max(methods, key=[*UsedMethod].index),
    )


def minimise_level(task: LevelTask) -> list[UsedMethod]:
    """Minimise one level within the limits of earlier levels.

    The level has a share of the remaining work. A level with an upper limit is minimised only
    until its value is within the limit. Return the methods of the searches that contributed.
    """
    pool, level, proofs = task.pool, task.level, task.move_proofs
    proven, contributed = _known_bound(task), []
    if isinstance(level, objective.FlowLevel):
        raise objective.only_by_flows(level)
    enough = level.tolerance.up_to or 0
    # A search that starts without work would end at once. Later rows check what is left.
    had_work = task.budget.has_work
    for row in engine.rows_for(pool.problem, engine.SEARCHES):
        within = max(proven.value, enough, _tolerated(task, proven.value))
        if pool.value(level) <= within or task.has_proven_moves:
            break
        task.bound = proven.value
        if (row.needs_work and not had_work) or not row.applies(task):
            continue
        before, found = pool.value(level), row.run(task)
        bound = found if isinstance(found, ProvenBound) else ProvenBound(found or 0, row.origin)
        if bound.value > proven.value or pool.value(level) < before:
            contributed.append(UsedMethod.of_origin(bound.origin))
        if bound.value > proven.value:
            proven = bound
    is_within_bounds = proofs.proven is not None and not isinstance(level, objective.Movement)
    if is_within_bounds or pool.problem.profiles is not None:
        proven = _bound_within_tolerances(task, proven)
    if isinstance(level, objective.Movement):
        proofs.searches.append(proofs.within(level, pool.limits()))
        proofs.searches[-1].raise_bound(*proven)
    value = pool.value(level)
    claim = LevelClaim(level, value, min(proven.value, value), proven.origin)
    # Proven moves are possible within the tolerance of the bound, which is the lowest limit.
    is_at_bound = task.has_proven_moves and not isinstance(level, objective.Movement)
    is_at_bound = is_at_bound or value <= _tolerated(task, claim.bound)
    limit = level.tolerance.limit(claim.bound if is_at_bound else value)
    pool.reached.append(LevelResult(claim, limit, pool.incumbent(level)))
    return contributed


def _tolerated(task: LevelTask, bound: int) -> int:
    """Return the load at which searches stop early, or 0 without several weight windows."""
    has_windows = task.pool.problem.profiles is not None
    is_load = has_windows and not isinstance(task.level, objective.Movement)
    return task.level.tolerance.limit(bound) if is_load else 0


def _bound_within_tolerances(task: LevelTask, proven: ProvenBound) -> ProvenBound:
    """Return a bound that is valid within the tolerances of the best known values.

    If moves are proven before loads, or with several windows, the searches use lower limits, within
    the tolerances of the bounds. Their bounds can be too high within the tolerances of the minima,
    so that CP-SAT, the last search, runs again for levels after the moves within the tolerances of
    the best known values.
    """
    pool, reached = task.pool, task.pool.reached
    within = [
        replace(done, limit=done.claim.level.tolerance.limit(done.claim.value)) for done in reached
    ]
    if all(one.limit == other.limit for one, other in zip(within, reached, strict=True)):
        return proven
    pool.reached = within
    task.bound = level_bound(pool.problem, task.level, pool.limits())
    bound = ProvenBound(task.bound, Origin.COUNTING)
    is_open = pool.value(task.level) > task.bound and not objective.is_preference(task.level)
    if is_open and task.is_after_moves and task.budget_of_cpsat.has_work:
        bound = max(bound, ProvenBound(search_by_cpsat(task), Origin.CP_SAT))
    pool.reached = reached
    return min(proven, bound)


def _known_bound(task: LevelTask) -> ProvenBound:
    greatest = ProvenBound(0, Origin.COUNTING)
    for row in engine.rows_for(task.pool.problem, engine.BOUNDS):
        if not row.applies(task):
            continue
        bound = row.run(task)
        is_equal = bound.value == greatest.value
        if bound.value > greatest.value or (is_equal and bound.origin is Origin.NODE_PRICES):
            greatest = bound
    return greatest


def _solution(
    problem: Problem, result: LexicographicResult, constraints: tuple[Constraint, ...]
) -> Solution:
    """Check the placement of a result, and convert the result to a solution."""
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
    rules = (*evaluation.group_constraints(problem.group), *constraints)
    for rule in evaluation.violated(problem, rules, result.placement):
        raise InternalError(
            f"internal error: the result of {method} violates the constraint that {rule}; "
            "report this message and the group"
        )
    return Solution(
        assignment=problem.to_assignment(result.placement),
        method=str(method),
        levels=level_values(result.claims),
        certificate=Certificate(
            result.claims, node_prices=result.node_prices, constraints=constraints
        ),
    )
