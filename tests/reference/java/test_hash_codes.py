"""Java's strings, hashes and ids; expected values are those of OpenJDK 17."""

import uuid

import pytest

from kassay.reference.java.hash_codes import (
    name_uuid,
    spread,
    string_hash,
    topic_partition_hash,
    utf16_key,
    uuid_hash,
    uuid_key,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("orders-2026", -1815790870),
        ("AaAaAaAa", "BBBBBBBB"),
        ("polygenelubricants", -(2**31)),
        ("\N{GRINNING FACE}", 1772899),
    ],
)
def test_string_hash_equals_javas_hash_code(text: str, expected: int | str) -> None:
    assert string_hash(text) == (string_hash(expected) if isinstance(expected, str) else expected)


def test_the_hash_of_a_lone_surrogate_is_its_code_unit() -> None:
    assert string_hash("\ud83d") == 0xD83D


def test_strings_sort_by_code_units() -> None:
    beyond, private = "\N{GRINNING FACE}", "\ue000"
    assert sorted([beyond, private]) == [private, beyond]
    assert sorted([beyond, private], key=utf16_key) == [beyond, private]


def test_a_prefix_sorts_before_the_longer_string() -> None:
    assert sorted(["t10", "t1", "t2"], key=utf16_key) == ["t1", "t10", "t2"]


def test_partition_hash_overflows_at_32_bits() -> None:
    assert topic_partition_hash("t", 0) == 31 * 31 + ord("t")
    assert topic_partition_hash("polygenelubricants", 0) == 961 - 2**31


def test_name_uuid_is_version_three_without_a_namespace() -> None:
    assert name_uuid(b"t0") == uuid.UUID("809d4580-aaed-3156-9abc-38d58f77f840")


def test_uuids_compare_as_two_signed_longs() -> None:
    negative = uuid.UUID("ffffffff-0000-0000-0000-000000000000")
    positive = uuid.UUID("00000000-0000-0000-0000-000000000001")
    assert uuid_key(negative.int) < uuid_key(positive.int)
    assert uuid_key(1 << 63) < uuid_key(0)


def test_uuid_hash_combines_the_four_words() -> None:
    value = uuid.UUID("00000001-0000-0002-0000-000400000008")
    assert uuid_hash(value.int) == 1 ^ 2 ^ 4 ^ 8


def test_spread_combines_the_upper_and_lower_half_of_a_hash_code() -> None:
    assert spread(0x7FFF0000) == 0x7FFF7FFF
    assert spread(-1) == -65536
