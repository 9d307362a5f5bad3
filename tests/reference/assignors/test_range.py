"""Range assignor: documentation examples and edge cases."""

from dataclasses import replace

from tests.notation import group, lists, with_instance_ids


def test_static_member_with_a_new_id_keeps_its_range() -> None:
    old = with_instance_ids(group("t:3", a="t", b="t", c="t"), a="ia", b="ib", c="ic")
    *others, last = old.members
    renamed = replace(old, members=(*others, replace(last, id="0")))
    assert lists(old, "range")["c"] == lists(renamed, "range")["0"] == "t-2"
