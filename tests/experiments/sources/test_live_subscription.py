"""Bytes that members sent when they joined are read, and damage is an error."""

from __future__ import annotations

import pytest

from experiments.sources.errors import SourceError
from experiments.sources.live_subscription import Subscription, read_subscription

# As Kafka 4 consumers sent them.
WITH_RACK = bytes.fromhex("0003000000020001610001 62ffffffff00000000ffffffff0004 6c656674")
WITH_OWNED = bytes.fromhex(
    "0001000000010001 61 00000002 cafe 00000001 000161 00000002 00000000 00000001"
)


def test_topics_keep_the_order_sent_and_the_rack_is_told() -> None:
    assert read_subscription(WITH_RACK, where="m") == Subscription(3, ("a", "b"), "left")


def test_what_was_owned_when_joining_is_passed_over() -> None:
    assert read_subscription(WITH_OWNED, where="m") == Subscription(1, ("a",))
    newer = b"\0\3" + WITH_OWNED[2:] + b"\0\0\0\x05" + b"\xff\xff"
    assert read_subscription(newer, where="m") == Subscription(3, ("a",))


def test_a_later_version_is_read_as_the_latest_known() -> None:
    later = b"\0\x09" + WITH_RACK[2:] + b"more"
    assert read_subscription(later, where="m") == Subscription(3, ("a", "b"), "left")


@pytest.mark.parametrize("length", range(len(WITH_RACK)))
def test_a_cut_subscription_is_an_error(length: int) -> None:
    with pytest.raises(SourceError, match=r"^member 'm': the subscription is cut at \d+ bytes$"):
        read_subscription(WITH_RACK[:length], where="member 'm'")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("ffff", "not a version of a subscription: -1"),
        ("0000ffffffff", "holds a list of -1 entries"),
        ("000000000001ffff", "lacks the name of a topic"),
        ("0000000000010001ff", "holds no UTF-8"),
    ],
)
def test_impossible_bytes_are_an_error(data: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_subscription(bytes.fromhex(data), where="m")
