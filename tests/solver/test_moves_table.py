"""The table of lowest maximum loads is not worse than simple searches, and its bounds hold."""

import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from benchmarks.typical_groups import zipf_group
from kassay.experiments.planning.preparation.planning_levels import planning_levels
from kassay.reference import Group, Member, Topic
from kassay.reference.documents.json_codec import load_group
from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.metrics import Measure, loads, measures
from kassay.solver import MaxMoves, SearchLimits, frontier, solve
from kassay.solver.bounds.counting import large_partition_moves_bound
from kassay.solver.certificate.certificate import Proof
from kassay.solver.frontier import moves_frontier as moves_frontier_module
from kassay.solver.frontier.frontier import moves_table
from kassay.solver.frontier.moves_frontier import moves_frontier
from kassay.solver.frontier.moves_plan import MovesPlan, moves_plan, solve_as_planned
from kassay.solver.lexicographic import moves_table_search
from kassay.solver.lexicographic.moves_table_search import prove_moves, search_moves
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.solution import Status
from tests.log_normal_groups import log_normal_group
from tests.solver.move_judges import (
    PlainModel,
    badly_received,
    beam,
    by_maximum,
    by_squares,
    few_partitions_with_a_heavy_one,
    groups_with_a_heavy_partition,
    is_badly_received,
    placements_as_good,
    seeded_groups,
)
from tests.tiers import short_and_long

HEAVY = load_group(Path(__file__).parents[1] / "data" / "group_with_one_heavy_partition.json")
OPTIMA = {1: 11_245, 3: 10_581, 5: 10_257, 10: 9_938, 26: 9_308, 32: 9_152}
"""Proven by a CP-SAT model for each number of moves alone."""


@pytest.fixture(scope="module")
def found():
    return frontier(HEAVY, limits=SearchLimits(time=120))


def test_each_point_of_a_group_with_a_heavy_partition_is_proven(found):
    values = {point.movement.value: point.imbalance.value for point in found.points}
    assert {moves: values[moves] for moves in OPTIMA} == OPTIMA
    assert list(values) == list(range(33))
    assert found.complete
    for point in found.points:
        assert max(loads(HEAVY, point.assignment).values()) == point.imbalance.value
        assert movement(HEAVY, point.assignment) == point.movement.value


def test_greedy_moves_do_not_end_before_half_of_the_time_limit(monkeypatch):
    monkeypatch.setattr(moves_table_search, "_MIN_SECONDS", 0)
    table = moves_table(HEAVY)
    search_moves(table, SearchBudget.start(SearchLimits(time=1000)).until(0))
    assert {moves: table.values[moves] for moves in (1, 10)} == {1: 11_245, 10: 9_938}


@pytest.mark.long
@pytest.mark.parametrize("moves", OPTIMA)
def test_the_points_are_those_of_the_cpsat_model(moves):
    assert PlainModel(build_problem(HEAVY)).lowest(moves, 60) == (OPTIMA[moves], OPTIMA[moves])


def test_a_limit_on_moves_and_the_frontier_have_equal_values(found):
    for moves in (1, 10):
        solution = solve(HEAVY, constraints=[MaxMoves(moves)], limits=SearchLimits(time=60))
        assert solution.imbalance.value == OPTIMA[moves]
        assert solution.is_optimal


def test_a_heavy_partition_raises_the_bound_on_moves():
    problem = build_problem(HEAVY)
    assert large_partition_moves_bound(problem, [9_152] * 12) == 32
    assert large_partition_moves_bound(problem, [13_199] * 12) == 0


@pytest.mark.parametrize(
    ("groups", "partitions", "most"), short_and_long((3, 200, 6), (30, 800, 20))
)
def test_no_simple_search_finds_a_lower_maximum_load(groups, partitions, most):
    for group in seeded_groups(groups, most_partitions=partitions):
        problem, table = build_problem(group), moves_table(group)
        limits = SearchLimits(work=1)
        budget = SearchBudget.start(limits)
        search_moves(table, budget)
        table.extend(most)
        judges = [judge(problem, most) for judge in (by_maximum, by_squares, beam)]
        for moves in range(most + 1):
            lowest = min(values[moves] for values in judges)
            assert table.bounds[moves] <= table.values[moves] <= lowest
            placement = table.placements[moves]
            assert max(problem.loads(placement)) == table.values[moves]
            assert int((placement != problem.owner).sum()) <= moves


@pytest.mark.parametrize("count", short_and_long(1, 20))
def test_members_below_the_mean_receive_before_members_far_above_it(count):
    for group in groups_with_a_heavy_partition(count):
        table = moves_table(group)
        limits = SearchLimits(work=1)
        planned = MovesPlan(table, Tolerance(relative=Fraction(1, 50)), None, ())
        planned.start(SearchBudget.start(limits))
        assert planned.moves > 0
        assert badly_received(table.problem, table.placements[planned.moves]) == []


