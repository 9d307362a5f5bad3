"""Lowest loads within a number of moves: values and bounds of solve and of the frontier."""

import random
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import pytest

from kassay import MaxMoves, SearchLimits, frontier, solve
from kassay.reference.documents.json_codec import load_group
from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.load_metrics import Measure, loads, measures
from kassay.solver.counting_bounds import (
    large_partition_moves_bound,
    level_bound,
    makespan_bound_within,
)
from kassay.solver.evaluation import level_value, violated
from kassay.solver.frontier import geometric_moves
from kassay.solver.greedy_placements import keep_owned
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import EXACT, default_levels
from kassay.solver.problem import build_problem
from kassay.solver.search.load_searches import limit_moves
from kassay.solver.search.overload_searches import repair_overloads
from tests import brute_force
from tests.log_normal_groups import log_normal_group
from tests.solver.move_judges import (
    badly_received,
    beam,
    by_maximum,
    by_squares,
    greedy_within,
    groups_with_a_heavy_partition,
    seeded_groups,
)
from tests.solver.random_cases import weighted_problems
from tests.solver.void_additions import medium_call
from tests.tiers import short_and_long


@pytest.mark.parametrize("number", short_and_long(10, 100))
def test_bounds_within_a_number_of_moves_agree_with_brute_force(number):
    for group, problem in weighted_problems(random.Random(3), number):
        for moves, least in brute_force.frontier(group, "makespan"):
            assert makespan_bound_within(problem, moves, high=problem.total) <= least


def test_round_numbers_of_moves_grow_geometrically():
    assert geometric_moves(100) == [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70]
    assert geometric_moves(1) == []
    assert geometric_moves(100, 2) == []
    assert len(geometric_moves(10**6, 12)) == 10


STEPS = SearchLimits(work=10)

HEAVY = load_group(Path(__file__).parents[1] / "data" / "group_with_one_heavy_partition.json")
OPTIMA = {1: 11_245, 3: 10_581, 5: 10_257, 10: 9_938, 26: 9_308, 32: 9_152}
"""Proven by a CP-SAT model for each number of moves alone."""


@pytest.fixture(scope="module")
def heavy_frontier():
    return frontier(HEAVY, limits=SearchLimits(time=120))


def test_each_point_of_a_group_with_a_heavy_partition_is_proven(heavy_frontier):
    values = {point.movement.value: point.imbalance.value for point in heavy_frontier.points}
    assert {moves: values[moves] for moves in OPTIMA} == OPTIMA
    assert list(values) == list(range(33))
    assert heavy_frontier.complete
    for point in heavy_frontier.points:
        assert max(loads(HEAVY, point.assignment).values()) == point.imbalance.value
        assert movement(HEAVY, point.assignment) == point.movement.value


def test_a_limit_on_moves_and_the_frontier_have_equal_values():
    for moves in (1, 10):
        levels = default_levels(HEAVY, tolerance=EXACT)
        constraints, limits = [MaxMoves(moves)], SearchLimits(time=60)
        solution = solve(HEAVY, levels=levels, constraints=constraints, limits=limits)
        assert solution.imbalance.value == OPTIMA[moves]
        assert solution.is_optimal


def test_a_heavy_partition_raises_the_bound_on_moves():
    problem = build_problem(HEAVY)
    assert large_partition_moves_bound(problem, [9_152] * 12) == 32
    assert large_partition_moves_bound(problem, [13_199] * 12) == 0


@pytest.mark.parametrize(
    ("groups", "partitions", "numbers"),
    short_and_long((3, 200, (1, 2, 6)), (12, 800, (1, 3, 8, 20))),
)
def test_no_simple_search_finds_a_lower_maximum_load(groups, partitions, numbers):
    limits = SearchLimits(work=3)
    for group in seeded_groups(groups, most_partitions=partitions):
        problem = build_problem(group)
        judges = [judge(problem, max(numbers)) for judge in (by_maximum, by_squares)]
        for moves in numbers:
            solution = solve(group, levels="makespan", constraints=[MaxMoves(moves)], limits=limits)
            assert solution.imbalance.value <= min(values[moves] for values in judges)
            assert movement(group, solution.assignment) <= moves


