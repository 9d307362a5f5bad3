"""Minimum makespan of identical members: bounds, heuristics and exact packing."""

import json
import random
from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from kassay import Imbalance, Movement, solve
from kassay.solver.greedy_placements import keep_owned
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.minimum_makespan import (
    MakespanSearch,
    SubsetFilling,
    cover_fractionally,
    generate_columns,
    list_patterns,
    makespan_lower_bound,
    refill,
)
from kassay.solver.problem import build_problem
from kassay.solver.search.load_searches import balance_loads
from tests.notation import even_group
from tests.tiers import short_and_long

INSTANCES = Path(__file__).parents[3] / "shared" / "fixtures" / "weighted"
needs_instances = pytest.mark.skipif(
    not INSTANCES.is_dir(), reason="needs ../shared/fixtures/weighted"
)


def optimal_makespan(weights: list[int], members: int) -> int:
    """Return the minimum makespan, by comparing all assignments."""
    rows = product(range(members), repeat=len(weights))
    return min(
        max(sum(w for w, at in zip(weights, row, strict=True) if at == m) for m in range(members))
        for row in rows
    )


def clock(seconds: float = 20.0) -> SearchBudget:
    return SearchBudget(seconds)


def in_turn(weights: list[int], members: int) -> list[list[int]]:
    """Give the weights to the members in turn, heaviest first."""
    descending = sorted(weights, reverse=True)
    return [descending[member::members] for member in range(members)]


def classes(weights: list[int]) -> Counter[int]:
    return Counter(sorted(weights, reverse=True))


def run(weights: list[int], members: int, seconds: float = 20.0) -> MakespanSearch:
    search = MakespanSearch(in_turn(weights, members), np.random.default_rng(0))
    search.run(clock(seconds))
    packed = sorted(weight for own in search.packing for weight in own)
    assert packed == sorted(weights)
    assert len(search.packing) == members
    return search


@pytest.mark.parametrize("largest", [4, 30, 1000, 2**62])
def test_small_instances_agree_with_brute_force(largest):
    rng = random.Random(largest)
    for _ in range(25):
        members = rng.randint(1, 4)
        weights = [rng.randint(0, largest) for _ in range(rng.randint(1, 7))]
        optimum = optimal_makespan(weights, members)
        assert makespan_lower_bound(sorted(weights, reverse=True), members) <= optimum
        search = run(weights, members)
        assert (search.bound, search.makespan) == (optimum, optimum)


def test_members_with_even_weights_only_have_even_loads():
    assert run([3, *[2] * 12], 4).bound == 8  # the mean is 6.75
    assert run([3, 3, 3, *[2] * 9], 4).bound == 7
    assert run([*[8] * 11, 5, 5], 4).bound == 26  # only one member can have 25


def test_a_perfect_packing_of_hidden_triples_is_found():
    rng = random.Random(4)
    weights = []
    for _ in range(12):
        one, two = rng.randint(250, 400), rng.randint(250, 400)
        weights += [one, two, 1000 - one - two]
    search = run(weights, 12)
    assert (search.bound, search.makespan) == (1000, 1000)


@pytest.mark.long
def test_two_or_three_weights_per_member_are_proven():
    rng = random.Random(1)
    weights = [round(rng.gauss(576, 144)) for _ in range(144)]
    search = run(weights, 64, seconds=20)
    assert (search.bound, search.makespan) == (1318, 1318)


def proven_instances() -> dict[str, int]:
    if not INSTANCES.is_dir():
        return {}
    facts = json.loads((INSTANCES / "optima.json").read_text())
    return {name: fact["optimum"] for name, fact in facts.items() if "optimum" in fact}


@needs_instances
@pytest.mark.parametrize("name", proven_instances())
def test_instances_of_identical_machines_are_proven(name):
    members, jobs, *lengths = map(int, (INSTANCES / name).read_text().split())
    search = run(lengths[:jobs], members)
    assert (search.bound, search.makespan) == (proven_instances()[name],) * 2


@pytest.mark.parametrize("partitions", [15, 27])
def test_groups_of_identical_members_are_proven(partitions):
    rng = random.Random(partitions)
    weights = [rng.randint(50, 100) for _ in range(partitions)]
    group = even_group(weights, 10, [0] * partitions)
    levels = [Imbalance("makespan"), Movement()]
    solution = solve(group, levels=levels, limits=SearchLimits(work=10))
    assert solution.imbalance.is_proven


