"""Variety and reproducibility of the generated groups."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from kassay.reference.documents.json_codec import group_document, parse_group
from kassay.reference.model.group import Group
from tests.conformance.generated_names import NAMINGS, new_name
from tests.conformance.groups import histories, history


def _with_stand_in_assignments(assignor: str, number: int) -> Iterator[Group]:
    groups = histories(assignor)
    group = next(groups)
    for _ in range(number):
        yield group
        group = groups.send(_assign_to_first_subscriber(group))


def _assign_to_first_subscriber(group: Group) -> dict[str, list[tuple[str, int]]]:
    """Assign every partition to the first subscriber of its topic."""
    lists: dict[str, list[tuple[str, int]]] = {member.id: [] for member in group.members}
    for topic, subscribers in group.subscribers().items():
        for partition in range(group.topic_table()[topic].partitions if subscribers else 0):
            lists[group.members[subscribers[0]].id].append((topic, partition))
    return lists


@pytest.fixture(scope="module")
def groups() -> list[Group]:
    return list(_with_stand_in_assignments("sticky", 2_000))


def test_equal_seeds_give_equal_histories(groups: list[Group]) -> None:
    assert list(_with_stand_in_assignments("sticky", 200)) == groups[:200]


def test_assignors_have_different_histories(groups: list[Group]) -> None:
    assert next(history("range", 0)) != groups[0]


def test_assigned_partitions_are_owned_in_the_next_step() -> None:
    for seed in range(200):
        steps = history("uniform", seed)
        first = next(steps)
        lists = _assign_to_first_subscriber(first)
        try:
            second = steps.send(lists)
        except StopIteration:
            continue
        owners = {tp: member.id for member in second.members for tp in member.owned}
        kept = [m for m in second.members if m.id in lists and m.owned == lists[m.id]]
        if any(lists.values()) and kept and owners:
            return
    pytest.fail("no history went on from its assignment")


def test_generated_groups_are_equal_after_a_round_trip_as_documents(groups: list[Group]) -> None:
    for group in groups[:500]:
        assert parse_group(group_document(group)) == group


_TRAITS: dict[str, Callable[[Group], bool]] = {
    "static members": lambda g: any(m.instance_id is not None for m in g.members),
    "members with racks": lambda g: any(m.rack is not None for m in g.members),
    "replicas of unknown rack": lambda g: any(
        None in row for t in g.topics for row in t.racks or ()
    ),
    "topics with ids": lambda g: any(t.id is not None for t in g.topics),
    "topics of equal size": lambda g: (
        len(g.topics) > 2 and len({t.partitions for t in g.topics}) == 1
    ),
    "empty topics": lambda g: any(t.partitions == 0 for t in g.topics),
    "topics without metadata": lambda g: any(
        t not in g.topic_table() for m in g.members for t in m.subscription
    ),
    "empty subscriptions": lambda g: any(not m.subscription for m in g.members),
    "no members": lambda g: not g.members,
    "stale claims": lambda g: len({m.generation for m in g.members if len(m.owned)}) > 1,
    "claims without a generation": lambda g: any(
        m.generation < 0 and len(m.owned) for m in g.members
    ),
    "double claims": lambda g: _claims(g) > len({tp for m in g.members for tp in m.owned}),
    "claims beyond the topic": lambda g: any(
        tp.topic in g.topic_table() and tp.partition >= g.topic_table()[tp.topic].partitions
        for m in g.members
        for tp in m.owned
    ),
    "old protocols": lambda g: any(m.protocol_version < 2 for m in g.members),
    "user data without generation": lambda g: any(m.user_data == "v0" for m in g.members),
    "two generations in one member": lambda g: any(m.sub_generation is not None for m in g.members),
    "equal subscriptions": lambda g: len(g.members) > 2 and _distinct_subscriptions(g) == 1,
    "mixed subscriptions": lambda g: _distinct_subscriptions(g) > 2,
    "surrogate pairs": lambda g: any(ord(sign) > 0xFFFF for m in g.members for sign in m.id),
    "numbers as names": lambda g: any(t.name.isdecimal() for t in g.topics),
    "many names of one hash code": lambda g: sum(set(m.id) <= set("AaB") for m in g.members) > 8,
    "40 topics": lambda g: len(g.topics) >= 36,
    "60 members": lambda g: len(g.members) >= 50,
    "60 partitions": lambda g: any(t.partitions >= 55 for t in g.topics),
}


def _claims(group: Group) -> int:
    return sum(len(member.owned) for member in group.members)


def _distinct_subscriptions(group: Group) -> int:
    return len({frozenset(member.subscription) for member in group.members})


@pytest.mark.parametrize("trait", [one for one in _TRAITS if one != "60 partitions"])
def test_some_generated_groups_have_each_property(trait: str, groups: list[Group]) -> None:
    assert any(_TRAITS[trait](group) for group in groups)


@pytest.mark.long
def test_some_group_has_a_large_topic() -> None:
    groups = list(_with_stand_in_assignments("sticky", 15_000))
    assert any(map(_TRAITS["60 partitions"], groups))
    _check_sizes(groups)


def test_group_sizes_are_limited(groups: list[Group]) -> None:
    _check_sizes(groups)


def _check_sizes(groups: list[Group]) -> None:
    # Events add members, topics or up to four partitions per step.
    assert max(len(group.members) for group in groups) <= 60 + 50
    assert max(len(group.topics) for group in groups) <= 40 + 30


@pytest.mark.parametrize("naming", NAMINGS)
def test_names_are_unique(naming: str) -> None:
    rng = random.Random(naming)
    taken: list[str] = []
    for _ in range(120):
        taken.append(new_name(rng, naming, taken))
    assert len(set(taken)) == len(taken)