@pytest.mark.long
@pytest.mark.parametrize("first", [400, 403, 406])
def test_no_beam_search_finds_a_lower_point_of_the_frontier(first):
    for group in seeded_groups(1, first=first, size=(27, 1500)):
        lowest = beam(build_problem(group), 12)
        points = frontier(group, max_points=40, limits=SearchLimits(work=6)).points
        few = [one for one in points if one.movement.value < len(lowest)]
        assert len(few) > 6
        for point in few:
            assert point.imbalance.value <= lowest[point.movement.value]


@pytest.mark.parametrize("count", short_and_long(1, 20))
def test_members_below_the_mean_receive_before_members_far_above_it(count):
    for group in groups_with_a_heavy_partition(count):
        solution = solve(group, limits=STEPS)
        problem = build_problem(group)
        assert solution.movement.value > 0
        assert badly_received(problem, problem.to_placement(solution.assignment)) == []


def _lowest_by_brute_force(group, measure, most):
    """Return the lowest imbalance over all choices of at most ``most`` moves."""
    start = {tp: member.id for member in group.members for tp in member.owned}
    values = []
    for moved in combinations(start, most):
        for targets in product([member.id for member in group.members], repeat=most):
            owners = start | dict(zip(moved, targets, strict=True))
            lists = {member.id: [] for member in group.members}
            for tp, member in owners.items():
                lists[member].append(tp)
            values.append(measures(group, Assignment(lists))[Measure(measure)])
    return min(values)


@pytest.mark.parametrize(
    ("measure", "most_speed"),
    [
        ("makespan", 4),
        ("makespan", 10_000),
        ("sum_of_squares", 1),
        ("sum_of_squares", 4),
        ("spread", 1),
        *short_and_long(("deviation", 1), ("balance_score", 1), ("spread", 4)),
    ],
)
def test_few_moves_are_optimal_for_each_measure_and_for_different_speeds(measure, most_speed):
    group = log_normal_group(14, 4, seed=3)
    rng = random.Random(1)
    speeds = [rng.randint((most_speed + 1) // 2, most_speed) for _ in group.members]
    members = [replace(one, speed=own) for one, own in zip(group.members, speeds, strict=True)]
    group = replace(group, members=tuple(members))
    for moves in range(3):
        solution = solve(group, levels=measure, constraints=[MaxMoves(moves)], limits=STEPS)
        assert solution.imbalance.value == _lowest_by_brute_force(group, measure, moves)


def test_different_speeds_without_common_divisors_have_a_bound():
    group = log_normal_group(60, 8, seed=1)
    speeds = [9_973, 9_967, 9_949, 9_941, 5_003, 5_009, 7_001, 7_013]
    members = [replace(one, speed=own) for one, own in zip(group.members, speeds, strict=True)]
    group = replace(group, members=tuple(members))
    solution = solve(group, limits=SearchLimits(time=0))
    assert 0 <= solution.imbalance.gap <= solution.imbalance.bound / 50


def violating_call(seed):
    """Return a call with a limit on moves, whose owners violate a pin and a separation."""
    call = medium_call(seed)
    problem = build_problem(call.group)
    assert len(call.constraints) == 3
    assert any(violated(problem, call.constraints[1:], keep_owned(problem)))
    return call, problem


def pool_of(call, problem):
    """Return a pool with a placement that meets the constraints with few moves."""
    start = greedy_within(problem, call.constraints, 0)
    return IncumbentPool(problem, call.levels, call.constraints, [start])


def assert_no_worse_than_greedy_moves(pool, call):
    rules, level = call.constraints, call.levels[0]
    greedy = greedy_within(pool.problem, rules, rules[0].limit)
    assert not any(violated(pool.problem, rules, greedy))
    assert pool.value(level) <= level_value(pool.problem, level, greedy)


@pytest.mark.parametrize("seed", short_and_long(100, 18, 63, 75, 112, 114, 142, 144, 159))
def test_owners_that_violate_constraints_move_before_the_other_moves(seed):
    call, problem = violating_call(seed)
    pool = pool_of(call, problem)
    limit_moves(pool, call.levels[0], SearchBudget.start(STEPS))
    assert_no_worse_than_greedy_moves(pool, call)


@pytest.mark.parametrize("seed", short_and_long(27, 24, 39, 63, 75, 112, 116, 159))
def test_repairs_within_a_limit_on_moves_lower_loads_of_separated_partitions(seed):
    call, problem = violating_call(seed)
    pool, level = pool_of(call, problem), call.levels[0]
    bound = level_bound(problem, level)
    repair_overloads(pool, level, bound, SearchBudget.start(STEPS))
    assert_no_worse_than_greedy_moves(pool, call)