def test_the_local_search_leaves_most_of_the_work_to_the_packing():
    rng = random.Random(0)
    weights = [rng.randint(2**40, 2**41) for _ in range(60)]
    problem = build_problem(even_group(weights, 20, [at % 20 for at in range(60)]))
    level = Imbalance("makespan")
    pool = IncumbentPool(problem, (level,), (), [keep_owned(problem)])
    budget = SearchBudget.start(SearchLimits(work=2))
    balance_loads(pool, level, budget)
    assert budget.left > 1.7


@pytest.mark.parametrize(("number", "often"), short_and_long((20, 10), (40, 20)))
@pytest.mark.parametrize("largest", [6, 30, 2**61])
def test_prices_exclude_only_capacities_below_the_optimum(largest, number, often):
    rng = random.Random(largest)
    excluded = 0
    for _ in range(number):
        members = rng.randint(2, 3)
        weights = [rng.randint(largest // 3, largest) for _ in range(rng.randint(4, 7))]
        optimum = optimal_makespan(weights, members)
        for capacity in (optimum - 1, optimum):
            cover = cover_fractionally(classes(weights), members, capacity, clock())
            assert not cover.is_refuted or capacity < optimum
            excluded += cover.is_refuted
    assert excluded >= often


def test_the_bound_of_one_component_is_not_rounded_to_the_sums_of_another():
    search = MakespanSearch([[10, 10], [7, 7]], np.random.default_rng(0))
    search.bound = 18  # of another component
    search._raise_bound(clock())
    assert search.bound == 18


def test_the_bound_counts_members_that_share_most_of_the_first_weights():
    # Nine weights on four members: one member has three of them.
    assert makespan_lower_bound([5] * 9, 4) == 15


def test_patterns_are_maximal_and_within_the_limits():
    assert sorted(list_patterns(classes([5, 5, 3, 2]), 7, 8, clock())) == [(0, 1), (0, 2)]
    assert list_patterns(classes(range(1, 60)), 0, 200, clock(0.1)) is None


def test_prices_of_many_equal_weights_do_not_overflow():
    for size, is_refuted in ((1_500_000, True), (2**23, False)):
        cover = generate_columns(csr_matrix([[size]]), [3_000_001], 2, clock())
        assert cover.is_refuted == is_refuted


def hidden_packing(members: int, load: int, each: int, seed: int) -> list[int]:
    """Cut members' loads at random places; return the weights in descending order."""
    rng = random.Random(seed)
    weights = []
    for _ in range(members):
        cuts = sorted(rng.sample(range(1, load), each - 1))
        weights += [end - start for start, end in pairwise([0, *cuts, load])]
    return sorted(weights, reverse=True)


def filling(capacity: int, work: float = 1_000) -> SubsetFilling:
    return SubsetFilling(capacity, clock(work), random.Random(0))


def test_many_weights_fill_all_members_exactly():
    packing = filling(3_000).fill(hidden_packing(100, 3_000, 6, 1), 100)
    assert {sum(own) for own in packing} == {3_000}


@pytest.mark.parametrize("unit", [1, 2**40])
def test_each_weight_is_given_to_one_member(unit):
    weights = [one * unit for one in (5, 3, 3, 2, 2, 2, 1)]
    packing = filling(6 * unit).fill(weights, 3)
    assert len(packing) == 3
    assert sorted((weight for own in packing for weight in own), reverse=True) == weights


def test_filling_ends_without_a_result_if_no_work_is_left():
    assert filling(3, work=0).fill([3, 2, 1], 3) is None


def test_refills_find_a_hidden_packing():
    weights = hidden_packing(20, 3_000, 3, 2)
    packing = refill(in_turn(weights, 20), filling(3_000), 10**9)
    assert {sum(own) for own in packing} == {3_000}
    assert sorted((weight for own in packing for weight in own), reverse=True) == weights


def test_refills_end_if_too_many_attempts_fail():
    assert sorted(refill([[5], [1]], filling(4), 10)) == [[1], [5]]


@pytest.mark.parametrize("each", [2, 4, 6])
def test_packings_without_free_capacity_are_found(each):
    search = run(hidden_packing(30, 2_000, each, each), 30, seconds=60)
    assert search.makespan == search.bound == 2_000
