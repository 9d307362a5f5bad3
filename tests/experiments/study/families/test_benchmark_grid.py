"""The shapes of Kafka's benchmark, and the misses of Kafka's assignors on them."""

import pytest

from kassay.experiments.comparison.compare import Comparer, solve_optimum
from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.study.families.all_families import FAMILIES
from kassay.experiments.study.families.finite_families import BenchmarkFamily, WindowFamily

ASSIGNORS = ("sticky", "cooperative-sticky", "uniform")


@pytest.mark.parametrize("kind", [BenchmarkFamily, WindowFamily])
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
    assert misses(FAMILIES["jmh-small"], assignor) == (0, 24)


def test_uniform_misses_the_minimum_on_sliding_windows():
    assert misses(FAMILIES["windows-small"], "uniform") == (7, 24)
