"""Cooperative sticky assignor: withheld partitions and owned partitions."""

from kassay import Group
from tests.notation import after, changed, group, joined, lists, without


def with_version(group: Group, version: int) -> Group:
    """Return the group with another protocol version of all members."""
    return changed(group, **{one.id: {"protocol_version": version} for one in group.members})


def test_moved_partition_is_withheld_for_one_rebalance() -> None:
    alone = after(group("t:2", a="t"), "cooperative-sticky")
    both = joined(alone, b="t")
    assert lists(both, "cooperative-sticky") == {"a": "t-0", "b": ""}
    following = after(both, "cooperative-sticky")
    assert lists(following, "cooperative-sticky") == {"a": "t-0", "b": "t-1"}


def test_unowned_partition_is_assigned_at_once() -> None:
    both = after(group("t:4", a="t", b="t"), "cooperative-sticky")
    assert lists(without(both, "a"), "cooperative-sticky") == {"b": "t-1 t-3 t-0 t-2"}


def test_version_0_subscriptions_have_no_owned_partitions() -> None:
    start = group("t:2", a="t | t-1", b="t | t-0")
    version_0 = with_version(start, 0)
    assert lists(start, "cooperative-sticky") == {"a": "t-1", "b": "t-0"}
    assert lists(version_0, "cooperative-sticky") == {"a": "t-0", "b": "t-1"}
    assert lists(version_0, "sticky") == {"a": "t-1", "b": "t-0"}


def test_version_1_subscriptions_use_the_generation_of_the_user_data() -> None:
    start = group("t:3", a="t | t-0 t-1 @3", b="t | t-0 t-2 @4")
    assert lists(with_version(start, 1), "cooperative-sticky") == {"a": "t-1", "b": "t-0 t-2"}
