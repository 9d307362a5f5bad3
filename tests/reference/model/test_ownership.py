from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from kassay import Assignment
from kassay.reference.model.assignment import NO_OWNER, current_partitions, ownership, rejoin
from tests.notation import changed, group
from tests.stored_cases import stored_cases
from tests.strategies import groups


@pytest.mark.parametrize(
    ("members", "owners", "contested", "stale"), stored_cases("claims_of_generations")
)
def test_the_claim_of_the_highest_generation_is_valid(members, owners, contested, stale):
    claimed = group("t:3", **members)
    result = ownership(claimed)
    assert NO_OWNER == -1
    assert result.owners["t"].tolist() == owners
    assert result.owned_count == len([owner for owner in owners if owner >= 0])
    assert "".join(claim.member for claim in result.contested) == contested
    assert "".join(sorted(claim.member for claim in result.stale)) == stale
    valid = [("t", number) for number, owner in enumerate(owners) if owner == 0]
    assert current_partitions(claimed)[claimed.members[0].id] == valid


def test_invalid_claims_have_a_reason():
    result = ownership(group("t:3", a="t u | u-0 t-3 t-1", b="v | t-0"))
    assert result.stale == (
        ("a", "u", 0, "the topic does not exist"),
        ("a", "t", 3, "the partition does not exist"),
        ("b", "t", 0, "the member does not subscribe to the topic"),
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
    before = {"sub_generation": 6, "user_data": "v0", "rack": "r", "capacity": 2}
    start = changed(group("t:3", a="t | t-0 @7", b="t | t-1 @3", c="t"), a=before)
    assignment = Assignment({"a": [("t", 2), ("t", 0)], "c": [("t", 1)]})
    a, b, c = rejoin(start, assignment).members
    assert a == replace(
        start.members[0],
        owned=[("t", 2), ("t", 0)],
        generation=8,
        sub_generation=None,
        user_data=None,
    )
    assert (b.owned, b.generation) == ([], 8)
    assert (c.owned, c.generation) == ([("t", 1)], 8)
    assert [m.generation for m in rejoin(start, assignment, generation=0).members] == [0, 0, 0]
