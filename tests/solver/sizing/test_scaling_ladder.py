"""Scaling ladders compared with brute force over all numbers of members."""

import random
from dataclasses import replace

import pytest

from kassay.reference import Group, Member, Topic
from kassay.reference.model.errors import UsageError
from kassay.solver.limits import SearchLimits
from kassay.solver.sizing.scaling_ladder import scaling_ladder
from tests.brute_force import partitions_to_place, reachable
from tests.log_normal_groups import log_normal_group
from tests.random_groups import random_group


def weighted(group: Group, seed: int) -> Group:
    draw = random.Random(seed)
    topics = (
        replace(topic, weights=tuple(draw.randint(0, 9) for _ in range(topic.partitions)))
        for topic in group.topics
    )
    return replace(group, topics=tuple(topics))


def brute_force_makespan(group: Group, number: int) -> int | None:
    """Return the minimum maximum load with a number of members; None if a topic has none."""
    consumed = tuple(topic for topic, members in group.subscribers().items() if members)
    members = group.members[:number] + tuple(
        Member(id=f"added-{index}", subscription=consumed)
        for index in range(number - len(group.members))
    )
    changed = replace(group, members=members)
    if set(partitions_to_place(changed)) != set(partitions_to_place(group)):
        return None
    return min(max(loads, default=0) for loads in reachable(changed))


@pytest.mark.parametrize("is_weighted", [False, True], ids=["equal", "weighted"])
def test_the_rungs_are_the_numbers_that_lower_the_makespan(is_weighted):
    steps = 0
    for seed in range(60):
        group = weighted(random_group(seed), seed) if is_weighted else random_group(seed)
        last = max(len(group.members), len(partitions_to_place(group)))
        expected, lowest = [], None
        for number in range(1, last + 1):
            makespan = brute_force_makespan(group, number)
            if makespan is not None and (lowest is None or makespan < lowest):
                expected.append((number, makespan))
                lowest = makespan
        ladder = scaling_ladder(group)
        assert [(rung.members, rung.makespan.value) for rung in ladder.rungs] == expected
        assert all(rung.is_proven and rung.makespan.is_proven for rung in ladder.rungs)
        steps += len(expected)
    assert steps > 120


def test_a_group_with_equal_subscriptions_has_the_rungs_of_the_rounded_quotient():
    members = tuple(Member(id=f"c{n}", subscription=("t", "u")) for n in range(7))
    topics = (Topic(name="t", partitions=100), Topic(name="u", partitions=26))
    ladder = scaling_ladder(Group(topics=topics, members=members))
    loads = [-(-126 // number) for number in range(1, 127)]
    expected = [n for n in range(1, 127) if n == 1 or loads[n - 1] < loads[n - 2]]
    assert [rung.members for rung in ladder.rungs] == expected
    assert [rung.last + 1 for rung in ladder.rungs[:-1]] == expected[1:]


def test_moves_count_from_the_current_owners_and_from_the_rung_before():
    owned = {"a": [("t", n) for n in range(4)], "b": [("t", 4), ("t", 5)]}
    members = tuple(Member(id=m, subscription=("t",), owned=owned[m], generation=1) for m in "ab")
    ladder = scaling_ladder(Group(topics=(Topic(name="t", partitions=6),), members=members))
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


def test_a_time_limit_leaves_rungs_without_proof():
    group = log_normal_group(60, 8)
    ladder = scaling_ladder(group, first=6, last=10, limits=SearchLimits(time=0))
    assert not all(rung.is_proven for rung in ladder.rungs)
    assert all(rung.makespan.bound <= rung.makespan.value for rung in ladder.rungs)


def test_a_range_without_a_number_is_a_usage_error():
    with pytest.raises(UsageError, match="first must be from 1 to last"):
        scaling_ladder(random_group(1), first=3, last=2)
