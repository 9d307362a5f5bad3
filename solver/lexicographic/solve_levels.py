"""Find the best placement of a lexicographic objective, with a claim per level.

Modules that load OR-Tools or SciPy are imported in functions, because most small groups are
solved by counting bounds alone and loading these libraries takes seconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.load_units import LoadUnits
from kassay.solver.bounds.level_bounds import level_bound
from kassay.solver.certificate.certificate import LevelClaim, Origin, PriceTable
from kassay.solver.constraints import Capacity, Constraint
from kassay.solver.enumeration.complete_search import CompleteResult, search_all
from kassay.solver.evaluation import level_value, load_units, violated
from kassay.solver.incumbent_pool import FlowLevels, IncumbentPool
from kassay.solver.initial_solutions import keep_owned, longest_processing_time, place_within
from kassay.solver.lexicographic.level_solver import LevelSolver
from kassay.solver.lexicographic.movement_search import add_few_moves
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import HostImbalance, Imbalance, Level
from kassay.solver.problem import EXACT_IN_64_BITS, Placement, Problem, Weights
from kassay.solver.solution import ProgressPoint

# Finding any placement at all may take this many seconds, whatever the limit.
_MIN_SECONDS = 1.0
_MAX_CHOICES = 200_000
"""Partitions times members up to which a greedy rule for constraints takes less than a second."""


@dataclass(frozen=True, slots=True)
class LexicographicResult:
    """Best placement with claims per level, or the conflicting constraints."""

    placement: Placement | None  # None if there is none, or none was found in time
    claims: tuple[LevelClaim, ...] = ()
    prices: PriceTable | None = None
    conflict: tuple[Constraint, ...] = ()
    conflict_origin: Origin = Origin.CP_SAT
    progress: tuple[ProgressPoint, ...] = ()  # seconds of `time.monotonic`


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
    candidates = _initial_placements(problem, levels, constraints, flows, initial_assignment)
    if problem.total >= EXACT_IN_64_BITS:
        rounded = _solve_rounded(problem, levels, constraints, budget)
        if rounded.conflict:
            return rounded
        candidates += [] if rounded.placement is None else [rounded.placement]
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
    add_few_moves(pool, budget)
    solver = LevelSolver(pool, flows)
    for index in range(len(levels)):
        solver.solve_level(index, budget)
    placement = pool.incumbent(levels[-1])
    return LexicographicResult(
        placement,
        tuple(
            _claim_about(problem, done.claim, placement, best=done.placement)
            for done in pool.reached
        ),
        flows.prices if any(done.claim.origin is Origin.PRICES for done in pool.reached) else None,
        progress=tuple(solver.progress),
    )


def _initial_placements(
    problem: Problem,
    levels: Sequence[Level],
    constraints: Sequence[Constraint],
    flows: FlowLevels,
    initial_assignment: Assignment | None,
) -> list[Placement]:
    """Return the initial placements: flows, greedy rules and the warm start.

    They may violate constraints. Greedy rules are not necessary if flows solve all levels.
    """
    warm_start = None if initial_assignment is None else problem.to_placement(initial_assignment)
    given = [] if warm_start is None else [warm_start]
    if flows.is_complete:
        return [*flows.placements, *given]
    units: list[LoadUnits] = []
    if any(isinstance(level, HostImbalance) for level in levels):
        balanced = (level for level in levels if isinstance(level, Imbalance | HostImbalance))
        units = [load_units(problem, level) for level in balanced]
    placements = [*flows.placements, keep_owned(problem, units)]
    if not flows.placements or units:
        placements.append(longest_processing_time(problem, units))
    if constraints and problem.partition_count * problem.member_count <= _MAX_CHOICES:
        within = place_within(problem, constraints, units)
        placements.extend([] if within is None else [within])
    return [*placements, *given]


def _solve_rounded(
    problem: Problem,
    levels: Sequence[Level],
    constraints: Sequence[Constraint],
    budget: SearchBudget,
) -> LexicographicResult:
    """Solve a problem with loads above 64 bits, with weights rounded to larger units.

    With weights rounded up, each placement found meets the capacities. With weights rounded down,
    constraints that no placement meets are infeasible.
    """

    def solve(weight: Weights, unit: int) -> LexicographicResult:
        exact = {
            replace(rule, limit=rule.limit // unit) if isinstance(rule, Capacity) else rule: rule
            for rule in constraints
        }
        result = solve_levels(
            replace(problem, weight=weight.astype(np.int64)),
            levels=levels,
            constraints=tuple(exact),
            initial_assignment=None,
            budget=budget.part(1 / 2),
            enumerates=False,
        )
        return replace(result, conflict=tuple(exact[rule] for rule in result.conflict))

    # Squared loads fit 64 bits in the first unit; the second one is more precise.
    for most in (2**30, EXACT_IN_64_BITS):
        unit: int = 2 ** (2 * problem.total // most).bit_length()
        rounded_up = solve(-(-problem.weight // unit), unit)
        if rounded_up.placement is not None:
            return rounded_up
    return replace(solve(problem.weight // unit, unit), placement=None)


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


def _enumerated(
    problem: Problem, levels: Sequence[Level], complete: CompleteResult
) -> LexicographicResult:
    """Return one claim per level from the result of a complete search."""
    if complete.placement is None:
        return LexicographicResult(
            None, conflict=complete.conflict, conflict_origin=Origin.ENUMERATION
        )
    claims = []
    limits: list[tuple[Level, int]] = []
    for level, minimum, best in zip(levels, complete.minima, complete.best, strict=True):
        counted = level_bound(problem, level, limits)
        origin = Origin.COUNTING if counted >= minimum else Origin.ENUMERATION
        claim = LevelClaim(level, minimum, minimum, origin)
        claims.append(_claim_about(problem, claim, complete.placement, best=best))
        limits.append((level, level.tolerance.limit(minimum)))
    return LexicographicResult(complete.placement, tuple(claims))
