import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kassay import Assignment, Group, Member, Topic, violations
from kassay.reference.model.assignment import assignee_column
from kassay.reference.model.group import topic_starts
from tests.stored_cases import stored_cases
from tests.strategies import groups, valid_assignments

GROUP = Group(
    topics=(Topic(name="t", partitions=2), Topic(name="lonely", partitions=1)),
    members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t", "gone"))),
)


def violations_of(by_member):
    return list(violations(GROUP, Assignment(by_member)))


def test_a_complete_assignment_has_no_violations():
    assert violations_of({"a": [("t", 1)], "b": [("t", 0)]}) == []


def test_members_without_partitions_may_be_missing():
    assert violations_of({"a": [("t", 1), ("t", 0)]}) == []


@pytest.mark.parametrize(("by_member", "violation"), stored_cases("violations_of_assignments"))
def test_each_violation_of_an_assignment_is_reported(by_member, violation):
    assert violations_of(by_member) == [violation]


@given(st.data())
def test_an_assignment_with_one_subscriber_per_partition_is_valid(data):
    group = data.draw(groups(messy=True))
    assignment = data.draw(valid_assignments(group))
    assert list(violations(group, assignment)) == []


@given(st.data())
def test_a_missing_and_a_repeated_partition_are_violations(data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    pairs = [(member, tp) for member, tps in assignment.items() for tp in tps]
    assume(pairs)
    member, lost = data.draw(st.sampled_from(pairs))
    less = {m: [tp for tp in tps if tp != lost] for m, tps in assignment.items()}
    assert list(violations(group, Assignment(less))) == [f"{lost} is not assigned"]
    twice = {m: [*tps, lost] if m == member else list(tps) for m, tps in assignment.items()}
    assert list(violations(group, Assignment(twice))) == [
        f"{lost} is assigned 2 times: {[member, member]}"
    ]


@given(st.data())
def test_assignees_agree_with_the_partition_lists_of_the_members(data):
    group = data.draw(groups(messy=True))
    assignment = data.draw(valid_assignments(group))
    columns = topic_starts(group).by_topic(assignee_column(group, assignment))
    found = {
        (group.members[index].id, topic, number)
        for topic, column in columns.items()
        for number, index in enumerate(column.tolist())
        if index >= 0
    }
    assert found == {(m, *tp) for m, tps in assignment.items() for tp in tps}


def test_assignments_with_equal_content_are_equal_and_have_equal_hashes():
    left, right = Assignment({"a": [("t", 0)], "b": []}), Assignment({"b": [], "a": [("t", 0)]})
    assert left == right
    assert hash(left) == hash(right)
    assert left != Assignment({"a": [("t", 1)], "b": []})
