"""Minimum makespan within a number of moves: valid bounds and placements."""

import random
from math import inf

import numpy as np
import pytest

from kassay.solver import MaxMoves, Movement, SearchLimits, frontier, solve
from kassay.solver.bounds.counting import level_bound, makespan_bound_within
from kassay.solver.constraint_repair import meet_constraints
from kassay.solver.evaluation import level_value, violated
from kassay.solver.frontier.frontier_points import geometric_moves
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.lexicographic.load_searches import limit_moves
from kassay.solver.lexicographic.overload_searches import repair_overloads
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import build_problem
from kassay.solver.weighted.search.limited_moves import LimitedMovesSearch
from tests import brute_force
from tests.log_normal_groups import log_normal_group
from tests.solver.move_judges import greedy_within
from tests.solver.random_cases import weighted_problems
from tests.solver.void_additions import medium_call
from tests.tiers import short_and_long


@pytest.mark.parametrize(("number", "often"), short_and_long((10, 10), (100, 150)))
def test_values_and_bounds_within_a_number_of_moves_agree_with_brute_force(number, often):
    rng = random.Random(3)
    reached = 0
    for group, problem in weighted_problems(rng, number):
        start = keep_owned(problem)
        for moves, least in brute_force.frontier(group, "makespan"):
            search = LimitedMovesSearch(problem, moves, start, np.random.default_rng(0))
            search.run(SearchBudget(inf))
            assert level_value(problem, Movement(), search.placement) <= moves
            assert makespan_bound_within(problem, moves, high=problem.total) <= least
            assert search.bound <= least <= search.makespan
            assert search.makespan == max(problem.loads(search.placement))
            reached += search.makespan == least
    assert reached > often


def test_round_numbers_of_moves_grow_geometrically():
    assert geometric_moves(100) == [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70]
    assert geometric_moves(1) == []
    assert geometric_moves(100, 2) == []
    assert len(geometric_moves(10**6, 12)) == 10


GROUP = log_normal_group()


@pytest.fixture(scope="module")
def found():
    return frontier(GROUP, max_points=14, limits=SearchLimits(time=20))


@pytest.mark.long
def test_the_frontier_of_300_weighted_partitions_has_a_point_at_each_bend(found):
    moves = [point.movement.value for point in found.points]
    assert moves[:3] == [0, 1, 2]
    assert len(moves) >= 8
    first = found.points[0].imbalance.value
    lowest = found.points[-1].imbalance.bound
    useful = [p for p in found.points if p.imbalance.value < first - (first - lowest) // 100]
    assert len(useful) >= 7
    assert all(point.imbalance.bound <= point.imbalance.value for point in found.points)


@pytest.mark.long
@pytest.mark.parametrize("moves", [3, 10])
def test_max_moves_and_the_frontier_agree(found, moves):
    solution = solve(GROUP, constraints=[MaxMoves(moves)], limits=SearchLimits(time=8))
    point = max(
        (p for p in found.points if p.movement.value <= moves), key=lambda p: p.movement.value
    )
    assert solution.movement.value <= moves
    assert solution.imbalance.bound <= point.imbalance.value
    assert point.imbalance.bound <= solution.imbalance.value
    if moves == 3:
        assert solution.imbalance.value == point.imbalance.value


STEPS = SearchLimits(work=10)


def violating_call(seed):
    """Return a call with a limit on moves, whose owners violate a pin and a separation."""
    call = medium_call(seed)
    problem = build_problem(call.group)
    assert len(call.constraints) == 3
    assert any(violated(problem, call.constraints[1:], keep_owned(problem)))
    return call, problem


def pool_of(call, problem):
    """Return a pool with the owned partitions after a repair."""
    repaired = meet_constraints(problem, call.constraints, keep_owned(problem))
    return IncumbentPool(problem, call.levels, call.constraints, [repaired])


def assert_no_worse_than_greedy_moves(pool, call):
    rules, level = call.constraints, call.levels[0]
    greedy = greedy_within(pool.problem, rules, rules[0].limit)
    assert not any(violated(pool.problem, rules, greedy))
    assert pool.value(level) <= level_value(pool.problem, level, greedy)


@pytest.mark.parametrize("seed", short_and_long(100, 18, 63, 75, 112, 114, 142, 144, 159))
def test_owners_that_violate_constraints_move_before_the_other_moves(seed):
    call, problem = violating_call(seed)
    pool = pool_of(call, problem)
    bound = limit_moves(pool, call.levels[0], SearchBudget.start(STEPS))
    assert bound.value == 0
    assert_no_worse_than_greedy_moves(pool, call)


@pytest.mark.parametrize("seed", short_and_long(39, 24, 27, 63, 75, 112, 116, 159))
def test_repairs_within_a_limit_on_moves_lower_loads_of_separated_partitions(seed):
    call, problem = violating_call(seed)
    pool, level = pool_of(call, problem), call.levels[0]
    bound = level_bound(problem, level)
    repair_overloads(pool, level, bound, SearchBudget.start(STEPS))
    assert_no_worse_than_greedy_moves(pool, call)
