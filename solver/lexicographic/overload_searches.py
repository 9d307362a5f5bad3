"""Repair overloads to find placements with low loads and few moves.

The repair applies to weighted groups with hosts, racks or constraints, and to groups with
different speeds, if all levels about loads are makespans.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds.level_bounds import level_bound
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import (
    Capacity,
    Constraint,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.evaluation import load_units, movement_costs, separated_partitions
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.initial_solutions import Room, keep_owned, within_pins, within_racks
from kassay.solver.lexicographic.load_searches import MIN_PARTITIONS, ProvenBound, fill_members
from kassay.solver.limits import SearchBudget, limited_steps
from kassay.solver.objective import CrossRack, HostImbalance, Imbalance, Level, Movement
from kassay.solver.problem import Problem

if TYPE_CHECKING:
    from kassay.solver.weighted.search.overload_repair import LoadLimit

REPAIRABLE = Pinned | Forbidden | Capacity | MaxPartitions | Separated
"""Constraints within which overloads are repaired."""
_LOAD_TARGETS = 7
"""Number of load limits between the bound and the incumbent."""
_PARTS_OF_TOLERANCE, _FINE_STEPS = 16, 300
"""Part of the tolerance from which a reduction of the load is small, and the maximum number of
transfers and exchanges of a search for a small reduction."""
_LOAD_SHARE, _MOVES_SHARE = 0.08, 0.5
"""Share of the time left for one load limit, and for fewer moves."""
_FIRST_ROUNDS, _LOAD_ROUNDS, _LIMITED_ROUNDS, _MOVES_ROUNDS = 20, 3, 200, 2_000
"""Number of repairs for the first placement, for one load limit without and with a limit on moves,
and for fewer moves."""
_MIN_REPAIR_STEPS, _MAX_REPAIR_STEPS = 2_000, 20_000
"""Numbers of transfers and exchanges: of the first search, before its share of the time ends it,
and of each search with a deterministic limit."""


def add_repaired(pool: IncumbentPool, budget: SearchBudget) -> None:
    """Add a placement with few moves within the lowest loads that the bounds permit to the pool.

    If none is found, add one within the best known loads. `add_few_moves` does the same for groups
    without hosts, different speeds, racks and constraints.
    """
    problem = pool.problem
    measured = [each for each in pool.levels if isinstance(each, Imbalance | HostImbalance)]
    if not measured or not (_may_repair(pool, measured) and (problem.owner != NO_OWNER).any()):
        return
    bounds = [level_bound(problem, each) for each in measured]
    if isinstance(measured[0], Imbalance):
        bounds[0] = max(bounds[0], fill_members(pool, measured[0]).value)
    search = _OverloadSearch(pool, measured, Movement(), budget)
    for values in (bounds, [pool.value(each) for each in measured]):
        limits = [
            (each, each.tolerance.limit(value))
            for each, value in zip(measured, values, strict=True)
        ]
        within = budget.part(_LOAD_SHARE)
        if search.is_repaired(limits, within, rounds=_FIRST_ROUNDS, least=_MIN_REPAIR_STEPS):
            return


def repair_overloads(
    pool: IncumbentPool, level: Level, bound: int, budget: SearchBudget
) -> ProvenBound:
    """Add placements to the pool: with lower loads, or with fewer moves within the limits.

    The search proves no bound. It minimises loads of groups with hosts or different speeds, and
    moves within constraints and racks, too.
    """
    unproven = ProvenBound(0, Origin.EXCHANGE)
    measured = [
        each
        for each in (*(finished for finished, _ in pool.limits()), level)
        if isinstance(each, Imbalance | HostImbalance)
    ]
    moves = level if isinstance(level, Movement) else Movement()
    limits_on_moves = [rule.limit for rule in pool.constraints if isinstance(rule, MaxMoves)]
    is_useful = level is moves or _has_load_units(pool) or limits_on_moves
    if not is_useful or not _may_repair(pool, measured):
        return unproven
    search = _OverloadSearch(pool, measured, moves, budget)
    if level is moves:
        search.is_repaired(pool.limits(), budget.part(_MOVES_SHARE), rounds=_MOVES_ROUNDS)
        return unproven
    low, high = bound, pool.value(level)
    precision = (level.tolerance.limit(low) - low) // _PARTS_OF_TOLERANCE
    for _ in range(_LOAD_TARGETS):
        if low >= high:
            break
        target = (low + high) // 2
        limits = [*pool.limits(), (level, target)]
        is_fine = high - target <= precision
        most = _FINE_STEPS if is_fine else None
        within = budget.part(_LOAD_SHARE)
        rounds = _LIMITED_ROUNDS if limits_on_moves else _LOAD_ROUNDS
        enough = min(limits_on_moves, default=0)
        if search.is_repaired(limits, within, rounds=rounds, most=most, enough=enough):
            high = min(target, pool.value(level))
        elif is_fine:
            break
        else:
            low = target + 1
    return unproven


def _has_load_units(pool: IncumbentPool) -> bool:
    """Return whether a group has different speeds, or different weights and levels about hosts."""
    group = pool.problem.group
    has_hosts = any(isinstance(each, HostImbalance) for each in pool.levels)
    return not group.has_equal_speeds or (group.is_weighted and has_hosts)


def _may_repair(pool: IncumbentPool, measured: Sequence[Imbalance | HostImbalance]) -> bool:
    """Return whether the repair of overloads supports levels and constraints, and is useful.

    CP-SAT needs no such placement of a small group.
    """
    problem = pool.problem
    rules = [rule for rule in pool.constraints if not isinstance(rule, MaxMoves)]
    has_racks = any(isinstance(each, CrossRack) for each in pool.levels)
    if problem.partition_count < MIN_PARTITIONS or not (
        _has_load_units(pool) or (problem.group.is_weighted and (rules or has_racks))
    ):
        return False
    # numpy.random would add to the start-up time of every command.
    from kassay.solver.weighted.search.overload_repair import OverloadRepair  # noqa: PLC0415

    return (
        OverloadRepair.is_applicable(problem)
        and all(each.measure is Measure.MAKESPAN for each in measured)
        and all(isinstance(rule, REPAIRABLE) for rule in rules)
    )


class _OverloadSearch:
    """Repairs of overloads within the constraints, and within the racks of the replicas."""

    def __init__(
        self,
        pool: IncumbentPool,
        measured: Sequence[Imbalance | HostImbalance],
        moves: Movement,
        budget: SearchBudget,
    ) -> None:
        problem = pool.problem
        if pool.constraints:
            problem = within_pins(problem, pool.constraints)
        if _racks_before_moves(pool.levels):
            problem = within_racks(problem)
        self.pool, self.problem = pool, problem
        self.start = keep_owned(problem, [load_units(problem, each) for each in measured])
        costs = movement_costs(pool.problem, moves)
        if costs.dtype == object:
            costs = costs // (1 + (sum(costs.tolist()) >> 60))
        self.costs = costs.astype(np.int64)
        self.rng = np.random.default_rng(budget.seed)

    def is_repaired(
        self,
        limits: Sequence[tuple[Level, int]],
        within: SearchBudget,
        *,
        rounds: int,
        least: int = 0,
        most: int | None = None,
        enough: int = 0,
    ) -> bool:
        """Add a placement within the limits to the pool; return whether the pool accepts one.

        The search ends at a placement whose moves cost at most ``enough``.
        """
        from kassay.solver.weighted.search.overload_repair import (  # noqa: PLC0415
            OverloadRepair,
        )

        loads = room_limits(self.problem, self.pool.constraints)
        loads += load_limits(self.problem, limits)
        search = OverloadRepair(self.problem, loads, self.rng)
        may_continue = within.continuation(_MAX_REPAIR_STEPS, least=least)
        if most is not None:
            may_continue = limited_steps(most, may_continue)
        found = search.run(
            self.start, self.costs, rounds=rounds, may_continue=may_continue, enough=enough
        )
        return found is not None and self.pool.add(found)


def _racks_before_moves(levels: Sequence[Level]) -> bool:
    """Return whether partitions in other racks count more than moves."""
    first = next((each for each in levels if isinstance(each, CrossRack | Movement)), None)
    return isinstance(first, CrossRack)


def room_limits(problem: Problem, rules: Sequence[Constraint]) -> "list[LoadLimit]":
    """Convert capacities, maximum numbers of partitions and separations to maximum loads.

    In the limits on numbers, each partition has the mean weight, so that overloads are comparable.
    Of separated partitions, each member gets at most one.
    """
    from kassay.solver.weighted.search.overload_repair import LoadLimit  # noqa: PLC0415

    room, members = Room(problem, rules), np.arange(problem.member_count)
    weight = problem.weight.astype(np.int64)
    found = [LoadLimit(members, np.array(room.loads, dtype=np.int64), weight)]
    mean = max(1, problem.total // problem.partition_count)
    if any(isinstance(rule, MaxPartitions) for rule in rules):
        counts = np.array(room.counts, dtype=np.int64)
        found.append(LoadLimit(members, counts * mean, np.full(problem.partition_count, mean)))
    for rule in rules:
        if isinstance(rule, Separated):
            inside = np.zeros(problem.partition_count, dtype=np.int64)
            inside[separated_partitions(problem, rule)] = mean
            found.append(LoadLimit(members, np.full(problem.member_count, mean), inside))
    return found


def load_limits(problem: Problem, limits: Sequence[tuple[Level, int]]) -> "list[LoadLimit]":
    """Convert limits on makespans to maximum loads of members and hosts."""
    from kassay.solver.weighted.search.overload_repair import LoadLimit  # noqa: PLC0415

    found, weight = [], problem.weight.astype(np.int64)
    for level, limit in limits:
        if isinstance(level, Imbalance | HostImbalance):
            units = load_units(problem, level)
            most = [min(limit // factor, problem.total) for factor in units.factors]
            found.append(LoadLimit(np.array(units.unit_of), np.array(most, dtype=np.int64), weight))
    return found
