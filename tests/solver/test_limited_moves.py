"""Minimum makespan within a number of moves: valid bounds and placements."""

import random
from math import inf

import numpy as np
import pytest

from kassay.solver import MaxMoves, Movement, SearchLimits, frontier, solve
from kassay.solver.bounds.makespan_within_moves import makespan_bound_within
from kassay.solver.evaluation import level_value
from kassay.solver.frontier.frontier_points import geometric_moves
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.limits import SearchBudget
from kassay.solver.weighted.search.limited_moves import LimitedMovesSearch
from tests import brute_force
from tests.log_normal_groups import log_normal_group
from tests.solver.random_cases import weighted_problems
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
