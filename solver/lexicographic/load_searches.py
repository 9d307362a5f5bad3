"""Searches for lower loads of members and hosts.

Most searches add placements to the pool. Some prove a lower bound on the level.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.counting import (
    greatest_true,
    makespan_bound,
    makespan_bound_within,
    max_loads_within,
)
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import Capacity, Forbidden, MaxMoves, Pinned
from kassay.solver.evaluation import imbalance_of, level_value, violated
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.initial_solutions import Room, keep_owned, within_pins
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Level, Movement
from kassay.solver.problem import Placement, Problem

# CP-SAT solves smaller groups faster than any other method starts.
MIN_PARTITIONS = 12
_BALANCING_SHARE, _BALANCING_SHARE_BEFORE_PACKING = 1 / 2, 1 / 10
"""Shares of the local search in the work of a level: in general, and of identical members."""
_MAX_BALANCING_STEPS, _BALANCING_STEP = 5_000, 1e-4
"""Maximum number of steps of the local search, and the work of one step."""

_WIDE_BEAM, _FEW_MOVES, _BEAM_WIDTH = 50, 40, 8
"""Width of the beam search for few moves, their maximum number, and the width for more moves."""
_BEAM_SHARE, _SQUARES_SHARE = 0.2, 0.1
"""Shares of the work left for beam searches, and for moves that lower the sum of squares."""

_SHARES_ABOVE_BOUND = (0, 0.002, 0.005, 0.01, 0.02)
"""Targets of the local search within capacities: excess over the bound as shares of the bound."""


class ProvenBound(NamedTuple):
    """Lower bound on a level and its origin; the value is 0 if nothing is proven."""

    value: int
    origin: Origin


def _is_large_enough(problem: Problem) -> bool:
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

    highest, pinned = pool.value(level), within_pins(problem, pool.constraints)
    filled = min(greatest_true(is_too_low, highest) + 1, highest)
    beside = max(_bound_beside_pins(pinned), _bound_beside_lightest(pool))
    return ProvenBound(max(filled, makespan_bound(pinned), beside), Origin.PACKING)


def _bound_beside_lightest(pool: IncumbentPool) -> int:
    """Bound the makespan: the member of the heaviest partition gets others, too.

    They are those for which the other members have no room, and are at least as heavy as the
    lightest ones.
    """
    problem = pool.problem
    counts = Room(problem, pool.constraints).counts
    without_room = min(counts, default=0) - (sum(counts) - problem.partition_count)
    if without_room < 1 or not problem.group.has_equal_speeds:
        return 0
    weights: list[int] = sorted(problem.weight.tolist())
    return weights[-1] + sum(weights[: without_room - 1])


def _bound_beside_pins(problem: Problem) -> int:
    """Bound the makespan: a member gets a partition besides those that only it may consume."""
    if not problem.group.has_equal_speeds:
        return 0
    pinned = [0] * problem.member_count
    heaviest = [0] * len(problem.consumer_sets)
    for index, weight in zip(problem.consumer_set.tolist(), problem.weight.tolist(), strict=True):
        heaviest[index] = max(heaviest[index], weight)
        if len(problem.consumer_sets[index]) == 1:
            pinned[problem.consumer_sets[index][0]] += weight
    beside = (
        weight + min(pinned[member] for member in members.tolist())
        for weight, members in zip(heaviest, problem.consumer_sets, strict=True)
        if len(members) > 1
    )
    bound: int = max(*pinned, *beside, 0)
    return bound


def pack_identical(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> ProvenBound:
    """Minimise the makespan of identical members."""
    if not _may_pack(pool, level) or not budget.has_work:
        return ProvenBound(0, Origin.PACKING)
    from kassay.solver.identical_members.makespan_search import minimise_makespan  # noqa: PLC0415

    result = minimise_makespan(pool.problem, pool.incumbent(level), budget)
    if result is None:
        return ProvenBound(0, Origin.PACKING)
    pool.add(result.placement)
    return ProvenBound(result.bound, Origin.PACKING)


def _may_pack(pool: IncumbentPool, level: Imbalance) -> bool:
    """Return whether `pack_identical` applies: members with common partitions are identical."""
    members = np.concatenate([*pool.problem.consumer_sets, np.zeros(0, dtype=np.int64)])
    return (
        not pool.reached
        and not pool.constraints
        and level.measure is Measure.MAKESPAN
        and _is_large_enough(pool.problem)
        and pool.problem.group.is_weighted
        and len(np.unique(members)) == len(members)
    )


def balance_loads(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> ProvenBound:
    """Improve the best placement on the first level by local search, which proves no bound.

    It has little work before `pack_identical`, which also searches for lower loads.
    """
    problem, unproven = pool.problem, ProvenBound(0, Origin.COUNTING)
    is_makespan = level.measure is Measure.MAKESPAN
    if pool.reached or not _is_large_enough(problem):
        return unproven
    from kassay.solver.weighted.search.load_local_search import LoadBalancer  # noqa: PLC0415

    if pool.constraints:
        problem = within_pins(problem, pool.constraints)
    share = _BALANCING_SHARE_BEFORE_PACKING if _may_pack(pool, level) else _BALANCING_SHARE
    rng, within = np.random.default_rng(budget.seed), budget.part(share)
    may_continue = within.counted(_BALANCING_STEP, _MAX_BALANCING_STEPS)
    # The consumers of ``problem`` meet pins and exclusions, and additional loads meet capacities.
    met = Pinned | Forbidden | Capacity if is_makespan else Pinned | Forbidden
    others = [rule for rule in pool.constraints if not isinstance(rule, met)]
    room = Room(problem, [rule for rule in pool.constraints if rule not in others]).loads
    least = max(makespan_bound(problem), fill_members(pool, level).value)

    def permits(placement: Placement) -> bool:
        return not any(violated(pool.problem, others, placement))

    for share in _SHARES_ABOVE_BOUND if min(room) < problem.total else (0,):
        # The additional load is target minus capacity: at the target, a member has its capacity.
        target = least + int(least * share)
        start = _most_even(pool, level).copy()
        base = [max(target - most, 0) for most in room]
        balancer = LoadBalancer(problem, start, rng, base, permits)
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


def heaviest_moved(problem: Problem) -> tuple[int | None, int]:
    """Return limits on the weights of moved partitions: none, and half of the lowest load.

    Few moves of heavy partitions and several moves of light ones can each lead to lower loads.
    """
    fastest = min(problem.member_units.factors, default=1)
    return None, makespan_bound(problem) // (2 * fastest)


def limits_moves(pool: IncumbentPool) -> bool:
    """Return whether a constraint limits the number of moves."""
    return any(isinstance(rule, MaxMoves) for rule in pool.constraints)


def limit_moves(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> ProvenBound:
    """Lower the loads within the maximum number of moves, and bound the makespan.

    Beam searches, and moves that lower the sum of squares, start from the assignment with the
    fewest moves and from the incumbent.
    """
    problem = pool.problem
    limits = [rule.limit for rule in pool.constraints if isinstance(rule, MaxMoves)]
    is_leximax = level.measure is Measure.LEXIMAX
    if not limits or problem.has_big_loads or is_leximax or problem.partition_count == 0:
        return ProvenBound(0, Origin.EXCHANGE)
    from kassay.solver.weighted.search.moves_beam import MovesBeam  # noqa: PLC0415
    from kassay.solver.weighted.search.single_moves import lower_squares, move_work  # noqa: PLC0415

    most, within = min(limits), within_pins(problem, pool.constraints)
    for_beams, for_squares = budget.part(_BEAM_SHARE), budget.part(_SQUARES_SHARE)
    moves = Movement()
    fewest = min(pool.placements, key=lambda one: level_value(problem, moves, one))
    incumbent = pool.incumbent(level)
    has_moves = level_value(problem, moves, incumbent) >= most - 1
    starts = [incumbent] if has_moves else [fewest, incumbent]
    for start in starts:
        left = most - level_value(problem, moves, start)
        may_continue = for_squares.counted(move_work(problem))
        for placement in lower_squares(within, start, left, may_continue):
            pool.add(placement)
        for heaviest in heaviest_moved(problem):
            beam = MovesBeam(within, _WIDE_BEAM if left <= _FEW_MOVES else _BEAM_WIDTH, heaviest)
            for placement in beam.search(start, left, for_beams.counted(beam.step)):
                pool.add(placement)
    if level.measure is not Measure.MAKESPAN:
        return ProvenBound(0, Origin.EXCHANGE)
    bound = makespan_bound_within(problem, most, high=pool.value(level))
    return ProvenBound(bound, Origin.EXCHANGE)


def move_greedily(pool: IncumbentPool, budget: SearchBudget) -> ProvenBound:
    """Add a placement with few moves within a limit on an imbalance, by greedy moves.

    Each move lowers the sum of squared loads most. The other searches for few moves need a limit
    on the makespan, so this one serves the other measures. It proves no bound.
    """
    problem, unproven = pool.problem, ProvenBound(0, Origin.EXCHANGE)
    measures = [level.measure for level, _ in pool.limits() if isinstance(level, Imbalance)]
    has_other_measure = bool(measures) and measures[0] not in (Measure.MAKESPAN, Measure.LEXIMAX)
    if not has_other_measure or problem.has_big_loads or problem.partition_count == 0:
        return unproven
    from kassay.solver.weighted.search.single_moves import lower_squares, move_work  # noqa: PLC0415

    within, start = within_pins(problem, pool.constraints), keep_owned(problem)
    most, may_continue = problem.partition_count, budget.counted(move_work(problem))
    for placement in lower_squares(within, start, most, may_continue):
        if all(level_value(problem, level, placement) <= limit for level, limit in pool.limits()):
            pool.add(placement)
            break
    return unproven


def spread_loads(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> ProvenBound:
    """Give moved partitions to other members for a lower sum of squares, without more moves."""
    problem = pool.problem
    if level.measure is Measure.SUM_OF_SQUARES and not problem.has_big_loads:
        from kassay.solver.weighted.search.single_moves import move_work, spread_moved  # noqa: PLC0415

        may_continue = budget.counted(move_work(problem))
        within, start = within_pins(problem, pool.constraints), pool.incumbent(level)
        pool.add(spread_moved(within, start, may_continue))
    return ProvenBound(0, Origin.COUNTING)


def max_loads(pool: IncumbentPool, limits: Sequence[tuple[Level, int]]) -> list[int] | None:
    """Return the permitted load per member within limits and capacities.

    Return None if there is no limit on imbalance.
    """
    loads = max_loads_within(pool.problem, limits)
    room = Room(pool.problem, pool.constraints).loads
    return None if loads is None else list(map(min, loads, room))
