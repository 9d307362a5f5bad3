"""Weighted groups: load balancer and degenerate groups."""

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from benchmarks.typical_groups import zipf_group
from kassay import Measure, solve, violations
from kassay.solver.constraints import (
    Capacity,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.counting_bounds import makespan_bound
from kassay.solver.evaluation import level_value
from kassay.solver.greedy_placements import longest_processing_time
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import (
    CrossRack,
    Imbalance,
    MembersUsed,
    Movement,
    Tolerance,
    TopicSpread,
)
from kassay.solver.problem import build_problem
from kassay.solver.search.load_searches import LoadBalancer, fill_members
from tests.notation import even_group
from tests.notation import group as small_group
from tests.tiers import short_and_long


@pytest.mark.parametrize(("partitions", "members"), short_and_long((16, 4), (20, 4)))
def test_random_weights_are_proven_on_both_levels(partitions, members):
    rng = random.Random(partitions)
    weights = [rng.randint(1, 2**14) for _ in range(partitions)]
    owners = [rng.randrange(-1, members) for _ in range(partitions)]
    group = even_group(weights, members, owners)
    solution = solve(group, levels=[Imbalance(), Movement()], limits=SearchLimits(time=60))
    assert solution.is_optimal
    assert list(violations(group, solution.assignment)) == []


def test_the_load_balancer_reaches_the_mean_of_many_partitions():
    rng = random.Random(2)
    problem = build_problem(even_group([rng.randint(1, 1000) for _ in range(300)], 25))
    placement = longest_processing_time(problem)
    balancer = LoadBalancer(
        problem, placement, np.random.default_rng(0), [0] * problem.member_count
    )
    balancer.lower_makespan(makespan_bound(problem), lambda: True)
    assert balancer.loads.tolist() == problem.loads(placement)
    assert balancer.loads.max() == makespan_bound(problem)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_local_search_balances_loads_within_capacities_and_pins(seed):
    rng = random.Random(seed)
    weights = [round(1000 * rng.lognormvariate(0, 1)) for _ in range(60)]
    group = even_group(weights, 8)
    one, *_, last = (member.id for member in group.members)
    rules = (Capacity(sum(weights) // 11, one), Pinned("t", 7, last), Forbidden(last, "t", 8))
    levels, limits = [Imbalance(Measure.MAKESPAN)], SearchLimits(work=1)
    level = solve(group, levels=levels, constraints=rules, limits=limits).imbalance
    assert (sum(weights) - sum(weights) // 11) / 7 <= level.bound
    assert level.value <= 1.001 * level.bound


@pytest.mark.parametrize("measure", [Measure.MAKESPAN, Measure.SUM_OF_SQUARES])
def test_the_local_search_balances_loads_within_other_constraints(measure):
    rng = random.Random(3)
    weights = [round(1000 * rng.lognormvariate(0, 1)) for _ in range(60)]
    group = even_group(weights, 8)
    heaviest = sorted(range(60), key=lambda at: -weights[at])[:3]
    rules = (Separated([("t", at) for at in heaviest]), MaxPartitions(9), MaxMoves(50))
    limits = SearchLimits(work=1)
    level = solve(group, levels=[Imbalance(measure)], constraints=rules, limits=limits).imbalance
    assert level.value <= 1.0001 * level.bound


def test_the_load_balancer_makes_only_permitted_changes():
    rng = random.Random(4)
    problem = build_problem(even_group([rng.randint(1, 50) for _ in range(20)], 5))
    placement = np.arange(20, dtype=np.int32) % 3
    together, seen = [0, 3, 6], []

    def permits(changed):
        seen.append(len(set(changed[together].tolist())) == 1)
        return seen[-1]

    balancer = LoadBalancer(problem, placement, np.random.default_rng(0), [0] * 5, permits)
    before = balancer.loads.max()
    balancer.lower_makespan(0, lambda: True)
    balancer.balance_random_pairs(lambda: True)
    assert not all(seen)
    assert len(set(placement[together].tolist())) == 1
    assert balancer.loads.tolist() == problem.loads(placement)
    assert balancer.loads.max() < before


def test_a_heavy_partition_lies_beside_pinned_partitions():
    pins = [Pinned("t", 1, "c0"), Pinned("t", 2, "c1")]
    problem = build_problem(even_group([100, 9, 7, *[1] * 12], 2))
    level = Imbalance(Measure.MAKESPAN)
    pool = IncumbentPool(problem, (level,), pins, [longest_processing_time(problem)])
    assert fill_members(pool, level) == 107
    assert solve(problem.group, levels=[level], constraints=pins).imbalance.value == 107


def test_the_heaviest_partition_lies_beside_those_for_which_others_have_no_room():
    problem = build_problem(even_group([100, *range(1, 10)], 3))
    level = Imbalance(Measure.MAKESPAN)
    # The other two members get at most eight partitions, so that one with weight 1 remains.
    for rules, least in (([MaxPartitions(4)], 101), ([MaxPartitions(5)], 100)):
        pool = IncumbentPool(problem, (level,), rules, [longest_processing_time(problem)])
        assert fill_members(pool, level) == least
        assert solve(problem.group, levels=[level], constraints=rules).imbalance.value == least


@pytest.mark.parametrize("measure", [Measure.SUM_OF_SQUARES, Measure.SPREAD])
def test_moves_within_a_tolerance_are_not_more_than_greedy_moves(measure):
    group = zipf_group(random.Random(1), 120, 6, 1.0)
    level = Imbalance(measure, Tolerance(relative=0.05))
    solution = solve(group, levels=[level, Movement()], limits=SearchLimits(work=0.1))
    problem = build_problem(group)
    placement, moves = problem.owner.copy(), 0
    limit = solution.imbalance.bound + solution.imbalance.slack
    while level_value(problem, level, placement) > limit:
        loads, weights = problem.loads(placement), problem.weight.tolist()
        # The move that lowers the sum of squares most.
        moved, taker = max(
            product(range(120), range(6)),
            key=lambda move: (
                weights[move[0]] * (loads[placement[move[0]]] - loads[move[1]] - weights[move[0]])
            ),
        )
        placement[moved], moves = taker, moves + 1
        assert moves <= 120
    assert solution.movement.value <= moves


def test_a_greedy_rule_keeps_partitions_in_their_racks():
    rng = random.Random(0)
    weights = [rng.randint(1, 1000) for _ in range(60)]
    group = even_group(weights, 6, [rng.randrange(6) for _ in weights])
    racks = tuple((f"r{rng.randrange(3)}",) for _ in weights)
    members = tuple(replace(one, rack=f"r{at % 3}") for at, one in enumerate(group.members))
    group = replace(group, topics=(replace(group.topics[0], racks=racks),), members=members)
    solution = solve(group, levels=[CrossRack()], limits=SearchLimits(work=0))
    assert solution.levels[0].value == solution.levels[0].bound == 0


EVERY_LEVEL = (
    *((Imbalance(measure), Movement()) for measure in Measure),
    (TopicSpread(), MembersUsed()),
)
DEGENERATE = {
    "no members": small_group("t:2"),
    "no topics": small_group("", a="t"),
    "nothing": small_group(""),
    "empty topic": small_group("t:0", a="t"),
    "idle member": small_group("t:3", a="t", b=""),
    "zero weights": even_group([0] * 15, 3, [0] * 15),
    "one great weight": even_group([2**60, *range(14)], 4, [0] * 15),
    "fewer partitions than members": even_group([5, 3], 6, [1, 1]),
}


@pytest.mark.parametrize("levels", EVERY_LEVEL, ids=lambda levels: levels[0].name)
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_groups_have_a_solution_on_every_level(case, levels):
    solution = solve(DEGENERATE[case], levels=levels, method="cp-sat", limits=SearchLimits(time=1))
    assert list(violations(DEGENERATE[case], solution.assignment)) == []
    assert all(level.bound <= level.value for level in solution.levels)


@pytest.mark.parametrize("measure", Measure)
@pytest.mark.parametrize("limit", [0, 1e-9])
def test_a_reached_limit_leaves_an_assignment_with_valid_bounds(measure, limit):
    rng = random.Random(9)
    group = even_group([rng.randint(1, 99) for _ in range(30)], 5, [0] * 30)
    levels = [Imbalance(measure), Movement()]
    rushed = solve(group, levels=levels, method="cp-sat", limits=SearchLimits(time=limit))
    assert list(violations(group, rushed.assignment)) == []
    assert rushed.imbalance.bound <= rushed.imbalance.value
