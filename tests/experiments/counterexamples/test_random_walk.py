"""The random walk finds smaller groups than shrinking alone."""

from random import Random

import pytest

from kassay.experiments.counterexamples.find_counterexample import shrink_group
from kassay.experiments.counterexamples.random_walk import MutableGroup, mutate, random_walk
from kassay.experiments.counterexamples.shortcomings import (
    CounterexampleOptions,
    Shortcoming,
    measure_shortfall,
)
from kassay.experiments.counterexamples.shrinking import size_of
from kassay.experiments.study.families.hand_written_groups import NAMED_GROUPS
from kassay.experiments.study.families.registry import FAMILIES
from kassay.reference.assignors import run_assignor
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import ownership

LIVELOCK = NAMED_GROUPS["D"].group


def is_livelock(group: Group) -> bool:
    return run_assignor(group, "sticky").livelock is not None


def test_a_walk_from_a_known_livelock_finds_a_smaller_one():
    smaller = random_walk(LIVELOCK, is_livelock, steps=1200, seed="wander/0")
    assert is_livelock(smaller)
    assert len(smaller.members) <= 5
    assert smaller.partition_count < LIVELOCK.partition_count == 21


@pytest.mark.long
def test_a_walk_leaves_local_minima_of_shrinking():
    options = CounterexampleOptions(assignor="sticky", shortcoming=Shortcoming.LIVELOCK)
    severity = measure_shortfall(LIVELOCK, options).severity
    shrunk, _ = shrink_group(LIVELOCK, options, severity)
    with_walk = CounterexampleOptions(
        assignor="sticky", shortcoming=Shortcoming.LIVELOCK, walk_steps=1200, walks=1
    )
    smaller, reached = shrink_group(LIVELOCK, with_walk, severity)
    assert reached == 1
    assert size_of(smaller) < size_of(shrunk)


def test_equal_seeds_give_equal_walks():
    one, two = (random_walk(LIVELOCK, is_livelock, steps=60, seed="same") for _ in range(2))
    assert one == two


def test_a_group_that_fails_for_another_reason_is_returned_unchanged():
    group = NAMED_GROUPS["A"].group
    assert random_walk(group, lambda other: other is group, steps=10, seed="x") is group


@pytest.mark.parametrize("seed", range(60))
def test_every_mutation_gives_a_valid_group(seed):
    rng = Random(seed)
    mutable = MutableGroup.of(FAMILIES["mixed-join"].build(seed))
    for _ in range(12):
        mutate(mutable, rng)
        mutable.remove_unused()
        group = mutable.group()
        assert mutable.size == (len(group.members), group.partition_count)
        assert MutableGroup.of(group) == mutable
        owned = ownership(group)
        assert owned.owned_count == sum(len(member.owned) for member in group.members)
        assert not owned.stale
        assert all(
            tp.topic in member.subscription for member in group.members for tp in member.owned
        )


def test_mutations_of_a_copy_do_not_change_the_original():
    mutable = MutableGroup.of(LIVELOCK)
    before = mutable.group()
    copy = mutable.copy()
    for seed in range(30):
        mutate(copy, Random(seed))
    assert mutable.group() == before != copy.group()
