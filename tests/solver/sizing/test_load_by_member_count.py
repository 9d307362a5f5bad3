"""Scaling ladders compared with brute force over all numbers of members."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import lcm

import pytest

from kassay.reference import Assignment, Group, Member, Topic
from kassay.reference.model.errors import InputError, UsageError
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.sizing.load_by_member_count import _LadderSearch, load_by_member_count
from kassay.solver.sizing.members_needed import members_needed
from kassay.solver.sizing.resized_groups import resized, with_valid_ownership
from kassay.solver.sizing.size_search import MemberCount, SizeSearch
from kassay.solver.solution import LevelValue, Status
from kassay.solver.solve import solve
from tests.brute_force import participants, partitions_to_place, reachable
from tests.log_normal_groups import log_normal_group
from tests.random_groups import random_group
from tests.tiers import short_and_long


def weighted(group: Group, seed: int) -> Group:
    draw = random.Random(seed)
    topics = (
        replace(topic, weights=tuple(draw.randint(0, 9) for _ in range(topic.partitions)))
        for topic in group.topics
    )
    return replace(group, topics=tuple(topics))


@pytest.fixture(params=[False, True], ids=["equal", "weighted"])
def seeded_group(request) -> Callable[[int], Group]:
    """Return the random group of a seed, with equal weights or with weights from 0 to 9."""

    def build(seed: int) -> Group:
        group = random_group(seed)
        return weighted(group, seed) if request.param else group

    return build


def brute_force_makespan(group: Group, number: int) -> int | None:
    """Return the minimum maximum load with a number of members; None if a topic has none."""
    consumed = tuple(topic for topic, members in group.subscribers().items() if members)
    members = group.members[:number] + tuple(
        Member(id=f"added-{index}", subscription=consumed)
        for index in range(number - len(group.members))
    )
    changed = replace(group, members=members)
    return minimum_makespan(group, changed, multiple=1)


def minimum_makespan(group: Group, changed: Group, *, multiple: int) -> int | None:
    """Return the minimum of the maximum load divided by speed, times a multiple of the speeds."""
    speed = {member.id: member.speed for member in changed.members}
    speeds = [speed[member] for member in participants(changed)]
    assert not any(multiple % one for one in speeds)
    factors = [multiple // one for one in speeds]
    if set(partitions_to_place(changed)) != set(partitions_to_place(group)):
        return None
    return min(
        max((load * factor for load, factor in zip(loads, factors, strict=True)), default=0)
        for loads in reachable(changed)
    )


def falling(makespans: Iterable[tuple[int, int | None]]) -> list[tuple[int, int]]:
    """Return the numbers of members with a lower makespan than all numbers before, with it."""
    found: list[tuple[int, int]] = []
    for number, load in makespans:
        if load is not None and (not found or load < found[-1][1]):
            found.append((number, load))
    return found


@pytest.mark.parametrize(("number_of_groups", "many_steps"), short_and_long((4, 4), (60, 120)))
def test_the_rungs_are_the_numbers_that_lower_the_makespan(
    seeded_group, number_of_groups, many_steps
):
    steps = 0
    for seed in range(number_of_groups):
        group = seeded_group(seed)
        last = len(group.members) + len(partitions_to_place(group))
        expected = falling((n, brute_force_makespan(group, n)) for n in range(1, last + 1))
        ladder = load_by_member_count(group)
        assert [(rung.members, rung.makespan.value) for rung in ladder.rungs] == expected
        assert all(rung.is_proven and rung.makespan.is_proven for rung in ladder.rungs)
        steps += len(expected)
    assert steps > many_steps


@pytest.mark.parametrize(("number_of_groups", "many_steps"), short_and_long((25, 12), (80, 50)))
def test_the_rungs_of_members_with_different_speeds_agree_with_brute_force(
    seeded_group, number_of_groups, many_steps
):
    steps = 0
    for seed in range(number_of_groups):
        draw = random.Random(seed)
        group = seeded_group(seed)
        members = tuple(replace(one, speed=draw.choice((1, 2, 3))) for one in group.members)
        group, like = replace(group, members=members), draw.choice(members)
        if group.has_equal_speeds:
            continue
        multiple = lcm(like.speed, *(one.speed for one in members if one.id in participants(group)))
        last = len(members) + 2
        added = replace(like, owned=())
        sizes = ((n, resized(with_valid_ownership(group), n, added)) for n in range(1, last + 1))
        expected = falling(
            (n, minimum_makespan(group, changed, multiple=multiple)) for n, changed in sizes
        )
        ladder = load_by_member_count(group, last=last, like=like.id)
        assert [(rung.members, rung.makespan.value) for rung in ladder.rungs] == expected
        assert all(rung.is_proven for rung in ladder.rungs)
        for number, load in expected:
            if load:
                needed = members_needed(group, makespan=load, like=like.id).needed
                assert needed.value == needed.bound == number
        steps += len(expected)
    assert steps > many_steps


def test_members_of_different_speed_require_a_model_for_added_members():
    group = random_group(3)
    members = tuple(replace(one, speed=index + 1) for index, one in enumerate(group.members))
    with pytest.raises(InputError, match="speed of added members is not known; give --like"):
        load_by_member_count(replace(group, members=members))


def test_added_members_have_the_common_speed_of_the_members():
    members = tuple(Member(id=id, subscription=("t",), speed=3) for id in "ab")
    group = Group(topics=(Topic(name="t", partitions=8),), members=members)
    assert [rung.makespan.value for rung in load_by_member_count(group).rungs] == [8, 4, 3, 2, 1]


def test_a_group_with_equal_subscriptions_has_the_rungs_of_the_rounded_quotient():
    members = tuple(Member(id=f"c{n}", subscription=("t", "u")) for n in range(7))
    topics = (Topic(name="t", partitions=100), Topic(name="u", partitions=26))
    ladder = load_by_member_count(Group(topics=topics, members=members))
    loads = [-(-126 // number) for number in range(1, 127)]
    expected = [n for n in range(1, 127) if n == 1 or loads[n - 1] < loads[n - 2]]
    assert [rung.members for rung in ladder.rungs] == expected
    assert [rung.last + 1 for rung in ladder.rungs[:-1]] == expected[1:]


def test_moves_count_from_the_current_owners_and_from_the_rung_before():
    owned = {"a": [("t", n) for n in range(4)], "b": [("t", 4), ("t", 5)]}
    members = tuple(Member(id=m, subscription=("t",), owned=owned[m], generation=1) for m in "ab")
    ladder = load_by_member_count(Group(topics=(Topic(name="t", partitions=6),), members=members))
    moves = [
        (rung.members, rung.movement.value, rung.placed, rung.moves_from_previous)
        for rung in ladder.rungs
    ]
    assert [(n, moved, placed) for n, moved, placed, _ in moves] == [
        (1, 0, 2),
        (2, 1, 0),
        (3, 2, 0),
        (6, 4, 0),
    ]
    assert [step and step.value for *_, step in moves] == [None, 3, 2, 3]


def test_a_time_limit_leaves_makespans_without_proof():
    group = log_normal_group(60, 8)
    ladder = load_by_member_count(group, first=6, last=10, limits=SearchLimits(time=0))
    assert not all(rung.makespan.is_proven for rung in ladder.rungs)
    assert all(rung.movement is None for rung in ladder.rungs)
    assert all(rung.makespan.bound <= rung.makespan.value for rung in ladder.rungs)


def test_a_range_without_a_number_is_a_usage_error():
    with pytest.raises(UsageError, match="first must be from 1 to last"):
        load_by_member_count(random_group(1), first=3, last=2)


@pytest.mark.long
def test_a_ladder_without_moves_has_the_same_rungs():
    group = log_normal_group(12, 3)
    full = load_by_member_count(group, limits=600)
    short = load_by_member_count(group, limits=600, with_moves=False)
    for one, other in zip(full.rungs, short.rungs, strict=True):
        assert (one.members, one.last, one.makespan) == (other.members, other.last, other.makespan)
        assert one.movement is not None
        assert (other.movement, other.moves_from_previous) == (None, None)


@pytest.mark.parametrize("seed", range(40))
def test_ladders_within_capacities_agree_with_solutions_of_each_number(seed):
    draw = random.Random(seed)
    topics = (Topic("A", 1, weights=(draw.randint(1, 4),)), Topic("B", 3, weights=(1, 2, 3)))
    subscriptions = (("A",), ("B",), ("A", "B"))
    capacity = draw.choice((3, 4, 6))
    members = tuple(
        Member(name, draw.choice(subscriptions), capacity=draw.choice((capacity, capacity, None)))
        for name in "abcd"[: draw.randint(1, 4)]
    )
    group = Group(topics, members)
    found = load_by_member_count(group, limits=30)
    consumed = {name for name, consumers in group.subscribers().items() if consumers}
    useful = len(members) + sum(one.partitions for one in topics if one.name in consumed)
    added = Member("new", tuple(consumed))
    lowest, expected = None, []
    for number in range(1, useful + 1):
        one = resized(group, number, added)
        is_served = consumed == {name for name, consumers in one.subscribers().items() if consumers}
        solution = solve(one, levels=["makespan"], limits=30)
        if is_served and solution.status is Status.OPTIMAL:
            value = solution.imbalance.value
            if lowest is None or value < lowest:
                lowest = value
                expected.append((number, value))
    assert [(rung.members, rung.makespan.value) for rung in found.rungs] == expected
    assert all(rung.is_proven for rung in found.rungs)


def test_a_rung_is_not_proven_if_fewer_members_may_meet_the_shared_capacity():
    group = Group((Topic("t", 4, weights=(5, 5, 5, 5)),), ())
    search = SizeSearch(group, Member("new", ("t",)), None)
    undecided, met = LevelValue("makespan", 11, 10), LevelValue("makespan", 10, 10)
    none = Assignment({})
    search.lowest[1] = MemberCount(1, LevelValue("makespan", 20, 20), None, 1, (), False, none)
    search.lowest[2] = MemberCount(2, undecided, None, 1, (), None, none)
    search.lowest[3] = MemberCount(3, met, None, 1, (), True, none)
    ladder = _LadderSearch(search, SearchBudget.start(SearchLimits(time=0)), lambda _: None)
    (rung,) = ladder._rungs([3], 1, 3)
    assert (rung.members, rung.makespan.value, rung.is_proven) == (3, 10, False)
