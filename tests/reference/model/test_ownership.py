from dataclasses import replace

import numpy as np
from hypothesis import given

from kassay import Assignment, Group, Member, Topic
from kassay.reference.model.assignment import NO_OWNER, current_partitions, ownership, rejoin
from tests.strategies import groups


def group_of(*members: Member, partitions: int = 3) -> Group:
    return Group(topics=(Topic(name="t", partitions=partitions),), members=members)


def claimant(name: str, *numbers: int, generation: int = 5, topics=("t",)) -> Member:
    owned = [("t", number) for number in numbers]
    return Member(id=name, subscription=topics, owned=owned, generation=generation)


def test_an_undisputed_claim_is_valid():
    result = ownership(group_of(claimant("a", 2), claimant("b", 0)))
    assert result.owners["t"].tolist() == [1, NO_OWNER, 0]
    assert NO_OWNER == -1
    assert result.owned_count == 2
    assert result.stale == result.contested == ()


def test_the_higher_generation_wins_in_any_order():
    older, newer = claimant("a", 0, generation=4), claimant("b", 0, generation=5)
    assert ownership(group_of(older, newer)).owners["t"][0] == 1
    assert ownership(group_of(newer, older)).owners["t"][0] == 0


def test_claims_of_equal_generation_are_contested():
    result = ownership(group_of(claimant("a", 0), claimant("b", 0, 1)))
    assert result.owners["t"].tolist() == [NO_OWNER, 1, NO_OWNER]
    assert [(c.member, c.partition) for c in result.contested] == [("a", 0), ("b", 0)]


def test_a_claim_of_a_higher_generation_wins_over_contested_claims():
    result = ownership(group_of(claimant("a", 0), claimant("b", 0), claimant("c", 0, generation=6)))
    assert result.owners["t"][0] == 2
    assert result.contested == ()
    assert [c.member for c in result.stale] == ["a", "b"]


def test_contested_claims_invalidate_an_older_claim():
    result = ownership(group_of(claimant("c", 0, generation=4), claimant("a", 0), claimant("b", 0)))
    assert result.owners["t"][0] == NO_OWNER
    assert [c.member for c in result.stale] == ["c"]


def test_a_repeated_claim_of_one_member_counts_once():
    result = ownership(group_of(claimant("a", 0, 0)))
    assert result.owners["t"][0] == 0
    assert result.contested == ()


def test_an_undisputed_claim_without_generation_is_valid():
    assert ownership(group_of(claimant("a", 0, generation=-1))).owners["t"][0] == 0


def test_a_topic_that_is_not_subscribed_to_is_not_owned():
    result = ownership(group_of(claimant("a", 0, topics=("u",)), claimant("b", topics=("t",))))
    assert result.owners["t"][0] == NO_OWNER
    assert [c.reason for c in result.stale] == ["the member does not subscribe to the topic"]


def test_an_invalid_claim_of_a_higher_generation_invalidates_a_lower_one():
    result = ownership(group_of(claimant("a", 0), claimant("b", 0, generation=6, topics=("u",))))
    assert result.owners["t"][0] == NO_OWNER


def test_claims_to_missing_topics_and_partitions_are_reported_as_stale():
    member = Member(id="a", subscription=("t", "u"), owned=[("u", 0), ("t", 3), ("t", 1)])
    result = ownership(group_of(member))
    assert result.owners["t"].tolist() == [NO_OWNER, 0, NO_OWNER]
    assert result.stale == (
        ("a", "u", 0, "the topic does not exist"),
        ("a", "t", 3, "the partition does not exist"),
    )


@given(groups(messy=True))
def test_every_claim_is_valid_or_reported_once(group):
    result = ownership(group)
    claims = {(m.id, tp.topic, tp.partition) for m in group.members for tp in m.owned}
    valid = {
        (group.members[owner].id, topic, number)
        for topic, owners in result.owners.items()
        for number, owner in enumerate(owners.tolist())
        if owner != NO_OWNER
    }
    reported = [c[:3] for c in (*result.stale, *result.contested)]
    assert valid <= claims
    assert sorted([*valid, *reported]) == sorted(claims)


@given(groups(messy=True))
def test_owners_are_subscribers(group):
    subscribers = group.subscribers()
    for topic, owners in ownership(group).owners.items():
        assert set(np.unique(owners).tolist()) - {NO_OWNER} <= set(subscribers.get(topic, ()))


def test_rejoining_members_own_their_assignment_in_one_generation():
    group = group_of(
        Member(
            id="a",
            subscription=("t",),
            owned=[("t", 0)],
            generation=7,
            sub_generation=6,
            user_data="v0",
            rack="r",
            capacity=2,
        ),
        claimant("b", 1, generation=3),
        Member(id="c", subscription=("t",)),
    )
    assignment = Assignment({"a": [("t", 2), ("t", 0)], "c": [("t", 1)]})
    a, b, c = rejoin(group, assignment).members
    assert a == replace(
        group.members[0],
        owned=[("t", 2), ("t", 0)],
        generation=8,
        sub_generation=None,
        user_data=None,
    )
    assert (b.owned, b.generation) == ([], 8)
    assert (c.owned, c.generation) == ([("t", 1)], 8)
    assert [m.generation for m in rejoin(group, assignment, generation=0).members] == [0, 0, 0]


def test_current_partitions_are_the_valid_claims():
    group = group_of(claimant("a", 0, 1, 9), claimant("b", 1, 2, generation=6))
    assert current_partitions(group) == {"a": [("t", 0)], "b": [("t", 1), ("t", 2)]}
