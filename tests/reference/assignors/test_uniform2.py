"""The proposed assignor of the broker, compared with its class and with its promises."""

import random
from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kassay import Assignment, Group, movement
from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.assignment import ownership, violations
from kassay.reference.model.topic_partitions import Partitions
from tests.goldens.cases import PINNED, read
from tests.notation import group
from tests.strategies import groups

RECORDED = PINNED.with_name("uniform2.jsonl.gz")


OWNED = groups(max_members=7, max_topics=6, max_partitions=7, max_total=18)


def shares(assignment: Assignment) -> dict[str, Counter[str]]:
    """Count the partitions of each member by topic."""
    return {
        member: Counter(topic for topic, _ in partitions)
        for member, partitions in assignment.items()
    }


def test_port_equals_the_recorded_answers_of_the_class() -> None:
    cases = list(read(RECORDED))
    assert len(cases) == 150
    for case in cases:
        assignment = assign(parse_group(case["problem"]), "uniform2")
        lists = {member: sorted([*tp] for tp in tps) for member, tps in assignment.items()}
        assert lists == case["answer"], case["scenario"]


@settings(max_examples=100)
@given(start=OWNED)
def test_each_topic_is_spread_and_no_single_transfer_improves_the_balance(start: Group) -> None:
    assignment = assign(start, "uniform2")
    assert list(violations(start, assignment)) == []
    counts, sizes = shares(assignment), assignment.counts()
    for topic in start.topics:
        subscribers = [m.id for m in start.members if topic.name in m.subscription]
        own = [counts[member][topic.name] for member in subscribers]
        assert not own or max(own) - min(own) <= 1
        for giver in subscribers:
            for receiver in subscribers:
                if counts[giver][topic.name] > counts[receiver][topic.name]:
                    assert sizes[giver] - sizes[receiver] < 2


@settings(max_examples=100)
@given(start=OWNED)
def test_moves_are_minimum_for_the_shares_and_a_second_answer_is_equal(start: Group) -> None:
    assignment = assign(start, "uniform2")
    counts, owners = shares(assignment), ownership(start).owners
    owned = Counter(
        (start.members[owner].id, topic)
        for topic, column in owners.items()
        for owner in column.tolist()
        if owner >= 0
    )
    kept = sum(min(number, counts[member][topic]) for (member, topic), number in owned.items())
    assert movement(start, assignment) == sum(owned.values()) - kept
    adopted = tuple(replace(m, owned=assignment[m.id]) for m in start.members)
    again = assign(replace(start, members=adopted), "uniform2")
    assert dict(again) == dict(assignment)


@settings(max_examples=100)
@given(start=OWNED, seed=st.integers(0, 9))
def test_order_of_members_topics_and_claims_is_irrelevant(start: Group, seed: int) -> None:
    shuffle = random.Random(seed)
    members = [
        replace(
            member,
            subscription=tuple(shuffle.sample(member.subscription, len(member.subscription))),
            owned=Partitions.of(shuffle.sample(list(member.owned), len(member.owned))),
        )
        for member in shuffle.sample(start.members, len(start.members))
    ]
    topics = shuffle.sample(start.topics, len(start.topics))
    other = assign(Group(topics=tuple(topics), members=tuple(members)), "uniform2")
    assert dict(other) == dict(assign(start, "uniform2"))


def test_stale_claims_and_unknown_topics_are_ignored() -> None:
    start = group("t:2", a="t gone | t-0 t-7 gone-0", b="t | t-1", c="")
    assert {m: [*map(str, p)] for m, p in assign(start, "uniform2").items()} == {
        "a": ["t-0"],
        "b": ["t-1"],
        "c": [],
    }
