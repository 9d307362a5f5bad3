import pytest

AMBIGUOUS = {
    "id": "g",
    "topics": {"orders": 3, "orders-1": 2},
    "members": [
        {"id": "a", "topics": ["orders", "orders-1"]},
        {"id": "b", "topics": ["orders", "orders-1"]},
    ],
}


def test_a_pin_of_a_name_that_is_also_a_topic_means_the_partition(kassay, write_groups):
    done = kassay("solve", write_groups(AMBIGUOUS), "--pin", "orders-1=b")
    assert ["orders", 1] in done.record["assignment"]["b"]


def test_a_partition_of_a_topic_with_a_dash_can_be_forbidden(kassay, write_groups):
    done = kassay("solve", write_groups(AMBIGUOUS), "--forbid", "orders-1-0=b")
    assert ["orders-1", 0] in done.record["assignment"]["a"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--forbid", "orders-1=b", "for the topic, forbid each of its partitions"),
        ("--pin", "orders=b", "--pin must be TOPIC-N=MEMBER, got 'orders=b'"),
        ("--pin", "orders-1", "--pin must be TOPIC-N=MEMBER, got 'orders-1'"),
        ("--pin", "orders-7=b", "topic 'orders' has no partition 7"),
        ("--forbid", "payments=b", "--forbid: group 'g' has no topic 'payments'"),
        ("--forbid", "orders=c", "'c'"),
    ],
)
def test_an_unclear_placement_is_an_error(kassay, write_groups, option, value, message):
    done = kassay("solve", write_groups(AMBIGUOUS), option, value)
    assert done.code == 2
    assert message in done.message
