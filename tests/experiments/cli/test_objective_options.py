import pytest

from tests.stored_cases import stored_cases

AMBIGUOUS = stored_cases("groups")["ambiguous names"]


def test_a_pin_of_a_name_that_is_also_a_topic_means_the_partition(kassay, write_groups):
    done = kassay("solve", write_groups(AMBIGUOUS), "--pin", "orders-1=b")
    assert ["orders", 1] in done.record["assignment"]["b"]


def test_a_partition_of_a_topic_with_a_dash_can_be_forbidden(kassay, write_groups):
    done = kassay("solve", write_groups(AMBIGUOUS), "--forbid", "orders-1-0=b")
    assert ["orders-1", 0] in done.record["assignment"]["a"]


WEIGHTED = stored_cases("groups")["weights and owners"]


@pytest.mark.parametrize("share", ["0.02", "2%", "1/50"])
def test_a_tolerance_may_be_a_number_or_a_percentage(kassay, write_groups, share):
    groups = write_groups(WEIGHTED)
    for option in (("--tolerance", share), ("--level", f"imbalance={share}")):
        assert kassay("solve", groups, *option).record["imbalance"]["value"] == 51