@pytest.mark.parametrize("count", short_and_long(40, 2_000))
def test_a_member_far_above_the_mean_receives_only_if_each_equal_plan_has_such_a_receiver(count):
    exceptions = 0
    for seed in range(count):
        group = few_partitions_with_a_heavy_one(seed)
        table = moves_table(group)
        planned = MovesPlan(table, Tolerance(relative=Fraction(1, 50)), None, ())
        planned.start(SearchBudget.start(SearchLimits()))
        problem, placement = table.problem, table.placements[planned.moves]
        if is_badly_received(problem, placement):
            exceptions += 1
            equal = placements_as_good(problem, placement)
            assert equal
            assert all(is_badly_received(problem, one) for one in equal)
    assert exceptions > count // 10


def test_the_squares_of_a_plan_are_proven_if_all_assignments_are_compared():
    members = [
        Member(f"c{at}", ("t",), speed=(1, 3, 1)[at], owned=[("t", 2 - at)]) for at in range(3)
    ]
    group = Group((Topic("t", 3, weights=(1, 7, 5)),), tuple(members))
    planned = MovesPlan(moves_table(group), Tolerance(), None, ())
    budget = SearchBudget.start(SearchLimits())
    planned.start(budget)
    assert planned.table.is_complete
    solution = planned.solution(*planned.even_out(budget))
    squares = solution.levels[-1]
    assert (planned.moves, squares.value, squares.bound) == (1, 147, 147)
    assert (solution.method, squares.proof) == ("enumeration", Proof.SEARCH)


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
    table = moves_table(group, measure=measure)
    budget = SearchBudget.start(SearchLimits(work=1))
    search_moves(table, budget)
    prove_moves(table, [0, 1, 2], budget)
    assert not table.is_complete
    lowest = [_lowest_by_brute_force(group, measure, moves) for moves in range(3)]
    assert table.values[:3] == lowest
    assert all(bound <= value for bound, value in zip(table.bounds, table.values, strict=True))


def test_different_speeds_without_common_divisors_have_a_bound():
    group = log_normal_group(60, 8, seed=1)
    speeds = [9_973, 9_967, 9_949, 9_941, 5_003, 5_009, 7_001, 7_013]
    members = [replace(one, speed=own) for one, own in zip(group.members, speeds, strict=True)]
    group = replace(group, members=tuple(members))
    solution = solve(group, limits=SearchLimits(time=0))
    assert 0 <= solution.imbalance.gap <= solution.imbalance.bound / 50


@pytest.mark.parametrize("seed", range(3))
def test_the_fewest_moves_are_proven_without_the_lowest_load_of_a_group_limited_by_its_mean(
    seed, monkeypatch
):
    monkeypatch.delattr(MovesPlan, "find_lowest")
    group = zipf_group(random.Random(seed), 60, 5, 0.6)
    found = solve_as_planned(group, levels=planning_levels(group), limits=SearchLimits(time=60))
    assert found.status is Status.OPTIMAL
    assert found.imbalance.value == measures(group, found.assignment)[Measure.MAKESPAN]
    assert found.movement.value == movement(group, found.assignment)


def test_the_lowest_load_has_the_fewest_moves_that_are_found_last():
    members = (Member("a", ("t",), owned=[("t", at) for at in range(3)]), Member("b", ("t",)))
    table = moves_table(Group((Topic("t", 3, weights=(4, 4, 5)),), members))
    for placement in ([1, 1, 0], [0, 0, 1]):
        table.add(np.array(placement, dtype=table.problem.owner.dtype))
    assert table.top == 2
    found = MovesPlan(table, Tolerance(), None, ()).optimum()
    assert (found.imbalance.value, found.movement.value) == (8, 1)


def test_few_moves_are_proven_before_the_search_for_the_lowest_load(monkeypatch):
    table = moves_table(zipf_group(random.Random(2), 60, 5, 0.6))
    proven = []

    def record_entries(*arguments, **settings):
        proven.extend(map(table.is_proven, range(4)))
        return solve(*arguments, **settings)

    monkeypatch.setattr(moves_frontier_module, "solve", record_entries)
    budget = SearchBudget.start(SearchLimits(work=2))
    moves_frontier(table, (), max_points=None, optimum=None, known=(), budget=budget)
    assert proven == [True] * 4


@pytest.mark.parametrize("seed", range(3))
def test_a_proven_number_of_moves_is_not_changed_by_further_searches(seed):
    group = zipf_group(random.Random(seed), 60, 5, 0.6)
    search = moves_plan(group, planning_levels(group))
    budget = SearchBudget.start(SearchLimits(work=5))
    search.start(budget)
    search.find_fewest_moves(budget, share=1.0)
    moves, is_proven = search.moves, search.is_proven
    search.find_lowest(budget)
    search.find_fewest_moves(budget, share=1.0)
    assert is_proven
    assert search.moves == moves
