import random
from collections.abc import Mapping
from math import lcm

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kassay.reference import Assignment, Group, Member, Topic
from kassay.solver.limits import SearchLimits
from kassay.solver.sizing import member_loss
from kassay.solver.solve import solve
from tests import brute_force
from tests.strategies import groups, valid_assignments


def by_trying(
    group: Group, placed: dict[tuple[str, int], str], factor: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return the minimum makespan after each loss, by enumeration.

    ``factor`` is the factor from loads to relative loads per participant, by default 1.
    """
    result = {}
    weight = brute_force.weights(group)
    for lost in brute_force.participants(group):
        states = {tuple(0 for m in group.members if m.id != lost)}
        names = [m.id for m in group.members if m.id != lost]
        factors = [factor.get(name, 0) if factor else 1 for name in names]
        for tp in brute_force.partitions_to_place(group):
            takers = [m.id for m in group.members if m.id != lost and tp[0] in m.subscription]
            if placed.get(tp, lost) != lost:
                takers = [placed[tp]]
            if takers:
                states = {
                    tuple(
                        load + weight[tp] * own * (name == taker)
                        for name, own, load in zip(names, factors, loads, strict=True)
                    )
                    for loads in states
                    for taker in takers
                }
        result[lost] = min(max(loads, default=0) for loads in states)
    return result


@given(data=st.data(), weighted=st.booleans())
def test_every_loss_agrees_with_brute_force(data: st.DataObject, weighted: bool):
    group = data.draw(groups(max_total=6, weighted=weighted))
    assignment = data.draw(valid_assignments(group))
    placed = {tuple(tp): member for member, tps in assignment.items() for tp in tps}
    found = member_loss(group, assignment)
    assert {loss.member: loss.makespan.value for loss in found.losses} == by_trying(group, placed)
    assert all(loss.makespan.is_proven for loss in found.losses)


@given(group=groups(max_total=6))
@settings(deadline=None, max_examples=25)
def test_the_current_owners_are_the_default_assignment(group: Group):
    found = member_loss(group)
    truth = by_trying(group, brute_force.owners(group))
    assert {loss.member: loss.makespan.value for loss in found.losses} == truth
    assert found.makespan.value == max(truth.values(), default=0)


def test_partitions_that_only_the_lost_member_consumes_are_unserved():
    topics = (Topic(name="a", partitions=3), Topic(name="b", partitions=1))
    members = (Member(id="x", subscription=("a",)), Member(id="y", subscription=("b",)))
    group = Group(topics=topics, members=members)
    found = member_loss(group, solve(group).assignment)
    assert [(loss.unserved, loss.makespan.value) for loss in found.losses] == [(3, 1), (1, 3)]
    assert found.worst.member == "y"


def test_loads_above_the_maximum_partition_weight_are_exact():
    huge = 2**63 - 1
    topics = (Topic(name="t", partitions=4, weights=(huge, huge, huge - 1, 5)),)
    members = (
        Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1), ("t", 2)]),
        Member(id="b", subscription=("t",), owned=[("t", 3)]),
    )
    found = member_loss(Group(topics=topics, members=members))
    assert found.makespan.value == 3 * huge - 1 + 5


def test_a_group_without_members_has_no_losses():
    found = member_loss(Group(topics=(), members=()))
    assert (found.losses, found.worst, found.makespan.value) == ((), None, 0)


def test_bounds_are_valid_without_time():
    weights = tuple(range(50, 80))
    members = tuple(Member(id=name, subscription=("t",)) for name in "abcd")
    group = Group(topics=(Topic(name="t", partitions=30, weights=weights),), members=members)
    found = member_loss(group, limits=SearchLimits(time=0.0))
    assert found.makespan.bound <= found.makespan.value
    assert found.makespan.value >= -(-sum(weights) // 3)


def test_an_invalid_assignment_is_rejected():
    group = Group(
        topics=(Topic(name="t", partitions=1),), members=(Member(id="a", subscription=("t",)),)
    )
    with pytest.raises(ValueError, match="not valid"):
        member_loss(group, Assignment({"a": []}))


@pytest.mark.parametrize("time", [0, 60])
@pytest.mark.parametrize("seed", range(40))
def test_losses_with_different_speeds_and_subscriptions_agree_with_brute_force(seed, time):
    draw = random.Random(seed)
    weights = [(1, 1), (1, 1, 1)] if seed % 2 else [(3, 0), (5, 8, 2)]
    topics = tuple(Topic(f"t{at}", len(own), weights=own) for at, own in enumerate(weights))
    members = tuple(
        Member(name, draw.choice([("t0",), ("t1",), ("t0", "t1")]), speed=draw.choice((1, 2, 7)))
        for name in "abc"
    )
    group = Group(topics, members)
    assignment = solve(group, limits=1).assignment
    placed = {tuple(tp): member for member, tps in assignment.items() for tp in tps}
    names = brute_force.participants(group)
    factor = {one.id: one.speed for one in group.members if one.id in names}
    factor = {name: lcm(*factor.values()) // speed for name, speed in factor.items()}
    found = member_loss(group, assignment, limits=SearchLimits(time=time))
    expected = by_trying(group, placed, factor)
    assert [loss.member for loss in found.losses] == list(expected)
    for loss in found.losses:
        assert loss.makespan.bound <= expected[loss.member] <= loss.makespan.value
        assert time == 0 or loss.makespan.is_proven
