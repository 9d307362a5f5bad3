"""Bounds on the imbalance of weighted groups with different subscriptions, by counting."""

import random
from dataclasses import replace
from itertools import combinations

import pytest

from kassay import Group, Imbalance, Member, Movement, Topic, solve
from kassay.reference.model.load_metrics import Measure
from kassay.solver.counting_bounds import even_loads, imbalance_bound, most_even_loads
from kassay.solver.evaluation import imbalance_of
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import Problem, build_problem
from tests import brute_force
from tests.notation import group as small_group
from tests.solver.random_cases import random_group, value_of


def busy_topic(partitions: int) -> Group:
    """Return a group in which two of six members can receive the partitions of a busy topic."""
    rng = random.Random(5)
    sizes = {"busy": 10_000, "quiet": 100}
    topics = (
        Topic(name, partitions, weights=[rng.randint(1, most) for _ in range(partitions)])
        for name, most in sizes.items()
    )
    quiet = dict.fromkeys(("m2", "m3", "m4", "m5"), "quiet")
    group = small_group("", m0="busy", m1="busy quiet", **quiet)
    return replace(group, topics=tuple(topics))


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_at_most_the_minimum_of_every_measure(seed):
    rng = random.Random(seed)
    for _ in range(15):
        group = random_group(rng, weighted=True, most=(4, 3, 6))
        placements = list(brute_force.every_placement(group))
        if not brute_force.partitions_to_place(group):
            continue
        for measure in Measure:
            best = min(map(value_of(group, Imbalance(measure)), placements))
            assert imbalance_bound(build_problem(group), measure) <= best


def closed_weight(problem: Problem, members: tuple[int, ...]) -> int:
    """Return the weight of the partitions that only these members can receive."""
    return sum(
        weight
        for weight, at in zip(problem.weight.tolist(), problem.consumer_set.tolist(), strict=True)
        if set(problem.consumer_sets[at].tolist()) <= set(members)
    )


@pytest.mark.parametrize("seed", range(30))
def test_the_greatest_loads_add_up_to_the_closed_weight_of_every_set_of_members(seed):
    rng = random.Random(seed)
    names = [f"t{at}" for at in range(8)]
    topics = tuple(
        Topic(one, 2, weights=(rng.randint(1, 900), rng.randint(1, 90))) for one in names
    )
    members = (Member(f"m{at}", rng.sample(names, rng.randint(1, 3))) for at in range(7))
    problem = build_problem(Group(topics, tuple(members)))
    loads = sorted(most_even_loads(problem), reverse=True)
    assert sum(loads) == problem.total
    for size in range(1, problem.member_count + 1):
        for members in combinations(range(problem.member_count), size):
            assert sum(loads[:size]) >= closed_weight(problem, members)


def chained_topics() -> Group:
    """Return a group in which no topic, but three topics together, have few consumers."""
    topics = "t0:7,5,3,2 t1:7,5,3,2 t2:7,5,3,2 quiet:7,5,3,2"
    members = {"m0": "t0 t2", "m1": "t0 t1", "m2": "t1 t2 quiet", "m3": "quiet", "m4": "quiet"}
    return small_group(topics, **members)


@pytest.mark.parametrize("group", [busy_topic(40), chained_topics()], ids=["busy", "chained"])
@pytest.mark.parametrize("measure", Measure)
def test_counting_exceeds_the_bound_of_even_loads(group, measure):
    problem = build_problem(group)
    even = even_loads(problem.total, problem.member_count)
    assert imbalance_bound(problem, measure) > imbalance_of(measure, even)


@pytest.mark.parametrize("measure", ["sum_of_squares", "leximax"])
def test_the_imbalance_of_a_large_group_with_a_busy_topic_is_proven_by_counting(measure):
    group = busy_topic(500)
    levels = [Imbalance(measure), Movement()]
    solution = solve(group, levels=levels, limits=SearchLimits(time=1))
    assert solution.imbalance.gap <= solution.imbalance.value // 1_000
    assert solution.imbalance.origin == "counting"


@pytest.mark.parametrize(("measure", "share"), [("sum_of_squares", 50_000), ("leximax", 500)])
def test_different_subscriptions_are_balanced_nearly_to_the_bound(measure, share):
    rng = random.Random(0)
    names = [f"t{at}" for at in range(10)]
    topics = tuple(
        Topic(name, 10, weights=[int(rng.lognormvariate(6, 1)) + 1 for _ in range(10)])
        for name in names
    )
    members = tuple(Member(f"m{at}", sorted(rng.sample(names, 5))) for at in range(10))
    limits = SearchLimits(work=20)
    solution = solve(Group(topics, members), levels=[Imbalance(measure)], limits=limits)
    assert solution.imbalance.gap <= solution.imbalance.bound // share
