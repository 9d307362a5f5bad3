from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kassay import Group
from kassay.reference.model.assignment import movement, violations
from kassay.reference.model.load_metrics import Measure, imbalance
from kassay.solver.constraints import MaxMoves, Pinned
from kassay.solver.frontier import frontier
from kassay.solver.limits import SearchLimits
from tests import brute_force
from tests.notation import changed, even_group
from tests.solver.random_cases import half_subscriptions
from tests.strategies import groups


def crowded(partitions: int, *, capacity: int | None = None, weight: int = 1) -> Group:
    """Return a group of three members, the first of which owns all partitions."""
    group = even_group([weight] * partitions, 3, [0] * partitions)
    return changed(group, **{one.id: {"capacity": capacity} for one in group.members})


def values(found) -> list[tuple[int, int]]:
    return [(point.movement.value, point.imbalance.value) for point in found.points]


@given(group=groups())
def test_frontier_points_with_equal_weights_equal_brute_force(group: Group):
    found = frontier(group)
    assert values(found) == brute_force.frontier(group)
    assert found.complete


@given(
    group=groups(weighted=True), measure=st.sampled_from(["sum_of_squares", "makespan", "spread"])
)
def test_frontier_points_of_weighted_groups_equal_brute_force(group: Group, measure: str):
    found = frontier(group, measure=measure)
    assert values(found) == brute_force.frontier(group, measure)
    assert found.complete


@given(group=groups(messy=True))
@settings(deadline=None, max_examples=20)
def test_assignments_are_valid_and_have_the_values_of_their_points(group: Group):
    for point in frontier(group).points:
        assert list(violations(group, point.assignment)) == []
        assert movement(group, point.assignment) == point.movement.value
        assert imbalance(group, point.assignment) == point.imbalance.value


@given(group=groups(weighted=True))
@settings(deadline=None, max_examples=20)
def test_a_time_limit_of_zero_leaves_valid_points(group: Group):
    found = frontier(group, measure="makespan", limits=SearchLimits(time=0.0))
    truth = brute_force.frontier(group, "makespan")
    assert found.points
    if found.complete:
        assert values(found) == truth
    for point in found.points:
        reachable = [least for moves, least in truth if moves <= point.movement.value]
        assert point.imbalance.bound <= min(reachable) <= point.imbalance.value


def test_points_of_a_larger_group_agree_with_cp_sat():
    for seed in range(4):
        group = half_subscriptions(6, 4, 5, seed)
        topics = tuple(replace(topic, weights=(3,) * 4) for topic in group.topics)
        group = replace(group, topics=topics)
        # A rule that always holds leaves the flows out.
        slow = frontier(
            group,
            measure="sum_of_squares",
            constraints=[MaxMoves(24)],
            limits=SearchLimits(time=300),
        )
        fast = frontier(group, measure="sum_of_squares")
        assert values(fast) == values(slow)
        assert fast.complete
        assert slow.complete


def test_a_limit_on_points_gives_an_incomplete_frontier():
    found = frontier(crowded(12), max_points=3)
    assert [moves for moves, _ in values(found)] == [0, 3, 8]
    assert not found.complete
    assert set(values(found)) <= set(brute_force.frontier(crowded(12)))
    assert frontier(crowded(6), max_points=99) == frontier(crowded(6))


def test_capacities_below_any_partition_give_the_conflict_and_no_points():
    found = frontier(crowded(3, capacity=0))
    assert found.points == ()
    assert found.complete
    assert found.conflict


def test_capacities_and_pins_exclude_points():
    assert [moves for moves, _ in values(frontier(crowded(6, capacity=3)))] == [3, 4]
    found = frontier(crowded(3), constraints=[Pinned("t", 0, "c1")])
    assert values(found) == [(1, 5), (2, 3)]


def test_a_group_without_partitions_has_one_point_at_the_origin():
    found = frontier(Group(topics=(), members=()))
    assert (values(found), found.complete) == ([(0, 0)], True)


def test_frontier_points_with_huge_weights_are_exact():
    group = crowded(3, weight=2**62)
    found = frontier(group, measure=Measure.SUM_OF_SQUARES)
    assert set(values(found)) <= set(brute_force.frontier(group))


def test_fewer_than_two_points_are_rejected():
    with pytest.raises(ValueError, match="max_points must be at least 2, got 1"):
        frontier(crowded(3), max_points=1)
