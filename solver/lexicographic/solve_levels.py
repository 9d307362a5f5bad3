"""Find the best placement of a lexicographic objective, with a claim per level.

Modules that load OR-Tools or SciPy are imported in functions, because most small groups are
solved by counting bounds alone and loading these libraries takes seconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter

import numpy as np

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.metrics import LoadUnits, Measure
from kassay.solver.bounds.counting import level_bound
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.constraints import Capacity, Constraint, Forbidden, MaxPartitions, Pinned
from kassay.solver.enumeration import search_all
from kassay.solver.evaluation import level_value, load_units, violated
from kassay.solver.incumbent_pool import FlowLevels, IncumbentPool
from kassay.solver.initial_solutions import (
    keep_owned,
    longest_processing_time,
    place_within,
    within_racks,
)
from kassay.solver.lexicographic.level_flows import find_conflict_by_flow, is_infeasible
from kassay.solver.lexicographic.level_solver import LevelSolver
from kassay.solver.lexicographic.movement_search import add_few_moves
from kassay.solver.lexicographic.overload_searches import add_any_repaired, add_repaired
from kassay.solver.limits import SearchBudget
from kassay.solver.network.optimal_flow import flow_work
from kassay.solver.number_ranges import Arithmetic, Scale, scale_to_fit
from kassay.solver.objective import (
    CrossRack,
    HostImbalance,
    Imbalance,
    Level,
    Movement,
    MovementCost,
    Tolerance,
)
from kassay.solver.problem import Placement, Problem
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
    from kassay.solver.cpsat.infeasibility import find_any_placement, find_conflict  # noqa: PLC0415

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
