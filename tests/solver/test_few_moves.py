"""Few moves within a maximum load: valid bounds and placements."""

import random

import numpy as np
import pytest

from benchmarks.weighted_groups import dealt_in_turn, weighted_group
from kassay import Group, Movement, solve
from kassay.reference.model.assignment import Assignment
from kassay.solver.counting_bounds import overload_moves_bound
from kassay.solver.evaluation import level_value
from kassay.solver.greedy_placements import keep_owned, longest_processing_time
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import build_problem
from kassay.solver.search.few_moves import ExchangeBeam, NeighbourhoodSearch
from kassay.solver.search.movement_bound import price_by_partition, price_by_weight
from tests import brute_force
from tests.solver.random_cases import limited_problems, weighted_problems
from tests.tiers import short_and_long


def crowded(seed: int, partitions: int, members: int) -> Group:
    rng = random.Random(seed)
    weights = tuple(max(1, round(100 * rng.lognormvariate(0, 1))) for _ in range(partitions))
    owners = [rng.randrange(members) for _ in range(partitions)]
    return weighted_group(weights, owners, members)


@pytest.mark.parametrize(("number", "often"), short_and_long((25, 2), (150, 20)))
def test_bounds_on_moves_never_exceed_the_fewest_possible(number, often):
    rng = random.Random(11)
    strict = 0
    for _, problem, max_load, moves in limited_problems(rng, number, slack=5):
        max_loads = [max_load] * problem.member_count
        ones = np.ones(problem.partition_count, dtype=np.int64)
        turns = iter(range(60))
        priced = price_by_weight(
            problem,
            max_loads,
            ones,
            incumbent=moves + 1,
            may_continue=lambda turns=turns: next(turns, None) is not None,
        )
        bound = 0 if priced is None else priced.bound
        simple = overload_moves_bound(problem, Movement(), max_loads)
        assert 0 <= bound <= moves
        assert simple <= moves
        strict += bound > 0
    assert strict > often


@pytest.mark.parametrize("number", short_and_long(20, 60))
def test_patterns_prove_the_fewest_moves_of_small_groups(number):
    rng = random.Random(12)
    optimal = 0
    for group, problem, max_load, moves in limited_problems(rng, number, slack=5):
        start = next(
            placement
            for placement in map(problem.to_placement, every_assignment(group))
            if max(problem.loads(placement), default=0) <= max_load
        )
        turns = iter(range(60))
        priced = price_by_partition(
            problem,
            [max_load] * problem.member_count,
            np.ones(problem.partition_count, dtype=np.int64),
            start=start,
            may_continue=lambda turns=turns: next(turns, None) is not None,
        )
        assert priced.bound <= moves
        optimal += priced.bound == moves
    assert optimal > number * 5 // 6


def every_assignment(group):
    for placement in brute_force.every_placement(group):
        yield Assignment(brute_force.by_member(group, placement))


def test_few_moves_search_stays_within_the_maximum_load():
    problem = build_problem(crowded(3, 120, 8))
    ceiling = problem.total // 8 * 103 // 100
    mover = NeighbourhoodSearch(
        problem, ceiling, np.ones(problem.partition_count, dtype=np.int64), np.random.default_rng(0)
    )
    first = mover.initial_solution(keep_owned(problem))
    assert max(problem.loads(first)) <= ceiling
    turns = iter(range(10))
    better = mover.improve(first, 0, lambda: next(turns, None) is not None)
    assert max(problem.loads(better)) <= ceiling
    assert mover.cost(better) <= mover.cost(first)
    assert mover.cost(better) == level_value(problem, Movement(), better)


def test_the_first_solution_keeps_most_owned_partitions():
    group = dealt_in_turn(1, 1000, 50)
    solution = solve(group, levels=["makespan", "movement"], limits=SearchLimits(time=0))
    lightest_loads = solve_without_owners(group)
    assert solution.imbalance.value <= lightest_loads
    assert solution.movement.value <= 200


def solve_without_owners(group: Group) -> int:
    """Return the maximum load of the longest-processing-time rule."""
    problem = build_problem(group)
    return max(problem.loads(longest_processing_time(problem)))


@pytest.mark.parametrize("number", short_and_long(40, 120))
def test_exchanges_find_only_valid_placements_that_are_cheap_enough(number):
    rng = random.Random(17)
    found = optimal = 0
    for group, problem in weighted_problems(rng, number):
        least, moves = brute_force.optimum(group, "makespan")
        costs = np.ones(problem.partition_count, dtype=np.int64)
        members = list(range(problem.member_count))
        start, draws = keep_owned(problem), np.random.default_rng(0)
        beam = ExchangeBeam(problem, costs, least, members, start, draws)
        placement = beam.search(10, problem.partition_count, lambda: True)
        if placement is None:
            continue
        found += 1
        assert problem.may_consume[problem.consumer_set, placement].all()
        assert max(problem.loads(placement)) <= least
        value = level_value(problem, Movement(), placement)
        assert value >= moves
        optimal += value == moves
    assert found > number // 2
    assert optimal > number // 3
