"""The shapes of Kafka's benchmark, and the misses of Kafka's assignors on them."""

from collections import Counter
from functools import partial

import pytest

from kassay.experiments.comparison.compare import Comparer
from kassay.experiments.comparison.optimum import solve_optimum
from kassay.experiments.implementations.runner import run_until_stable
from kassay.experiments.study.families.fixed_groups import (
    JMH,
    JMH_SMALL,
    WINDOWS_SMALL,
    BenchmarkFamily,
    WindowFamily,
)
from kassay.reference.model.ownership import ownership

ASSIGNORS = ("sticky", "cooperative-sticky", "uniform")


@pytest.mark.parametrize("kind", [BenchmarkFamily, partial(WindowFamily, deal="test")])
def test_the_grid_has_every_point_once(kind):
    family = kind(name="test", members=(4, 6), partitions_per_member=(5,), topics=(2, 5))
    assert family.size == len(set(family.points)) == 16
    for seed, (members, each, topics, mixed, incremental) in enumerate(family.points):
        group = family.build(seed)
        assert (len(group.members), len(group.topics)) == (members, topics)
        assert group.partition_count == members * each // topics * topics
        assert (len({m.subscription for m in group.members}) > 1) == mixed
        newcomers = [m for m in group.members if m.generation == -1]
        assert len(newcomers) == (1 if incremental else members)


def test_buckets_of_the_benchmark_are_disjoint_and_the_past_is_that_of_the_assignor():
    for seed, point in enumerate(JMH_SMALL.points):
        group = JMH_SMALL.build(seed, start="uniform")
        buckets = Counter(member.subscription for member in group.members)
        assert len(buckets) == (5 if point.mixed else 1)
        assert len({topic for own in buckets for topic in own}) == sum(map(len, buckets))
        # All partitions of buckets with an old member are owned.
        owned = ownership(group).owned_count
        assert owned == (group.partition_count if point.incremental else 0)
        assert group.id == f"jmh-small/{seed}@uniform"


def test_points_without_partitions_are_not_in_the_benchmark():
    assert all(point.partitions_per_topic > 0 for point in JMH.points)
    assert {point.members for point in JMH.points} == {100, 500, 1_000, 5_000, 10_000}


def misses(family, assignor):
    """Return the numbers of misses and groups, with mixed subscriptions."""
    found = []
    for seed, point in enumerate(family.points):
        if point.mixed:
            group = family.build(seed, start=assignor if family.own_history else None)
            comparer = Comparer(group, solve_optimum(group))
            result = run_until_stable(group, assignor)
            found.append(comparer.compare(assignor, result, with_moves=False))
    assert all(comparison.proven for comparison in found)
    return sum(not comparison.least_imbalance for comparison in found), len(found)


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_no_assignor_misses_the_minimum_on_the_shapes_of_the_benchmark(assignor):
    assert misses(JMH_SMALL, assignor) == (0, 24)


def test_uniform_misses_the_minimum_on_sliding_windows():
    assert misses(WINDOWS_SMALL, "uniform") == (7, 24)
