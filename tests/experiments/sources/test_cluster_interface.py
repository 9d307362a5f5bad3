"""Subscriptions of classic members are decoded, and damaged bytes are an error."""

from __future__ import annotations

import pytest

from kassay.experiments.sources.live_cluster.cluster_interface import (
    JoinedSubscription,
    read_subscription,
)
from kassay.reference.model.errors import InputError

# Sent by a consumer of Kafka 4.
WITH_RACK = bytes.fromhex("0003000000020001610001 62ffffffff00000000ffffffff0004 6c656674")
# Ends of its user data, owned partitions and generation.
FIELD_ENDS = (16, 20, 24)
WITH_OWNED = bytes.fromhex(
    "0001000000010001 61 00000002 cafe 00000001 000161 00000002 00000000 00000001"
)


def test_topics_keep_the_order_sent_and_the_rack_is_decoded() -> None:
    assert read_subscription(WITH_RACK, where="m") == JoinedSubscription(3, ("a", "b"), "left")


def test_partitions_owned_when_joining_are_ignored() -> None:
    assert read_subscription(WITH_OWNED, where="m") == JoinedSubscription(1, ("a",))
    newer = b"\0\3" + WITH_OWNED[2:] + b"\0\0\0\x05" + b"\xff\xff"
    assert read_subscription(newer, where="m") == JoinedSubscription(3, ("a",))


def test_the_empty_rack_that_clients_send_without_a_rack_is_none() -> None:
    empty = WITH_RACK[:-6] + b"\0\0"
    assert read_subscription(empty, where="m").rack is None


def test_later_versions_are_decoded_as_the_latest_known() -> None:
    later = b"\0\x09" + WITH_RACK[2:] + b"more"
    assert read_subscription(later, where="m") == JoinedSubscription(3, ("a", "b"), "left")


@pytest.mark.parametrize("length", sorted(set(range(len(WITH_RACK))) - set(FIELD_ENDS)))
def test_a_cut_subscription_is_an_error(length: int) -> None:
    with pytest.raises(InputError, match=r"^member 'm': its subscription cannot be decoded: "):
        read_subscription(WITH_RACK[:length], where="member 'm'")


@pytest.mark.parametrize("length", FIELD_ENDS)
def test_a_subscription_may_end_after_any_field_except_the_topics(length: int) -> None:
    assert read_subscription(WITH_RACK[:length], where="m") == JoinedSubscription(3, ("a", "b"))


@pytest.mark.parametrize(
    "data", ["ffff", "0000ffffffff", "000000000001ffff", "0000000000010001ffffffffff"]
)
def test_a_subscription_with_invalid_bytes_is_an_error(data: str) -> None:
    with pytest.raises(InputError, match=r"^m: its subscription cannot be decoded: "):
        read_subscription(bytes.fromhex(data), where="m")
