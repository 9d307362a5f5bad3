"""Cached results are computed once and do not change the value of their object."""

import pickle

from kassay.reference.model.assignment import Assignment, cached_per_group, movement, violations
from kassay.reference.model.group import Group, Member, Topic, cached
from kassay.reference.model.ownership import ownership


def _group(*, owner: str = "a") -> Group:
    return Group(
        topics=(Topic(name="t", partitions=1),),
        members=tuple(
            Member(id=name, subscription=("t",), owned=[("t", 0)] if name == owner else [])
            for name in ("a", "b")
        ),
    )


def test_a_cached_function_is_computed_once_per_object() -> None:
    calls: list[Group] = []

    @cached
    def record(group: Group) -> int:
        calls.append(group)
        return len(calls)

    first, second = _group(), _group()
    assert [record(first), record(first), record(second)] == [1, 1, 2]


def test_results_of_an_assignment_belong_to_one_group() -> None:
    @cached_per_group
    def owner(group: Group, _: Assignment) -> tuple[Member, ...]:
        return group.members

    assignment = Assignment({})
    groups = [_group(owner="a"), _group(owner="b"), _group(owner="a")]
    assert [owner(group, assignment) for group in groups] == [g.members for g in groups]


def test_one_assignment_is_measured_on_each_group_separately() -> None:
    assignment = Assignment({"a": [("t", 0)], "b": []})
    assert [movement(_group(owner=owner), assignment) for owner in ("a", "b", "a")] == [0, 1, 0]
    larger = Group(topics=(Topic(name="t", partitions=2),), members=_group().members)
    assert [len(list(violations(g, assignment))) for g in (_group(), larger, _group())] == [0, 1, 0]


def test_cached_results_change_neither_equality_nor_hash_nor_pickle() -> None:
    fresh, used = _group(), _group()
    assignment = Assignment({"a": [("t", 0)]})
    before = pickle.dumps(used), pickle.dumps(assignment)
    ownership(used)
    movement(used, assignment)
    assert (fresh, hash(fresh)) == (used, hash(used))
    assert (pickle.dumps(used), pickle.dumps(assignment)) == before
    assert pickle.loads(pickle.dumps(assignment)) == assignment
