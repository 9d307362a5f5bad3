"""Java's string order, hash codes and the iteration order of its hash maps."""

import uuid
from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay.reference.java_collections import (
    HashMap,
    IntegerSet,
    first_in_map,
    name_uuid,
    set_capacity,
    spread,
    string_hash,
    string_order,
    table_size_for,
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
    assert name_uuid("t0") == uuid.UUID("809d4580-aaed-3156-9abc-38d58f77f840")


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


# Sixteen strings with equal hash codes.
COLLIDING = ["".join(parts) for parts in product(("Aa", "BB"), repeat=4)]


def test_hash_map_iterates_in_the_order_of_bins() -> None:
    assert string_order(["c10", "c2", "c9", "orders"]) == ["c10", "c9", "orders", "c2"]


def test_keys_of_one_bin_are_in_the_order_of_insertion() -> None:
    assert string_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert string_order(["BB", "Aa"]) == ["BB", "Aa"]


def test_compute_if_absent_inserts_at_the_front_of_the_bin() -> None:
    table: HashMap[str, int] = HashMap(string_hash)
    for name in ("Aa", "BB"):
        table.compute_if_absent(name, len)
    assert list(table) == ["BB", "Aa"]


def test_compute_if_absent_resizes_one_call_later_than_put() -> None:
    names = [f"c{number}" for number in range(13)]
    put: HashMap[str, int] = HashMap(string_hash)
    computed: HashMap[str, int] = HashMap(string_hash)
    for name in names:
        put.put(name, 0)
        computed.compute_if_absent(name, len)
    before = computed.snapshot()
    computed.compute_if_absent(names[0], len)
    assert before[0] < computed.snapshot()[0] == put.snapshot()[0]


def test_nine_keys_in_one_bin_resize_a_small_hash_map() -> None:
    assert _hash_map(COLLIDING[:8]).snapshot()[0] == 16
    assert _hash_map(COLLIDING[:9]).snapshot()[0] == 32


def test_a_removed_and_reinserted_key_is_last_in_its_bin() -> None:
    table = _hash_map(("AaAa", "BBBB", "AaBB"))
    table.remove("AaAa")
    table.put("AaAa", None)
    assert list(table) == ["BBBB", "AaBB", "AaAa"]


def test_clearing_a_hash_map_keeps_the_table_size() -> None:
    table = _hash_map(map("c{}".format, range(100)))
    size = table.snapshot()[0]
    table.clear()
    assert len(table) == 0
    assert table.snapshot()[0] == size == 256


@pytest.mark.parametrize(("number", "capacity"), [(0, 16), (11, 16), (12, 17), (24, 33)])
def test_capacity_of_a_set_copied_from_a_collection(number: int, capacity: int) -> None:
    assert set_capacity(number) == capacity


def test_the_table_size_is_the_next_power_of_two() -> None:
    assert [table_size_for(n) for n in (0, 1, 2, 3, 17, 64, 65)] == [1, 1, 2, 4, 32, 64, 128]


@given(
    operations=st.lists(
        st.tuples(st.sampled_from(["put", "compute", "remove"]), st.sampled_from(COLLIDING)),
        max_size=120,
    )
)
def test_a_hash_map_equals_a_dict_after_the_same_operations(
    operations: list[tuple[str, str]],
) -> None:
    table: HashMap[str, int] = HashMap(string_hash)
    model: dict[str, int] = {}
    for step, (operation, name) in enumerate(operations):
        if operation == "put":
            table.put(name, step)
            model[name] = step
        elif operation == "compute":
            value = step
            assert table.compute_if_absent(name, lambda _, value=value: value) == (
                model.setdefault(name, step)
            )
        else:
            table.remove(name)
            model.pop(name, None)
    assert dict(table.items()) == model
    assert len(table) == len(model)
    assert all(table.get(name) == model.get(name) for name in COLLIDING)


@given(names=st.lists(st.integers(0, 400).map("c{}".format), unique=True, max_size=150))
def test_first_in_map_returns_the_first_key_in_iteration_order(names: list[str]) -> None:
    table = _hash_map(names)
    for name in names[: len(names) // 2]:
        table.remove(name)
    rest = names[len(names) // 2 :]
    assert first_in_map(rest, largest_size=len(names)) == next(iter(table), None)


def test_a_set_of_integers_iterates_in_the_order_of_bins() -> None:
    numbers = IntegerSet([64, 17, 3, 1])
    assert list(numbers) == [64, 17, 1, 3]
    numbers.remove(17)
    numbers.update([33, 65536])
    assert list(numbers) == [64, 1, 33, 65536, 3]


def _hash_map(names: Iterable[str]) -> HashMap[str, None]:
    table: HashMap[str, None] = HashMap(string_hash)
    for name in names:
        table.put(name, None)
    return table
