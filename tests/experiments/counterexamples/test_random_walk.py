"""Wandering leads to smaller groups than taking away one thing after another."""

from random import Random

import pytest

from kassay.experiments.counterexamples.group_size import size_of
from kassay.experiments.counterexamples.mutable_group import MutableGroup, change
from kassay.experiments.counterexamples.random_walk import random_walk
from kassay.experiments.counterexamples.search import SearchOptions, judge, shrink_group
from kassay.experiments.counterexamples.shortcomings import Shortcoming
from kassay.experiments.study.families.named_groups import NAMED_GROUPS
from kassay.experiments.study.families.registry import FAMILIES
from kassay.reference.assignors import run_assignor
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import ownership

ENDLESS = SearchOptions(assignor="sticky", shortcoming=Shortcoming.LIVELOCK)


def never_ends(group: Group) -> bool:
    return run_assignor(group, "sticky").livelock is not None


def test_it_leads_from_a_known_endless_group_to_a_smaller_one():
    known = NAMED_GROUPS["D"].group
    found = random_walk(known, never_ends, steps=1200, seed="wander/0")
    assert never_ends(found)
    assert len(found.members) <= 5
    assert found.partition_count < known.partition_count == 21


def test_it_goes_past_where_shrinking_ends():
    known = NAMED_GROUPS["D"].group
    alone, _ = shrink_group(known, ENDLESS, judge(known, ENDLESS).severity)
    hunt = SearchOptions(
        assignor="sticky", shortcoming=Shortcoming.LIVELOCK, wander=1200, restarts=1
    )
    further, severity = shrink_group(known, hunt, judge(known, hunt).severity)
    assert severity == 1
    assert size_of(further) < size_of(alone)


def test_the_same_seed_takes_the_same_way():
    known = NAMED_GROUPS["D"].group
    one, two = (random_walk(known, never_ends, steps=60, seed="same") for _ in range(2))
    assert one == two


def test_a_group_that_fails_for_something_else_is_left_as_it_is():
    known = NAMED_GROUPS["A"].group
    assert random_walk(known, lambda group: group is known, steps=10, seed="x") is known


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_changed_is_a_sound_group_and_a_draft_is_its_group_again(seed):
    rng = Random(seed)
    draft = MutableGroup.of(FAMILIES["mixed-join"].build(seed))
    for _ in range(12):
        change(draft, rng)
        draft.tidy()
        group = draft.group()
        assert draft.size == (len(group.members), group.partition_count)
        assert MutableGroup.of(group) == draft
        held = ownership(group)
        assert held.owned_count == sum(len(member.owned) for member in group.members)
        assert not held.stale
        assert all(
            tp.topic in member.subscription for member in group.members for tp in member.owned
        )


def test_a_copy_is_changed_on_its_own():
    draft = MutableGroup.of(NAMED_GROUPS["D"].group)
    before = draft.group()
    copy = draft.copy()
    for seed in range(30):
        change(copy, Random(seed))
    assert draft.group() == before != copy.group()
