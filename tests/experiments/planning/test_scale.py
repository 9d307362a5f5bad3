"""Loads by number of members, compared with runs of the assignors."""

import random

import pytest

import kassay
from kassay.reference import Group, Member, Topic
from kassay.reference.assignors import NEWEST_ASSIGNORS
from tests.log_normal_groups import log_normal_group


def range_load(group: Group) -> int:
    """Return the maximum load of the assignor range for equal subscriptions and weights."""
    members = sorted(member.id for member in group.members)
    loads = dict.fromkeys(members, 0)
    for topic in group.topics:
        for at in range(topic.partitions):
            share, rest = divmod(topic.partitions, len(members))
            edge = rest * (share + 1)
            owner = at // (share + 1) if at < edge else rest + (at - edge) // share
            loads[members[owner]] += topic.weight(at)
    return max(loads.values())


def group_of(rng: random.Random, *, weighted: bool) -> Group:
    counts = [rng.randint(1, 12) for _ in range(rng.randint(1, 3))]
    topics = tuple(
        Topic(
            f"t{at}", count, weights=[rng.randint(1, 9) for _ in range(count)] if weighted else None
        )
        for at, count in enumerate(counts)
    )
    names = tuple(topic.name for topic in topics)
    members = [Member(f"m{at}", names) for at in range(rng.randint(1, 6))]
    return Group(topics, tuple(members), id="g")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_loads_are_those_of_the_assignors(seed, weighted):
    group = group_of(random.Random(seed), weighted=weighted)
    found = kassay.scale(group, first=1, last=10, assignor="range")
    assert [step.members for step in found.steps] == list(range(1, 11))
    for step in found.steps:
        kept = group.members[: step.members]
        added = [
            Member(f"new-{at + 1}", [topic.name for topic in group.topics])
            for at in range(step.members - len(kept))
        ]
        then = Group(group.topics, (*kept, *added))
        assert step.assignor == range_load(then)
        loads = [
            max(kassay.loads(then, kassay.assign(then, name)).values())
            for name in NEWEST_ASSIGNORS
            if name != "cooperative-sticky"
        ]
        assert step.best.load == min(loads)
        assert step.optimum.bound <= step.optimum.value <= step.best.load


@pytest.mark.parametrize("weighted", [False, True])
def test_the_members_needed_are_the_first_sufficient_step(weighted):
    group = group_of(random.Random(3), weighted=weighted)
    steps = kassay.scale(group, first=1, last=40, assignor="range").steps
    for target in sorted({step.assignor for step in steps}):
        needed = kassay.scale(group, first=1, last=1, assignor="range", maximum_load=target).needed
        firsts = [
            next(step.members for step in steps if load(step) <= target)
            for load in (
                lambda step: step.optimum.value,
                lambda step: step.assignor,
                lambda step: step.best.load,
            )
        ]
        assert [needed.optimum.value, needed.assignor, needed.best.members] == firsts


def test_a_load_that_the_assignor_never_reaches_has_no_number_of_members():
    topics = tuple(Topic(f"t{at}", 2) for at in range(4))
    group = Group(topics, (Member("a", [topic.name for topic in topics]),))
    needed = kassay.scale(group, maximum_load=1, assignor="range").needed
    assert (needed.optimum.value, needed.assignor, needed.best.members) == (8, None, 8)


def test_the_steps_surround_the_current_number_by_default():
    group = log_normal_group(partitions=300, members=100, seed=1)
    steps = kassay.scale(group).steps
    assert (steps[0].members, steps[-1].members) == (81, 120)


def test_the_own_assignor_is_the_best_one_if_loads_are_equal():
    group = Group((Topic("t", 4),), (Member("a", ("t",)),))
    [step] = kassay.scale(group, first=2, last=2, assignor="sticky").steps
    assert step.best == ("sticky", 2)


def test_numbers_out_of_order_are_refused():
    group = Group((Topic("t", 4),), (Member("a", ("t",)),))
    with pytest.raises(kassay.UsageError, match="first must be from 1 to last"):
        kassay.scale(group, first=3, last=2)
