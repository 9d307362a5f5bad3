"""Minimum makespan of identical members: bounds, heuristics and exact packing."""

import json
import random
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from kassay.solver import Imbalance, Movement, solve
from kassay.solver.certificate.documents import certificate_document
from kassay.solver.identical_members.load_patterns import PatternSearch, WeightClasses
from kassay.solver.identical_members.lower_bounds import (
    makespan_lower_bound,
    next_reachable_load,
    shared_weights_bound,
)
from kassay.solver.identical_members.makespan_search import MakespanSearch
from kassay.solver.identical_members.packing_heuristics import best_fit, makespan_of
from kassay.solver.identical_members.pattern_packing import Answer, PatternPacking
from kassay.solver.identical_members.repacking import partition_within
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.lexicographic.load_searches import balance_loads
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.problem import build_problem
from tests.solver.test_weighted import even_group
from tests.tiers import short_and_long

INSTANCES = Path(__file__).parents[4] / "shared" / "fixtures" / "weighted"
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


def run(weights: list[int], members: int, seconds: float = 20.0) -> MakespanSearch:
    search = MakespanSearch(sorted(weights, reverse=True), members, np.random.default_rng(0))
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


def test_the_bound_counts_members_that_share_most_of_the_first_weights():
    # Nine weights on four members: one member has three of them.
    assert shared_weights_bound([5] * 9, 4).bound == 15


def test_members_with_even_weights_only_have_even_loads():
    assert makespan_lower_bound([3, *[2] * 12], 4) == 8  # the mean is 6.75
    assert makespan_lower_bound([3, 3, 3, *[2] * 9], 4) == 7
    assert makespan_lower_bound([*[8] * 11, 5, 5], 4) == 26  # only one member can have 25
    for seed in range(30):
        rng = random.Random(seed)
        weights = [rng.choice((2, 2, 2, 4, 6, 3, 5)) for _ in range(7)]
        bound = makespan_lower_bound(sorted(weights, reverse=True), 3)
        assert bound <= optimal_makespan(weights, 3)


def test_a_load_below_the_next_sum_of_weights_is_not_possible():
    assert next_reachable_load([10, 7, 7], 15) == 17
    assert next_reachable_load([2**40, 2**40], 15) == 15


def test_patterns_are_maximal_and_within_the_limits():
    patterns = PatternSearch(WeightClasses.of([5, 5, 3, 2]), 7, 8, 100, clock()).list_patterns()
    assert sorted(patterns) == [(0, 1), (0, 2)]
    assert (
        PatternSearch(WeightClasses.of(range(1, 40)), 0, 99, 100, clock()).list_patterns() is None
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_number_of_sets_of_weights_within_a_range_of_loads_is_counted(seed):
    rng = random.Random(seed)
    weights = [rng.randint(1, 6) for _ in range(8)]
    sets = {tuple(sorted(found)) for k in range(9) for found in combinations(weights, k)}
    expected = sum(5 <= sum(one) <= 11 for one in sets)
    assert WeightClasses.of(weights).count_sets(5, 11) == expected


def test_best_fit_fails_if_a_weight_exceeds_the_capacity():
    assert best_fit([5, 3], 2, 4) is None
    assert makespan_of(best_fit([5, 3, 2], 2, 5)) == 5


def test_weights_of_few_members_are_partitioned_within_a_capacity():
    rng = np.random.default_rng(1)
    packing = partition_within([8, 7, 6, 5, 4, 3, 2, 1], 3, 12, rng, clock())
    assert [sum(own) for own in packing] == [12, 12, 12]
    assert partition_within([8, 8, 8, 1], 3, 8, rng, clock()) is None


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
    assert (search.bound, search.makespan, search.is_bound_by_highs) == (1318, 1318, False)


@pytest.mark.parametrize(("number", "often"), short_and_long((15, 5), (30, 10)))
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_dive_packs_each_weight_once_within_the_capacity(noise, number, often):
    rng = random.Random(6)
    packed = 0
    for _ in range(number):
        weights = [rng.randint(20, 60) for _ in range(rng.randint(6, 24))]
        members = max(2, len(weights) // 3)
        capacity = -(-sum(weights) // members) + rng.randint(0, 4)
        problem = PatternPacking.within(WeightClasses.of(weights), members, capacity, 9999, clock())
        packing = problem.dive(capacity, clock(), np.random.default_rng(0), noise)
        if packing is not None:
            packed += 1
            assert sorted(weight for own in packing for weight in own) == sorted(weights)
            assert len(packing) <= members
            assert makespan_of(packing) <= capacity
    assert packed > often


@pytest.mark.parametrize(("number", "often"), short_and_long((20, 2), (40, 5)))
def test_prices_exclude_no_pattern_of_a_cover(number, often):
    rng = random.Random(8)
    excluded = 0
    for _ in range(number):
        members = rng.randint(2, 3)
        weights = [rng.randint(10, 30) for _ in range(rng.randint(5, 7))]
        capacity = optimal_makespan(weights, members)
        problem = PatternPacking.within(WeightClasses.of(weights), members, capacity, 9999, clock())
        assert problem.relaxation(clock()) is Answer.UNKNOWN
        useful = problem.cover.useful(members)
        excluded += not useful.all()
        kept = [
            pattern for pattern, is_kept in zip(problem.patterns, useful, strict=True) if is_kept
        ]
        answer, _ = PatternPacking(problem.classes, members, kept).pack(clock())
        assert answer is Answer.YES
    assert excluded > often


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
            packing = PatternPacking.within(
                WeightClasses.of(weights), members, capacity, 10_000, clock()
            )
            answer = packing.relaxation(clock())
            assert answer is Answer.UNKNOWN or capacity < optimum
            excluded += answer is Answer.NO
    assert excluded >= often


@pytest.mark.long
def test_prices_of_many_equal_weights_do_not_overflow():
    classes = WeightClasses.of([1] * 3_000_001)
    packing = PatternPacking(classes, 2, [(0,) * 1_500_000])
    assert packing.relaxation(clock()) is Answer.NO
    assert PatternPacking(classes, 2, [(0,) * 2**23]).relaxation(clock()) is Answer.UNKNOWN


@pytest.mark.long
def test_a_bound_that_only_highs_proves_is_marked(monkeypatch):
    group = even_group([12, 11, 11, 11, 11, 10, 9, 8, 7, 7, 7, 3], 4)
    levels = [Imbalance("makespan"), Movement()]
    limits = SearchLimits(time=10)
    assert solve(group, levels=levels, limits=limits).imbalance.proof != "proven by HiGHS"
    monkeypatch.setattr(PatternPacking, "relaxation", lambda *_: Answer.UNKNOWN)
    solution = solve(group, levels=levels, limits=limits)
    assert solution.imbalance.proof == "proven by HiGHS"
    assert '"highs"' in json.dumps(certificate_document(solution.certificate))


def test_the_bound_of_one_component_is_not_rounded_to_the_sums_of_another():
    search = MakespanSearch([10, 10, 7, 7], 2, np.random.default_rng(0))
    search.bound = 18  # of another component
    search.packing = [[10, 10], [7, 7]]
    search._raise_bound(clock())
    assert search.bound == 18
