"""What is derived from groups and assignments is derived once, and is no part of their value."""

import pickle

from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.derived_values import DerivedValues, cached, cached_for
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.metrics import movement
from kassay.reference.model.ownership import ownership


def _group(*, owner: str = "a") -> Group:
    return Group(
        topics=(Topic(name="t", partitions=1),),
        members=tuple(
            Member(id=name, subscription=("t",), owned=[("t", 0)] if name == owner else [])
            for name in ("a", "b")
        ),
    )


def test_a_fact_is_derived_once_for_each_object() -> None:
    asked: list[object] = []
    subject, other = DerivedValues(), DerivedValues()
    for thing in (subject, subject, other):
        cached(asked.append, thing)
    assert asked == [subject, other]


def test_a_fact_of_one_context_is_not_told_of_another() -> None:
    subject = DerivedValues()
    first, second = object(), object()
    found = [cached_for(lambda context, _: context, about, subject) for about in (first, second)]
    assert found == [first, second]


def test_one_assignment_is_judged_on_each_group_by_itself() -> None:
    assignment = Assignment({"a": [("t", 0)], "b": []})
    assert [movement(_group(owner=owner), assignment) for owner in ("a", "b", "a")] == [0, 1, 0]
    larger = Group(topics=(Topic(name="t", partitions=2),), members=_group().members)
    assert [len(list(violations(g, assignment))) for g in (_group(), larger, _group())] == [0, 1, 0]


def test_what_is_remembered_changes_neither_equality_nor_hash_nor_pickle() -> None:
    fresh, asked = _group(), _group()
    assignment = Assignment({"a": [("t", 0)]})
    before = pickle.dumps(asked), pickle.dumps(assignment)
    ownership(asked)
    movement(asked, assignment)
    assert (fresh, hash(fresh)) == (asked, hash(asked))
    assert (pickle.dumps(asked), pickle.dumps(assignment)) == before
    assert pickle.loads(pickle.dumps(assignment)) == assignment
