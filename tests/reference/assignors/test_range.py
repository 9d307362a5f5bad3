"""Range assignor: documentation examples and edge cases."""

from dataclasses import replace

from tests.reference.assignors.notation import group, lists, with_instance_ids, with_racks


def test_documentation_example_of_one_topic() -> None:
    start = group("t:5", C0="t", C1="t", C2="t")
    assert lists(start, "range") == {"C0": "t-0 t-1", "C1": "t-2 t-3", "C2": "t-4"}


def test_first_members_get_one_more_partition_of_every_topic() -> None:
    assert lists(group("T0:4 T1:4", C0="T0 T1", C1="T0 T1", C2="T0 T1"), "range") == {
        "C0": "T0-0 T0-1 T1-0 T1-1",
        "C1": "T0-2 T1-2",
        "C2": "T0-3 T1-3",
    }


def test_documentation_example_of_co_partitioned_topics() -> None:
    start = group("t0:3 t1:3", C0="t0 t1", C1="t0 t1")
    assert lists(start, "range") == {"C0": "t0-0 t0-1 t1-0 t1-1", "C1": "t0-2 t1-2"}


def test_members_in_excess_of_the_partitions_are_idle() -> None:
    start = group("Ta:2 Tb:2", Ca="Ta Tb", Cb="Ta Tb", Cc="Ta Tb")
    assert lists(start, "range") == {"Ca": "Ta-0 Tb-0", "Cb": "Ta-1 Tb-1", "Cc": ""}


def test_one_consumer_nonexistent_topic() -> None:
    assert lists(group("", c="t"), "range") == {"c": ""}


def test_only_assigns_partitions_from_subscribed_topics() -> None:
    assert lists(group("t:2 other:3", c="t"), "range") == {"c": "t-0 t-1"}


def test_topics_without_partitions_are_skipped() -> None:
    assert lists(group("t:0 u:1", c="t u"), "range") == {"c": "u-0"}


def test_multiple_consumers_mixed_topics() -> None:
    start = group("t1:3 t2:2", c1="t1", c2="t1 t2", c3="t1")
    assert lists(start, "range") == {"c1": "t1-0", "c2": "t1-1 t2-0 t2-1", "c3": "t1-2"}


def test_static_members_come_first_in_the_order_of_their_instance_ids() -> None:
    mixed = with_instance_ids(group("t:3", a="t", b="t", c="t"), b="2", c="1")
    assert lists(mixed, "range") == {"a": "t-2", "b": "t-1", "c": "t-0"}


def test_static_member_with_a_new_id_keeps_its_range() -> None:
    old = with_instance_ids(group("t:3", a="t", b="t", c="t"), a="ia", b="ib", c="ic")
    *others, last = old.members
    renamed = replace(old, members=(*others, replace(last, id="0")))
    assert lists(old, "range")["c"] == lists(renamed, "range")["0"] == "t-2"


def test_lists_are_in_the_hash_order_of_topics() -> None:
    start = group("t0:1 t1:1 t10:1 t2:1", c="t0 t1 t10 t2")
    assert lists(start, "range") == {"c": "t10-0 t0-0 t1-0 t2-0"}


def test_member_gets_partitions_of_its_rack_up_to_its_quota() -> None:
    plain = group("t:4", a="t", b="t")
    near = with_racks(plain, {"t": ["B", "B", "A", "A"]}, a="A", b="B")
    assert lists(plain, "range") == {"a": "t-0 t-1", "b": "t-2 t-3"}
    assert lists(near, "range") == {"a": "t-2 t-3", "b": "t-0 t-1"}


def test_racks_are_ignored_if_every_partition_is_in_all_racks() -> None:
    plain = group("t:4", a="t", b="t")
    everywhere = with_racks(plain, {"t": ["A B"] * 4}, a="B", b="A")
    assert lists(everywhere, "range") == lists(plain, "range")


def test_racks_without_partitions_are_ignored() -> None:
    plain = group("t:2", a="t", b="t")
    elsewhere = with_racks(plain, {"t": ["C", "D"]}, a="A", b="B")
    assert lists(elsewhere, "range") == lists(plain, "range")


def test_co_partitioned_topics_with_equal_racks_get_equal_ranges() -> None:
    plain = group("t:2 u:2", a="t u", b="t u")
    both = with_racks(plain, {"t": ["B", "A"], "u": ["B", "A"]}, a="A", b="B")
    assert lists(both, "range") == {"a": "t-1 u-1", "b": "t-0 u-0"}


def test_co_partitioned_topics_with_different_racks_get_equal_ranges() -> None:
    plain = group("t:2 u:2", a="t u", b="t u")
    crossed = with_racks(plain, {"t": ["B", "A"], "u": ["A", "B"]}, a="A", b="B")
    assert lists(crossed, "range") == {"a": "t-0 u-0", "b": "t-1 u-1"}
