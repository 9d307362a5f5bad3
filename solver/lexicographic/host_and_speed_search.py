"""Search for low loads and few moves of groups with hosts or different speeds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.solver.evaluation import load_units, movement_costs
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import HostImbalance, Imbalance, Level, Movement
from kassay.solver.problem import Problem

if TYPE_CHECKING:
    from kassay.solver.weighted.search.overload_repair import LoadLimit

_TARGETS = 7
"""Number of load limits between the bound and the incumbent."""
_MAX_STEPS = 20_000
"""Maximum number of transfers and exchanges of one search with a deterministic limit."""
_LOAD_ROUNDS, _MOVE_ROUNDS = 3, 2_000
"""Number of repairs in a search for lower loads, and for fewer moves."""


def repair_overloads(pool: IncumbentPool, level: Level, bound: int, budget: SearchBudget) -> None:
    """Add placements to the pool: with lower loads, or with fewer moves within the limits.

    The search applies to groups with different speeds, and to weighted groups with levels about
    hosts, if all levels about loads are makespans.
    """
    problem = pool.problem
    has_hosts = any(isinstance(each, HostImbalance) for each in pool.levels)
    if problem.group.has_equal_speeds and not (problem.group.is_weighted and has_hosts):
        return
    # numpy.random would add to the start-up time of every command.
    from kassay.solver.weighted.search.overload_repair import OverloadRepair  # noqa: PLC0415

    loads = [*pool.limits(), (level, bound)]
    measured = [each for each, _ in loads if isinstance(each, Imbalance | HostImbalance)]
    if not OverloadRepair.is_applicable(problem) or any(
        each.measure is not Measure.MAKESPAN for each in measured
    ):
        return
    rng = np.random.default_rng(budget.seed)
    units = [load_units(problem, each) for each in measured]
    start = keep_owned(problem, units)
    moves = level if isinstance(level, Movement) else Movement()
    costs = movement_costs(problem, moves).astype(np.int64)
    if isinstance(level, Movement):
        within = budget.until(budget.seconds * 0.5)
        search = OverloadRepair(problem, load_limits(problem, pool.limits()), rng)
        may_continue = within.continuation(_MAX_STEPS)
        found = search.run(start, costs, rounds=_MOVE_ROUNDS, may_continue=may_continue)
        if found is not None:
            pool.add(found)
        return
    low, high = bound, pool.value(level)
    for _ in range(_TARGETS):
        if low >= high:
            break
        target = (low + high) // 2
        limits = load_limits(problem, [*pool.limits(), (level, target)])
        may_continue = budget.until(budget.seconds * 0.08).continuation(_MAX_STEPS)
        search = OverloadRepair(problem, limits, rng)
        found = search.run(start, costs, rounds=_LOAD_ROUNDS, may_continue=may_continue)
        if found is None:
            low = target + 1
        else:
            pool.add(found)
            high = min(target, pool.value(level))


def load_limits(problem: Problem, limits: Sequence[tuple[Level, int]]) -> "list[LoadLimit]":
    """Convert limits on makespans to maximum loads of members and hosts."""
    from kassay.solver.weighted.search.overload_repair import LoadLimit  # noqa: PLC0415

    found = []
    for level, limit in limits:
        if isinstance(level, Imbalance | HostImbalance):
            units = load_units(problem, level)
            most = [limit // factor for factor in units.factors]
            found.append(LoadLimit(np.array(units.unit_of), np.array(most, dtype=np.int64)))
    return found
