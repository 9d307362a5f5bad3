"""Filling of identical members by subsets of weights."""

import random
from itertools import pairwise
from math import inf

import numpy as np
import pytest

from kassay.solver.identical_members.makespan_search import MakespanSearch
from kassay.solver.identical_members.subset_filling import Refilling, fill, may_fill
from kassay.solver.limits import SearchBudget


def hidden_packing(members: int, load: int, each: int, seed: int) -> list[int]:
    """Cut members' loads at random places; return the weights in descending order."""
    rng = random.Random(seed)
    weights = []
    for _ in range(members):
        cuts = sorted(rng.sample(range(1, load), each - 1))
        weights += [end - start for start, end in zip([0, *cuts], [*cuts, load], strict=True)]
    return sorted(weights, reverse=True)


def clock(seconds: float = inf) -> SearchBudget:
    return SearchBudget(seconds)


def test_many_weights_fill_all_members_exactly():
    packing = fill(hidden_packing(100, 3_000, 6, 1), 100, 3_000, clock())
    assert {sum(own) for own in packing} == {3_000}


@pytest.mark.parametrize("weights", [[7, 5, 0, 0], [9], [], [3, 3, 3, 3, 2, 0]])
def test_each_weight_is_given_to_one_member(weights):
    packing = fill(weights, 3, 6, clock())
    assert len(packing) == 3
    assert sorted((weight for own in packing for weight in own), reverse=True) == weights


def test_filling_ends_without_a_result_if_the_time_is_up():
    assert fill([3, 2, 1], 3, 3, clock(0)) is None


def test_refills_find_a_hidden_packing():
    weights = hidden_packing(20, 3_000, 3, 2)
    start = fill(weights, 20, 3_000, clock())
    search = Refilling(start, 3_000, random.Random(0))
    assert search.overload > 0
    search.run(clock(1_000), 10**9)
    assert search.overload == 0
    assert {sum(own) for own in search.packing} == {3_000}
    assert sorted((weight for own in search.packing for weight in own), reverse=True) == weights


def test_refills_of_at_least_eight_members_find_a_packing_with_different_numbers_of_weights():
    rng = random.Random(0)
    cuts = [[0, 3_000] for _ in range(40)]
    for _ in range(60):
        cuts[rng.randrange(40)].append(rng.randrange(1, 3_000))
    ends = [sorted(points) for points in cuts]
    weights = [end - start for each in ends for start, end in pairwise(each)]
    start = fill(sorted(weights, reverse=True), 40, 3_001, clock())
    search = Refilling(start, 3_001, random.Random(0), smallest=8)
    search.run(clock(1_000), 3_000)
    assert search.overload == 0


def test_refills_end_if_too_many_attempts_fail():
    search = Refilling([[5], [1]], 4, random.Random(0))
    search.run(clock(), 10)
    assert search.overload == 1


def test_great_capacities_are_not_filled():
    assert not may_fill([1, 1], 2**40)
    assert not may_fill([1] * 10_000, 500_000)


@pytest.mark.parametrize("each", [2, 4, 6])
def test_packings_without_free_capacity_are_found(each):
    search = MakespanSearch(hidden_packing(30, 2_000, each, each), 30, np.random.default_rng(0))
    search.run(clock(60))
    assert search.makespan == search.bound == 2_000
