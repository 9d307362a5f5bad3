"""Loads by number of members compared with brute force."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kassay import Assignment, Group, InputError, Member, Topic
from kassay.solver.capacity_planning import (
    Resizing,
    load_by_member_count,
    members_needed,
    with_valid_ownership,
)
from kassay.solver.limits import SearchLimits
from tests import brute_force
from tests.log_normal_groups import log_normal_group
from tests.strategies import groups


def team(partitions: int, members: int, *, weights=None) -> Resizing:
    topic = Topic(name="t", partitions=partitions, weights=weights)
    names = (f"c{number}" for number in range(members))
    return Resizing.of(Group((topic,), tuple(Member(name, ("t",)) for name in names)))


def lowest_load(group: Group) -> int:
    return min(max(loads, default=0) for loads in brute_force.reachable(group))


def by_counting_up(resizing: Resizing, target: int) -> int | None:
    """Return the minimum number of members by brute force."""
    kept = brute_force.partitions_to_place(resizing.group)
    for number in range(len(resizing.group.members) + len(kept) + 1):
        then = resizing.resized(number)
        if brute_force.partitions_to_place(then) != kept:
            continue
        if lowest_load(then) <= target:
            return number
    return None


@pytest.mark.parametrize(
    ("options", "largest_target"), [({"max_total": 5}, 5), ({"max_total": 4, "weighted": True}, 12)]
)
@given(data=st.data())
@settings(deadline=None, max_examples=30)
def test_the_number_of_members_needed_equals_brute_force(options, largest_target, data):
    resizing = Resizing.of(data.draw(groups(max_members=3, **options)))
    target = data.draw(st.integers(0, largest_target))
    found = members_needed(resizing, makespan=target)
    truth = by_counting_up(resizing, target)
    assert (None if found.needed is None else found.needed.value) == truth
    assert found.needed is None or found.needed.is_proven
    assert bool(found.reason) == (truth is None)


@given(group=st.booleans().flatmap(lambda w: groups(max_members=3, max_total=5, weighted=w)))
@settings(deadline=None, max_examples=30)
def test_the_load_of_each_number_of_members_equals_brute_force(group: Group):
    resizing = Resizing.of(group)
    found = load_by_member_count(resizing, range(1, 6))
    for number, makespan in found.items():
        assert makespan.value == makespan.bound == lowest_load(resizing.resized(number))


@given(group=groups(messy=True))
def test_reducing_claims_to_valid_ones_changes_no_owner(group: Group):
    assert brute_force.owners(with_valid_ownership(group)) == brute_force.owners(group)


def test_loads_with_different_speeds_have_one_unit():
    topic = Topic("t", 6, weights=(9, 7, 5, 4, 2, 2))
    members = (Member("slow", ("t",), speed=2), Member("fast", ("t",), speed=6))
    resizing = Resizing.of(Group((topic,), members), like="slow")
    found = load_by_member_count(resizing, range(1, 5))
    # 29; 22 of 29 on the fast member, and 7 on the slow one; at most 9 * 3 on a slow one.
    assert [resizing.shown(found[number].value) for number in (1, 2)] == [87, 22]
    assert all(found[number].is_proven for number in found)
    assignment = Assignment({"fast": [("t", number) for number in range(6)]})
    assert resizing.max_load(resizing.group, assignment) == 29 * resizing.multiple // 6


def test_members_that_all_have_the_same_speed_count_partitions():
    members = tuple(Member(name, ("t",), speed=3) for name in "ab")
    resizing = Resizing.of(Group((Topic("t", 6),), members))
    found = load_by_member_count(resizing, (1, 2, 3))
    assert [resizing.shown(makespan.value) for makespan in found.values()] == [6, 3, 2]


def test_a_partition_heavier_than_the_target_is_the_reason():
    found = members_needed(team(3, 1, weights=(1, 9, 2)), makespan=8)
    assert (found.needed, found.reason) == (None, "t-1 alone has weight 9")


def test_a_topic_that_added_members_do_not_consume_is_the_reason():
    topics = (Topic(name="a", partitions=5), Topic(name="b", partitions=2))
    members = (Member(id="x", subscription=("a", "b")), Member(id="y", subscription=("b",)))
    resizing = Resizing.of(Group(topics=topics, members=members), like="y")
    found = members_needed(resizing, makespan=4)
    assert found.needed is None
    assert "added members do not consume" in found.reason


def test_a_group_size_that_leaves_a_topic_without_consumer_is_not_enough():
    topics = (Topic(name="a", partitions=1), Topic(name="b", partitions=1))
    members = (Member(id="x", subscription=("a",)), Member(id="y", subscription=("b",)))
    resizing = Resizing.of(Group(topics=topics, members=members))
    assert members_needed(resizing, makespan=9).needed.value == 2
    assert resizing.unserved(1) == ("b",)


def test_capacities_of_members_apply():
    group = team(10, 2).group
    small = replace(group.members[0], capacity=1)
    resizing = Resizing.of(replace(group, members=(small, replace(small, id="d"))), like="c0")
    assert members_needed(resizing, makespan=5).needed.value == 10
    assert load_by_member_count(resizing, (9, 10))[9] is None


def test_added_members_never_have_the_id_of_a_member():
    group = team(3, 1).group
    group = replace(group, members=(replace(group.members[0], id="new-1"),))
    grown = Resizing.of(group).resized(3)
    assert [member.id for member in grown.members] == ["new-1", "new-2", "new-3"]


def test_equal_partitions_of_many_members_are_counted_exactly():
    found = members_needed(team(1000, 3), makespan=7)
    assert found.needed.value == found.needed.bound == 143


@pytest.mark.parametrize("limits", [SearchLimits(time=0.0), SearchLimits(work=0.0)])
def test_limits_of_zero_leave_valid_bounds(limits):
    weights = tuple(range(50, 80))
    resizing = team(30, 2, weights=weights)
    found = members_needed(resizing, makespan=200, limits=limits)
    exact = -(-sum(weights) // 200)
    assert found.needed is None or found.needed.value >= found.needed.bound >= exact
    loads = load_by_member_count(resizing, range(2, 9), limits=limits)
    values = [loads[number].value for number in range(2, 9)]
    assert values == sorted(values, reverse=True)
    assert all(one.bound >= -(-sum(weights) // number) for number, one in loads.items())


@pytest.mark.parametrize("seed", range(4))
def test_the_number_of_members_of_weighted_groups_is_proven(seed):
    group = log_normal_group(partitions=100 + 30 * seed, members=12, seed=seed)
    weights = group.topics[0].weights
    target = max(*weights, sum(weights) * 103 // (100 * (8 + seed)))
    found = members_needed(Resizing.of(group), makespan=target)
    assert found.needed.is_proven
    assert (found.needed.value - 1) * target < sum(weights)


def test_a_negative_target_and_an_unknown_member_to_copy_are_rejected():
    with pytest.raises(ValueError, match="must be at least 0, got -1"):
        members_needed(team(1, 1), makespan=-1)
    with pytest.raises(InputError, match="no member 'z'"):
        Resizing.of(team(1, 1).group, like="z")
