"""Loads by number of members, compared with runs of the assignors."""

import random
from dataclasses import replace
from itertools import cycle

import pytest

import kassay
from kassay import Group, Member, Topic
from kassay.reference.assignors import NEWEST_ASSIGNORS
from kassay.solver.limits import SearchLimits
from tests.log_normal_groups import log_normal_group


def judged_load(assignor: str, group: Group) -> int:
    """Return the maximum load of range or roundrobin, by the rules of their documentation."""
    loads = {one.id: 0 for one in group.members}
    topics = {one.id: set(one.subscription) for one in group.members}
    circle = cycle(sorted(loads))
    for topic in sorted(group.topics, key=lambda one: one.name):
        fit = sorted(one for one in loads if topic.name in topics[one])
        few, more = divmod(topic.partitions, len(fit) or 1)
        blocks = [one for at, one in enumerate(fit) for _ in range(few + (at < more))]
        for at in range(topic.partitions if fit else 0):
            in_turn = blocks[at] if assignor == "range" else next(o for o in circle if o in fit)
            loads[in_turn] += topic.weight(at)
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


def resized(group: Group, number: int) -> Group:
    """Return the group without its last members, or with members of all topics."""
    kept, names = group.members[:number], tuple(topic.name for topic in group.topics)
    added = (Member(f"m{at}", names) for at in range(len(kept), number))
    return Group(group.topics, (*kept, *added))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_loads_are_those_of_an_assignor(seed, weighted):
    group = group_of(random.Random(seed), weighted=weighted)
    found = kassay.scale(group, first=1, last=10, assignor="range")
    assert [step.members for step in found.steps] == list(range(1, 11))
    for step in found.steps:
        then = resized(group, step.members)
        loads = [
            max(kassay.loads(then, kassay.assign(then, name)).values())
            for name in NEWEST_ASSIGNORS
            if name != "cooperative-sticky"
        ]
        assert step.best.load == min(loads)
        assert step.optimum.bound <= step.optimum.value <= step.best.load


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_loads_of_200_groups_are_those_of_the_judge(first):
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        group = group_of(rng, weighted=bool(seed % 2))
        names = [topic.name for topic in group.topics]
        if seed % 3:  # mixed subscriptions; one member has all topics
            members = [
                replace(one, subscription=tuple(rng.sample(names, rng.randint(1, len(names)))))
                for one in group.members[1:]
            ]
            group = replace(group, members=(group.members[0], *members))
        assignor = ("range", "roundrobin")[seed % 4 // 2]
        number = rng.randint(1, 40)
        [step] = kassay.scale(
            group, first=number, last=number, assignor=assignor, limits=SearchLimits(work=0)
        ).steps
        assert step.assignor == judged_load(assignor, resized(group, number)), seed


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
    with pytest.raises(kassay.UsageError, match="first must be from 1 to last"):
        kassay.scale(log_normal_group(3, 1), first=3, last=2)
