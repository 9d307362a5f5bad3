"""User data of the classic Kafka Streams protocol."""

import struct
from uuid import UUID

import pytest

from kassay.reference.protocol.message_decoder import (
    RUNNING,
    CorruptRecordError,
    decode_thread_assignment,
    decode_thread_subscription,
)

PROCESS = UUID("60d216e6-ba99-4228-a7c9-789281692e7c")
# As sent by a thread of kafka-streams 4.3.1.
ASSIGNMENT = bytes.fromhex(
    "0000000b0000000b00000003"
    "000000010000000100000000"
    "000000010000000500000000"
    "000000000000000300000000"
    "00000000000000000000000000000000000000007fffffffffffffff"
)


def text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def subscription(version: int, offsets: bytes, tail: bytes = b"") -> bytes:
    return struct.pack(">ii", version, 11) + PROCESS.bytes + text("") + offsets + tail


def test_a_subscription_has_the_process_the_offsets_and_the_tags() -> None:
    offsets = struct.pack(">i", 2)
    offsets += struct.pack(">iiqh", 0, 3, RUNNING, -1) + struct.pack(">iiqh", 0, 4, 50, -1)
    tags = struct.pack(">i", 1) + text("zone") + text("a")
    found = decode_thread_subscription(subscription(11, offsets, b"\5" + b"\0" * 4 + tags))
    assert found.process == PROCESS
    assert found.offsets == {"0_3": RUNNING, "0_4": 50}
    assert found.tags == {"zone": "a"}


def test_older_subscriptions_have_the_offsets_by_partition() -> None:
    offsets = struct.pack(">iii", 1, 2, 2) + struct.pack(">iq", 0, 7) + struct.pack(">iq", 5, 9)
    found = decode_thread_subscription(subscription(8, offsets, b"\5"))
    assert found.offsets == {"2_0": 7, "2_5": 9}
    without_partitions = struct.pack(">iii", 1, 2, 0)
    assert decode_thread_subscription(subscription(8, without_partitions, b"\5")).offsets == {}


def test_a_tag_that_is_not_utf_8_is_an_error() -> None:
    tags = struct.pack(">i", 1) + text("zone") + struct.pack(">i", 1) + b"\xff"
    with pytest.raises(CorruptRecordError, match="tags: 'utf-8' codec can't decode"):
        decode_thread_subscription(subscription(11, b"\0" * 4, b"\5" + b"\0" * 4 + tags))


def test_an_assignment_has_the_tasks_of_the_thread() -> None:
    found = decode_thread_assignment(ASSIGNMENT)
    assert found.active == ("1_1", "1_5", "0_3")
    assert found.standby == ()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected 4 bytes"),
        (struct.pack(">i", 6), "version must be from 7 to 11, got 6"),
        (struct.pack(">i", 12), "version must be from 7 to 11, got 12"),
        (ASSIGNMENT[:20], "expected 4 bytes, got only 0"),
    ],
)
def test_damaged_user_data_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(CorruptRecordError, match=message):
        decode_thread_assignment(data)
