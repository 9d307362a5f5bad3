import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay.reference import Assignment, Group, Member, Topic, violations
from kassay.reference.model.assignment import assignees
from tests.strategies import groups, valid_assignments

GROUP = Group(
    topics=(Topic(name="t", partitions=2), Topic(name="lonely", partitions=1)),
    members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t", "gone"))),
)


def judge(by_member):
    return list(violations(GROUP, Assignment(by_member)))


def test_a_complete_assignment_has_no_violations():
    assert judge({"a": [("t", 1)], "b": [("t", 0)]}) == []


def test_a_member_may_be_left_out_if_it_has_nothing():
    assert judge({"a": [("t", 1), ("t", 0)]}) == []


@pytest.mark.parametrize(
    ("by_member", "complaint"),
    [
        ({"a": [("t", 0)]}, "t-1 is not assigned"),
        ({"a": [("t", 0), ("t", 1)], "b": [("t", 1)]}, "t-1 is assigned 2 times: ['a', 'b']"),
        ({"a": [("t", 0), ("t", 1)], "z": []}, "member 'z' is not in the group"),
        (
            {"a": [("t", 0), ("t", 1), ("lonely", 0)]},
            "member 'a' is assigned 'lonely', which it does not subscribe to",
        ),
        (
            {"a": [("t", 0), ("t", 1), ("gone", 0)]},
            "member 'a' is assigned topic 'gone', which has no metadata",
        ),
        (
            {"a": [("t", 0), ("t", 1), ("t", 2)]},
            "member 'a' is assigned t-2, which does not exist",
        ),
    ],
)
def test_each_violation_is_named_alone(by_member, complaint):
    assert judge(by_member) == [complaint]


@given(st.data())
def test_whatever_gives_every_partition_one_subscriber_is_valid(data):
    group = data.draw(groups(messy=True))
    assignment = data.draw(valid_assignments(group))
    assert list(violations(group, assignment)) == []


@given(st.data())
def test_taking_one_partition_away_is_always_seen(data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    held = [(member, tp) for member, tps in assignment.items() for tp in tps]
    if not held:
        return
    member, lost = data.draw(st.sampled_from(held))
    less = {m: [tp for tp in tps if tp != lost] for m, tps in assignment.items()}
    assert list(violations(group, Assignment(less))) == [f"{lost} is not assigned"]
    twice = {m: [*tps, lost] if m == member else list(tps) for m, tps in assignment.items()}
    assert list(violations(group, Assignment(twice))) == [
        f"{lost} is assigned 2 times: {[member, member]}"
    ]


@given(st.data())
def test_assignees_say_what_the_lists_say(data):
    group = data.draw(groups(messy=True))
    assignment = data.draw(valid_assignments(group))
    now = assignees(group, assignment)
    said = {
        (group.members[index].id, topic, number)
        for topic, column in now.items()
        for number, index in enumerate(column.tolist())
        if index >= 0
    }
    assert said == {(m, *tp) for m, tps in assignment.items() for tp in tps}


def test_assignments_are_equal_by_content_and_hash_alike():
    left, right = Assignment({"a": [("t", 0)], "b": []}), Assignment({"b": [], "a": [("t", 0)]})
    assert left == right
    assert hash(left) == hash(right)
    assert left != Assignment({"a": [("t", 1)], "b": []})
