"""Find initial placements and bounds before the levels are minimised.

Modules that load OR-Tools or SciPy are imported in functions, because most small groups are
solved by counting bounds alone and loading these libraries takes seconds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from kassay.reference.model.load_metrics import LoadUnits, Measure
from kassay.solver import incumbent_pool, search_interface
from kassay.solver.certificate.certificate import Origin
from kassay.solver.colocated_partitions import merge_colocated
from kassay.solver.constraints import Capacity, Constraint
from kassay.solver.evaluation import binding_constraints, load_units, violated
from kassay.solver.limits import SearchBudget
from kassay.solver.network.optimal_flow import flow_work
from kassay.solver.objective import (
    HostImbalance,
    Imbalance,
    Level,
    Movement,
    MovementCost,
    Tolerance,
)
from kassay.solver.problem import Arithmetic, Placement, WeightScale, scale_to_fit
from kassay.solver.search.level_flows import find_conflict_by_flow, is_infeasible
from kassay.solver.solution import UsedMethod

_MIN_WORK = 1.0
"""Minimum work to find any placement."""
_MIN_WORK_PER_CONSTRAINT = 0.1
"""Minimum work of a search that adds a constraint."""
_MODEL_WORK_PER_CHOICE = 1.5e-5
"""Work to build a CP-SAT model per partition and member."""
_MERGED_SHARE, _MERGED_SHARE_WITH_EQUAL_OWNERS = 0.5, 0.9
"""Shares of the work left for the group in which colocated partitions are one partition."""
_MAX_CHOICES = 200_000
"""Partitions times members up to which a greedy rule for constraints or racks takes a second."""
_WORK_PER_CHOICE = 1e-5
"""Work of a greedy rule per partition and member."""


@dataclass
class Start:
    """Collection of initial placements and bounds for a request."""

    request: search_interface.Request
    solve: Callable[[search_interface.Request], search_interface.LexicographicResult]
    flows: search_interface.KnownLevels = field(default_factory=search_interface.KnownLevels)
    merged: search_interface.KnownLevels = field(default_factory=search_interface.KnownLevels)
    methods: list[UsedMethod] = field(default_factory=list)
    """Methods that proved bounds on all levels."""

    def __post_init__(self) -> None:
        request = self.request
        self.pool = incumbent_pool.IncumbentPool(request.problem, request.levels, request.rules, [])

    @property
    def has_placement(self) -> bool:
        """Return whether a placement that meets the constraints is known."""
        return bool(self.pool.placements)

    @property
    def has_few_choices(self) -> bool:
        """Return whether a greedy rule for constraints or racks takes at most a second."""
        return self.request.choices <= _MAX_CHOICES

    @property
    def may_place_within(self) -> bool:
        """Return whether the greedy rule for constraints may run."""
        has_work = self.request.budget.left > self.request.choices * _WORK_PER_CHOICE
        return self.has_few_choices and (has_work or not self.has_placement)

    @cached_property
    def units(self) -> list[LoadUnits]:
        """Return the members and hosts whose loads the greedy rules balance."""
        request = self.request
        if not any(isinstance(level, HostImbalance) for level in request.levels):
            return []
        balanced = (one for one in request.levels if isinstance(one, Imbalance | HostImbalance))
        return [load_units(request.problem, level) for level in balanced]

    @cached_property
    def budget_for_any(self) -> SearchBudget:
        """Return a budget to find any placement, even after a limit is reached."""
        return self.request.budget.for_first_result(_MIN_WORK)

    @property
    def may_model(self) -> bool:
        """Return whether the work limit permits building a CP-SAT model."""
        work = self.request.choices * _MODEL_WORK_PER_CHOICE
        return work <= self.budget_for_any.left + _MIN_WORK

    def add(self, placements: Iterable[Placement | None]) -> None:
        """Add the placements that meet the constraints."""
        for placement in placements:
            if placement is not None:
                self.pool.add(placement)

    def known(self) -> search_interface.KnownLevels:
        """Return the results of the flows, with the bounds of the merged problem if higher."""
        bounds = dict(self.flows.bounds)
        for index, bound in self.merged.bounds.items():
            if index not in bounds or bound.value > bounds[index].value:
                bounds[index] = bound
        return replace(self.flows, bounds=bounds)


def merge_and_solve(start: Start) -> None:
    """Solve the group in which colocated partitions are one partition."""
    request = start.request
    merged = merge_colocated(request.problem, request.rules)
    levels = () if merged is None else merged.levels(request.levels)
    if merged is None or not levels:
        return
    share = _MERGED_SHARE_WITH_EQUAL_OWNERS if merged.has_equal_owners else _MERGED_SHARE
    rules = binding_constraints(merged.problem, merged.rules)
    budget = request.budget.part(share)
    result = start.solve(
        search_interface.Request(merged.problem, levels, rules, budget, request.method)
    )
    if result.placement is None:
        return
    bounds = merged.bounds(request.levels, result.claims)
    origins = (_origin_without_check(claim.origin) for claim in result.claims)
    start.merged = search_interface.KnownLevels(
        [placement[merged.merged_into] for placement in result.placements(merged.problem)],
        dict(enumerate(map(search_interface.ProvenBound, bounds, origins))),
    )
    if len(bounds) == len(request.levels):
        start.methods.append(result.method)
    start.add(start.merged.placements)


def _origin_without_check(origin: Origin) -> Origin:
    if origin is Origin.NODE_PRICES:
        return Origin.FLOW
    return Origin.PACKING if origin.is_checked else origin


def solve_rounded(start: Start) -> None:
    """Add a placement that is optimal for rounded weights, if weights exceed 64 bits."""
    request, problem = start.request, start.request.problem
    total = problem.total + problem.partition_count
    scale = scale_to_fit(
        problem.weight.tolist(), lambda unit: Arithmetic.FLOAT_SOLVER.represents(total // unit)
    )
    weight = [scale.quotient(each, rounds_up=True) for each in problem.weight.tolist()]
    rounded = replace(
        request,
        problem=replace(problem, weight=np.array(weight, dtype=np.int64)),
        levels=tuple(
            replace(level, tolerance=_rounded_tolerance(level, scale)) for level in request.levels
        ),
        rules=tuple(
            replace(rule, limit=scale.quotient(rule.limit)) if isinstance(rule, Capacity) else rule
            for rule in request.rules
        ),
        budget=request.budget.part(1 / 2),
        is_derived=True,
    )
    start.add([start.solve(rounded).placement])


def _rounded_tolerance(level: Level, scale: WeightScale) -> Tolerance:
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


def conflict_of_numbers(start: Start) -> search_interface.LexicographicResult | None:
    """Return constraints that conflict for any weights, or None if flows find none."""
    problem = start.request.problem
    rules = [rule for rule in start.request.rules if not isinstance(rule, Capacity)]
    may_start = partial(start.budget_for_any.may_start, flow_work(problem))
    if not may_start() or not is_infeasible(problem, rules):
        return None
    return conflict_by_flow(find_conflict_by_flow(problem, rules, may_start))


def conflict_by_flow(conflict: Sequence[Constraint]) -> search_interface.LexicographicResult | None:
    """Return the result for a conflict that flows prove, or None without a conflict."""
    if not conflict:
        return None
    return search_interface.LexicographicResult(
        None, conflict=tuple(conflict), conflict_origin=Origin.FLOW, method=UsedMethod.FLOW
    )


def find_any_by_cpsat(start: Start) -> search_interface.LexicographicResult | None:
    """Add a placement that meets the constraints; if none exists, return a conflict."""
    from kassay.solver.cpsat.level_search import find_any_placement, find_conflict  # noqa: PLC0415

    request = start.request
    result = find_any_placement(request.problem, request.rules, start.budget_for_any)
    if result.infeasible:
        conflict = find_conflict(request.problem, request.rules, request.budget)
        return search_interface.LexicographicResult(None, conflict=conflict)
    start.add([result.placement])
    return None


def add_constraints_one_by_one(start: Start) -> search_interface.LexicographicResult | None:
    """Solve with few constraints, and add violated constraints one after the other."""
    request = start.request
    rules: tuple[Constraint, ...] = ()
    given = (*request.given, *start.merged.placements)
    while True:
        budget = request.budget.for_first_result(_MIN_WORK_PER_CONSTRAINT)
        derived = replace(request, rules=rules, budget=budget, given=given, is_derived=True)
        found = start.solve(derived)
        placements = found.placements(request.problem)
        violations = (violated(request.problem, request.rules, one) for one in placements)
        broken = next((rule for each in violations for rule in each), None)
        if broken is None:
            return found
        rules, given = (*rules, broken), (*request.given, *placements)
