"""Searches for lower loads of members and hosts.

Each search adds its placements to the pool. Some searches also prove a lower bound on the level.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.host_and_speed_bounds import greatest_true
from kassay.solver.bounds.level_bounds import makespan_bound
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import Capacity, Forbidden, MaxMoves, Pinned
from kassay.solver.evaluation import imbalance_of, level_value, load_units, movement_costs
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.initial_solutions import Room, keep_owned, within_pins
from kassay.solver.lexicographic.moves_table import MovesTable
from kassay.solver.lexicographic.moves_table_search import prove_moves, search_moves
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import HostImbalance, Imbalance, Level, Movement
from kassay.solver.problem import Placement, Problem

if TYPE_CHECKING:
    from kassay.solver.weighted.search.overload_repair import LoadLimit

# CP-SAT solves smaller groups faster than any other method starts.
MIN_PARTITIONS = 12
_MAX_BALANCING_STEPS = 5_000
"""Maximum number of steps of the local search with a deterministic limit."""

_SHARES_ABOVE_BOUND = (0, 0.002, 0.005, 0.01, 0.02)
"""Maximum loads of the local search within capacities, above the bound."""

_FIRST_SHARE_OF_LIMITED_MOVES, _LIMITED_MOVES_SHARE = 0.25, 0.9
"""Shares of the searches with few moves: before integer programs, and of the remaining time."""

# Overload repair for groups with hosts or different speeds.
_LOAD_TARGETS = 7
"""Number of load limits between the bound and the incumbent."""
_LOAD_SHARE, _MOVES_SHARE = 0.08, 0.5
"""Share of the time left for one load limit, and for fewer moves."""
_LOAD_ROUNDS, _MOVES_ROUNDS = 3, 2_000
"""Number of repairs for one load limit, and for fewer moves."""
_MAX_REPAIR_STEPS = 20_000
"""Maximum number of transfers and exchanges of one search with a deterministic limit."""


class ProvenBound(NamedTuple):
    """Lower bound on a level and its origin; the value is 0 if nothing is proven."""

    value: int
    origin: Origin


def is_large_enough(problem: Problem) -> bool:
    """Return whether a group has equal speeds, and enough partitions for methods before CP-SAT."""
    return problem.partition_count >= MIN_PARTITIONS and problem.group.has_equal_speeds


def fill_members(pool: IncumbentPool, level: Imbalance) -> ProvenBound:
    """Bound the makespan: the total load must fit, within capacities and pins."""
    problem, unit = pool.problem, pool.problem.weight_unit
    room = Room(problem, pool.constraints).loads
    if level.measure is not Measure.MAKESPAN or not pool.constraints:
        return ProvenBound(0, Origin.PACKING)
    factors = problem.member_units.factors

    def is_too_low(limit: int) -> bool:
        loads = (min(most, limit // factor) for most, factor in zip(room, factors, strict=True))
        return sum(load // unit for load in loads) < problem.total // unit

    highest = pool.value(level)
    filled = min(greatest_true(is_too_low, highest) + 1, highest)
    return ProvenBound(
        max(filled, makespan_bound(within_pins(problem, pool.constraints))), Origin.PACKING
    )


def pack_identical(
    pool: IncumbentPool, level: Imbalance, budget: SearchBudget, *, before_enumeration: bool
) -> ProvenBound:
    """Minimise the makespan of identical members.

    Before an enumeration, which may prove the same and the movement too, use half of the time.
    """
    problem = pool.problem
    if (
        pool.reached
        or pool.constraints
        or level.measure is not Measure.MAKESPAN
        or not budget.has_time
        or not is_large_enough(problem)
        or not problem.group.is_weighted
    ):
        return ProvenBound(0, Origin.PACKING)
    from kassay.solver.enumeration.subset_enumeration import MAX_ITEMS  # noqa: PLC0415
    from kassay.solver.identical_members.component_packing import (  # noqa: PLC0415
        minimise_makespan,
    )

    budget = budget.reproducible()
    if before_enumeration and problem.partition_count <= MAX_ITEMS:
        budget = budget.part(0.5)
    rng = np.random.default_rng(budget.seed)
    result = minimise_makespan(problem, pool.incumbent(level), budget, rng)
    if result is None:
        return ProvenBound(0, Origin.PACKING)
    pool.add(result.placement)
    return ProvenBound(result.bound, Origin.HIGHS if result.is_bound_by_highs else Origin.PACKING)


def balance_loads(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> ProvenBound:
    """Improve the best placement on the first level by local search, which proves no bound.

    Constraints are pins, exclusions and, for the makespan, capacities.
    """
    problem, unproven = pool.problem, ProvenBound(0, Origin.COUNTING)
    is_makespan = level.measure is Measure.MAKESPAN
    supported = (Pinned, Forbidden, Capacity) if is_makespan else (Pinned, Forbidden)
    if (
        pool.reached
        or not is_large_enough(problem)
        or not all(isinstance(rule, supported) for rule in pool.constraints)
    ):
        return unproven
    from kassay.solver.weighted.search.load_local_search import LoadBalancer  # noqa: PLC0415

    if pool.constraints:
        problem = within_pins(problem, pool.constraints)
    rng, within = np.random.default_rng(budget.seed), budget.part(1 / 2)
    may_continue = within.continuation(_MAX_BALANCING_STEPS)
    room = Room(problem, pool.constraints).loads
    least = max(makespan_bound(problem), fill_members(pool, level).value)
    for share in _SHARES_ABOVE_BOUND if min(room) < problem.total else (0,):
        # A member with a capacity has a further load, so that it is full at the target.
        target = least + int(least * share)
        start = _most_even(pool, level).copy()
        base = [max(target - most, 0) for most in room]
        balancer = LoadBalancer(problem, start, rng, base)
        balancer.lower_makespan(target, may_continue)
        balancer.even_out(may_continue)
        if not is_makespan:
            balancer.balance_random_pairs(may_continue)
        pool.add(balancer.placement)
        if max(balancer.loads) <= target:
            break
    return unproven


def _most_even(pool: IncumbentPool, level: Imbalance) -> Placement:
    """Return the best placement on a level with the lowest sum of squared loads."""
    problem, best = pool.problem, pool.value(level)
    return min(
        (one for one in pool.placements if level_value(problem, level, one) == best),
        key=lambda one: imbalance_of(Measure.SUM_OF_SQUARES, problem.loads(one)),
    )


def limit_moves(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> ProvenBound:
    """Minimise the imbalance within the maximum number of moves."""
    problem = pool.problem
    limits = [rule.limit for rule in pool.constraints if isinstance(rule, MaxMoves)]
    rules = [rule for rule in pool.constraints if not isinstance(rule, MaxMoves)]
    if (
        not limits
        or pool.reached
        or problem.partition_count < MIN_PARTITIONS
        or not MovesTable.is_applicable(problem, level.measure, rules)
    ):
        return ProvenBound(0, Origin.EXCHANGE)
    table = MovesTable(problem, rules, Imbalance(level.measure), most=min(limits))
    for placement in pool.placements:
        table.add(placement)
    search_moves(table, budget.part(_FIRST_SHARE_OF_LIMITED_MOVES))
    table.extend(table.most)
    prove_moves(table, [table.most], budget.part(_LIMITED_MOVES_SHARE))
    pool.add(table.placements[-1])
    return ProvenBound(table.bounds[-1], Origin.EXCHANGE)


def repair_overloads(
    pool: IncumbentPool, level: Level, bound: int, budget: SearchBudget
) -> ProvenBound:
    """Add placements to the pool: with lower loads, or with fewer moves within the limits.

    The search proves no bound. It applies to groups with different speeds, and to weighted groups
    with levels about hosts, if all levels about loads are makespans. CP-SAT needs no such
    placement of a small group.
    """
    problem, unproven = pool.problem, ProvenBound(0, Origin.EXCHANGE)
    has_hosts = any(isinstance(each, HostImbalance) for each in pool.levels)
    is_small = problem.partition_count < MIN_PARTITIONS and not problem.has_big_loads
    if is_small or (
        problem.group.has_equal_speeds and not (problem.group.is_weighted and has_hosts)
    ):
        return unproven
    # numpy.random would add to the start-up time of every command.
    from kassay.solver.weighted.search.overload_repair import OverloadRepair  # noqa: PLC0415

    measured = [
        each
        for each in (*(finished for finished, _ in pool.limits()), level)
        if isinstance(each, Imbalance | HostImbalance)
    ]
    if not OverloadRepair.is_applicable(problem) or any(
        each.measure is not Measure.MAKESPAN for each in measured
    ):
        return unproven
    start = keep_owned(problem, [load_units(problem, each) for each in measured])
    moves = level if isinstance(level, Movement) else Movement()
    costs = movement_costs(problem, moves).astype(np.int64)
    rng = np.random.default_rng(budget.seed)

    def is_repaired(
        limits: Sequence[tuple[Level, int]], within: SearchBudget, *, rounds: int
    ) -> bool:
        search = OverloadRepair(problem, load_limits(problem, limits), rng)
        may_continue = within.continuation(_MAX_REPAIR_STEPS)
        found = search.run(start, costs, rounds=rounds, may_continue=may_continue)
        if found is not None:
            pool.add(found)
        return found is not None

    if isinstance(level, Movement):
        is_repaired(pool.limits(), budget.part(_MOVES_SHARE), rounds=_MOVES_ROUNDS)
        return unproven
    low, high = bound, pool.value(level)
    for _ in range(_LOAD_TARGETS):
        if low >= high:
            break
        target = (low + high) // 2
        limits = [*pool.limits(), (level, target)]
        if is_repaired(limits, budget.part(_LOAD_SHARE), rounds=_LOAD_ROUNDS):
            high = min(target, pool.value(level))
        else:
            low = target + 1
    return unproven


def load_limits(problem: Problem, limits: Sequence[tuple[Level, int]]) -> "list[LoadLimit]":
    """Convert limits on makespans to maximum loads of members and hosts."""
    from kassay.solver.weighted.search.overload_repair import LoadLimit  # noqa: PLC0415

    found = []
    for level, limit in limits:
        if isinstance(level, Imbalance | HostImbalance):
            units = load_units(problem, level)
            most = [min(limit // factor, problem.total) for factor in units.factors]
            found.append(LoadLimit(np.array(units.unit_of), np.array(most, dtype=np.int64)))
    return found
