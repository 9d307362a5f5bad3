"""Assignors on small groups: documentation examples, upstream's scenarios and edge cases."""

import pytest

from kassay.reference.assignors import assign
from kassay.reference.model.errors import UpstreamError
from tests.notation import group, lists, with_instance_ids, with_racks
from tests.stored_cases import stored_cases

CASES = stored_cases("assignments")


@pytest.mark.parametrize("name", CASES)
def test_members_have_the_expected_lists(name: str) -> None:
    case = CASES[name]
    start = with_instance_ids(group(case["topics"], **case["members"]), **case.get("instances", {}))
    if "racks" in case:
        start = with_racks(start, case["racks"], **case["member_racks"])
    assert lists(start, case["assignor"]) == case["expected"]


def test_roundrobin_fails_for_a_group_without_members() -> None:
    with pytest.raises(UpstreamError, match="IllegalArgumentException"):
        assign(group("t:2"), "roundrobin")
