"""Round robin assignor: documentation examples and edge cases."""

import pytest

from kassay.reference.assignors import assign
from kassay.reference.model.errors import UpstreamError
from tests.reference.assignors.notation import group, lists, with_instance_ids, without


def test_documentation_example_with_equal_subscriptions() -> None:
    start = group("t0:3 t1:3", C0="t0 t1", C1="t0 t1")
    assert lists(start, "roundrobin") == {"C0": "t0-0 t0-2 t1-1", "C1": "t0-1 t1-0 t1-2"}


def test_members_without_subscription_are_skipped() -> None:
    assert lists(group("t:2", a="", b="t"), "roundrobin") == {"a": "", "b": "t-0 t-1"}


def test_round_robin_continues_with_the_next_member_at_the_next_topic() -> None:
    start = group("Ta:2 Tb:2", Ca="Ta Tb", Cb="Ta Tb", Cc="Ta Tb")
    assert lists(start, "roundrobin") == {"Ca": "Ta-0 Tb-1", "Cb": "Ta-1", "Cc": "Tb-0"}


def test_documentation_example_with_mixed_subscriptions() -> None:
    start = group("T0:1 T1:2 T2:3", C0="T0", C1="T0 T1", C2="T0 T1 T2")
    assert lists(start, "roundrobin") == {"C0": "T0-0", "C1": "T1-0", "C2": "T1-1 T2-0 T2-1 T2-2"}
    left = without(start, "C0")
    assert lists(left, "roundrobin") == {"C1": "T0-0 T1-1", "C2": "T1-0 T2-0 T2-1 T2-2"}


def test_documentation_example_of_a_member_that_leaves() -> None:
    topics = "t0 t1 t2 t3"
    left = without(group("t0:2 t1:2 t2:2 t3:2", C0=topics, C1=topics, C2=topics), "C1")
    assert lists(left, "roundrobin") == {"C0": "t0-0 t1-0 t2-0 t3-0", "C2": "t0-1 t1-1 t2-1 t3-1"}


def test_static_members_receive_partitions_before_dynamic_members() -> None:
    mixed = with_instance_ids(group("t:3", a="t", b="t"), b="z")
    assert lists(mixed, "roundrobin") == {"a": "t-1", "b": "t-0 t-2"}


def test_group_without_members_fails() -> None:
    with pytest.raises(UpstreamError, match="IllegalArgumentException"):
        assign(group("t:2"), "roundrobin")


def test_names_are_sorted_as_text() -> None:
    start = group("t2:1 t10:1", c10="t2 t10", c2="t2 t10")
    assert lists(start, "roundrobin") == {"c10": "t10-0", "c2": "t2-0"}
