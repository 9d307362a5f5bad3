"""Fingerprints distinguish groups by the content that determines their optimum."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay import Group, Member, Topic
from kassay.reference.documents.json_codec import group_document, group_fingerprint, parse_group
from tests.strategies import groups

GROUP = Group(
    topics=(
        Topic(name="t", partitions=2, weights=(3, 4), racks=(("r",), ("s",))),
        Topic(name="u", partitions=1),
    ),
    members=(
        Member(id="a", subscription=("t", "u"), owned=[("t", 1), ("u", 0)], generation=2),
        Member(id="b", subscription=("t",), owned=[("t", 0)], generation=2, capacity=9),
    ),
    id="g",
)
FIRST, SECOND = GROUP.members
TOPIC, OTHER = GROUP.topics


@pytest.mark.parametrize(
    "changed",
    [
        replace(GROUP, topics=(TOPIC,)),
        replace(GROUP, topics=(replace(TOPIC, name="v"), OTHER)),
        replace(GROUP, topics=(replace(TOPIC, weights=(4, 3)), OTHER)),
        replace(GROUP, topics=(replace(TOPIC, weights=None), OTHER)),
        replace(GROUP, topics=(replace(TOPIC, racks=(("s",), ("s",))), OTHER)),
        replace(GROUP, topics=(TOPIC, replace(OTHER, partitions=2))),
        replace(GROUP, members=(FIRST,)),
        replace(GROUP, members=(FIRST, replace(SECOND, id="c"))),
        replace(GROUP, members=(FIRST, replace(SECOND, subscription=("t", "u")))),
        replace(GROUP, members=(FIRST, replace(SECOND, owned=()))),
        replace(GROUP, members=(FIRST, replace(SECOND, owned=[("t", 1)]))),
        replace(GROUP, members=(FIRST, replace(SECOND, owned=[("u", 0)]))),
        replace(GROUP, members=(FIRST, replace(SECOND, generation=3))),
        replace(GROUP, members=(FIRST, replace(SECOND, rack="r"))),
        replace(GROUP, members=(FIRST, replace(SECOND, capacity=8))),
    ],
)
def test_groups_with_other_content_have_other_fingerprints(changed):
    assert group_fingerprint(changed) != group_fingerprint(GROUP)


@pytest.mark.parametrize(
    "same",
    [
        replace(GROUP, id="other", notes=("a note",)),
        replace(GROUP, topics=(OTHER, TOPIC)),
        replace(GROUP, members=(SECOND, FIRST)),
        replace(GROUP, members=(replace(FIRST, subscription=("u", "t")), SECOND)),
        replace(GROUP, members=(replace(FIRST, owned=[("u", 0), ("t", 1), ("u", 0)]), SECOND)),
    ],
)
def test_order_id_and_notes_do_not_change_the_fingerprint(same):
    assert group_fingerprint(same) == group_fingerprint(GROUP)


@given(groups(messy=True, weighted=True))
def test_a_fingerprint_is_the_same_after_json(group):
    again = parse_group(group_document(group))
    assert group_fingerprint(again) == group_fingerprint(group)
    assert group_fingerprint(group).startswith("sha256:")


@given(st.lists(groups(max_members=2, max_total=4), min_size=2, max_size=2))
def test_only_groups_with_the_same_topics_and_members_share_a_fingerprint(pair):
    first, second = pair
    same = set(first.topics) == set(second.topics) and {
        (m.id, frozenset(m.subscription), frozenset(m.owned)) for m in first.members
    } == {(m.id, frozenset(m.subscription), frozenset(m.owned)) for m in second.members}
    assert (group_fingerprint(first) == group_fingerprint(second)) == same
