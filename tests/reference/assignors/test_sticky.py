"""Sticky assignor: documentation examples, upstream's scenarios, ties and failures."""

from dataclasses import replace

import pytest

from kassay import Group, movement
from kassay.reference.assignors import assign, run_assignor
from kassay.reference.model.load_metrics import loads
from tests.notation import after, group, joined, lists, with_topics, without

STICKY = ["sticky", "cooperative-sticky"]


def spread(group: Group, assignor: str = "sticky") -> int:
    values = loads(group, assign(group, assignor)).values()
    return max(values) - min(values)


def test_documentation_example_of_a_member_that_leaves() -> None:
    topics = "t0 t1 t2 t3"
    start = group("t0:2 t1:2 t2:2 t3:2", C0=topics, C1=topics, C2=topics)
    left = without(after(start, "sticky"), "C1")
    assert movement(left, assign(left, "sticky")) == 0
    assert sorted(assign(left, "sticky").counts().values()) == [4, 4]


def test_add_remove_consumer_one_topic() -> None:
    alone = after(group("t:3", a="t"), "sticky")
    both = after(joined(alone, b="t"), "sticky", generation=2)
    assert lists(both, "sticky") == {"a": "t-0 t-1", "b": "t-2"}
    assert lists(without(both, "a"), "sticky") == {"b": "t-2 t-0 t-1"}


def test_add_remove_topic_two_consumers() -> None:
    one = after(group("t:3", a="t u", b="t u"), "sticky")
    assert lists(one, "sticky") == {"a": "t-0 t-2", "b": "t-1"}
    two = after(with_topics(one, "t:3 u:3"), "sticky", generation=2)
    assert lists(two, "sticky") == {"a": "t-0 u-0 t-2", "b": "t-1 u-1 u-2"}
    assert lists(with_topics(two, "u:3"), "sticky") == {"a": "u-0", "b": "u-1 u-2"}


def test_no_reassignment_on_current_members() -> None:
    start = after(group("t:4 u:4", a="t u", b="t u"), "sticky")
    assert movement(start, assign(start, "sticky")) == 0


def test_reassignment_after_one_consumer_leaves() -> None:
    topics = " ".join(f"t{number}" for number in range(5))
    start = group("t0:1 t1:2 t2:3 t3:4 t4:5", a=topics, b=topics, c=topics, d=topics)
    left = without(after(start, "sticky"), "b")
    assert movement(left, assign(left, "sticky")) == 0
    assert spread(left) == 0


def test_reassignment_after_one_consumer_added() -> None:
    start = after(group("t:20", a="t", b="t", c="t"), "sticky")
    grown = joined(start, d="t")
    assert spread(grown) == 0
    assert movement(grown, assign(grown, "sticky")) == 5


def test_new_subscription() -> None:
    start = group("t0:1 t1:2 t2:3", a="t0 t1", b="t0 t1 t2", c="t1 t2")
    assert spread(start) == 0


def test_sticky_fails_if_a_previous_owner_cannot_participate() -> None:
    start = group("t0:4 tX:1", A="t0 | t0-0 t0-1 t0-2 t0-3 @2", B="t0", X="tX | t0-0 @1")
    failed = run_assignor(start, "sticky").failed
    assert failed is not None
    assert failed.java_class == "NullPointerException"
    assert "t0-0" in failed.detail


def test_sticky_can_fail_if_a_claimed_partition_does_not_exist() -> None:
    start = group("t0:2 t1:4", A="t0 t1 | t0-3 t1-0", B="t0 t1 | t1-1 t1-2")
    failed = run_assignor(start, "sticky").failed
    assert failed is not None
    assert failed.java_class == "IllegalStateException"


@pytest.mark.parametrize("assignor", STICKY)
def test_group_without_members_fails(assignor: str) -> None:
    failed = run_assignor(group("t:2"), assignor).failed
    assert failed is not None
    assert failed.java_class == "ArithmeticException"


def test_user_data_without_generation_is_older_than_any_other() -> None:
    start = group("t:2", a="t | t-0 @7", b="t | t-0 t-1 @9")
    a, b = start.members
    older = replace(start, members=(replace(a, sub_generation=3), replace(b, user_data="v0")))
    assert lists(start, "sticky") == {"a": "t-1", "b": "t-0"}
    assert lists(older, "sticky") == {"a": "t-0", "b": "t-1"}


def test_second_claim_is_valid_if_subscriptions_have_no_generation() -> None:
    start = group("t:4", a="t | t-0 t-1 t-2 @9", b="t | t-0 t-1 t-2 @7")
    without_generation = replace(
        start, members=tuple(replace(m, protocol_version=1) for m in start.members)
    )
    assert lists(start, "sticky")["a"] == "t-0 t-1"
    assert lists(without_generation, "sticky")["b"] == "t-0 t-1"
