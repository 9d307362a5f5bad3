"""Bytes that members sent when they joined are read, and damage is an error."""

from __future__ import annotations

import pytest

from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.live_cluster.member_subscription import (
    JoinedSubscription,
    read_subscription,
)

# As consumers of Kafka 4 send them.
WITH_RACK = bytes.fromhex("0003000000020001610001 62ffffffff00000000ffffffff0004 6c656674")
# Of the first: after the user data, what is owned, and the generation of that.
WHOLE_FIELDS = (16, 20, 24)
WITH_OWNED = bytes.fromhex(
    "0001000000010001 61 00000002 cafe 00000001 000161 00000002 00000000 00000001"
)


def test_topics_keep_the_order_sent_and_the_rack_is_told() -> None:
    assert read_subscription(WITH_RACK, where="m") == JoinedSubscription(3, ("a", "b"), "left")


def test_what_was_owned_when_joining_is_passed_over() -> None:
    assert read_subscription(WITH_OWNED, where="m") == JoinedSubscription(1, ("a",))
    newer = b"\0\3" + WITH_OWNED[2:] + b"\0\0\0\x05" + b"\xff\xff"
    assert read_subscription(newer, where="m") == JoinedSubscription(3, ("a",))


def test_a_later_version_is_read_as_the_latest_known() -> None:
    later = b"\0\x09" + WITH_RACK[2:] + b"more"
    assert read_subscription(later, where="m") == JoinedSubscription(3, ("a", "b"), "left")


@pytest.mark.parametrize("length", sorted(set(range(len(WITH_RACK))) - set(WHOLE_FIELDS)))
def test_a_cut_subscription_is_an_error(length: int) -> None:
    with pytest.raises(SourceError, match=r"^member 'm': its subscription cannot be read: "):
        read_subscription(WITH_RACK[:length], where="member 'm'")


@pytest.mark.parametrize("length", WHOLE_FIELDS)
def test_a_client_may_end_its_subscription_after_any_field_but_the_topics(length: int) -> None:
    assert read_subscription(WITH_RACK[:length], where="m") == JoinedSubscription(3, ("a", "b"))


@pytest.mark.parametrize(
    "data", ["ffff", "0000ffffffff", "000000000001ffff", "0000000000010001ffffffffff"]
)
def test_impossible_bytes_are_an_error(data: str) -> None:
    with pytest.raises(SourceError, match=r"^m: its subscription cannot be read: "):
        read_subscription(bytes.fromhex(data), where="m")
