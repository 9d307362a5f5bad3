"""The order of Java's hash maps; expected orders are those of OpenJDK 17."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay.reference.java.hash_map import HashMap, set_capacity, table_size_for
from kassay.reference.java.hash_order import computed_order, string_order
from kassay.reference.java.strings import string_hash, utf16_key

# Sixteen strings of one hash code.
COLLIDING = ["".join(parts) for parts in product(("Aa", "BB"), repeat=4)]


def test_short_names_come_in_the_order_of_their_bins() -> None:
    assert string_order(["c10", "c2", "c9", "orders"]) == ["c10", "c9", "orders", "c2"]


def test_two_names_in_one_bin_come_in_the_order_of_put() -> None:
    assert string_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert string_order(["BB", "Aa"]) == ["BB", "Aa"]


def test_computing_if_absent_puts_a_name_before_the_others_of_its_bin() -> None:
    table: HashMap[str, int] = HashMap(string_hash)
    for name in ("Aa", "BB"):
        table.compute_if_absent(name, len)
    assert list(table) == ["BB", "Aa"]


def test_looking_up_can_resize_where_putting_already_has() -> None:
    names = [f"c{number}" for number in range(13)]
    put: HashMap[str, int] = HashMap(string_hash)
    computed: HashMap[str, int] = HashMap(string_hash)
    for name in names:
        put.put(name, 0)
        computed.compute_if_absent(name, len)
    before = computed.snapshot()
    computed.compute_if_absent(names[0], len)
    assert before[0] < computed.snapshot()[0] == put.snapshot()[0]


def test_nine_names_of_one_bin_enlarge_a_small_table_early() -> None:
    table: HashMap[str, None] = HashMap(string_hash, sort_key=utf16_key)
    for name in COLLIDING[:9]:
        table.put(name, None)
    assert table.snapshot()[0] == 32


def test_a_crowded_bin_of_a_large_table_becomes_a_tree_with_its_root_in_front() -> None:
    assert string_order(COLLIDING[:11]) == [
        COLLIDING[3], COLLIDING[0], COLLIDING[1], COLLIDING[2], *COLLIDING[4:11],
    ]  # fmt: skip


def test_a_removed_name_comes_last_when_it_comes_back() -> None:
    table: HashMap[str, None] = HashMap(string_hash)
    for name in ("AaAa", "BBBB", "AaBB"):
        table.put(name, None)
    table.remove("AaAa")
    table.put("AaAa", None)
    assert list(table) == ["BBBB", "AaBB", "AaAa"]


def test_a_cleared_map_keeps_the_size_of_its_table() -> None:
    table: HashMap[str, None] = HashMap(string_hash)
    for number in range(100):
        table.put(f"c{number}", None)
    size = table.snapshot()[0]
    table.clear()
    assert len(table) == 0
    assert table.snapshot()[0] == size == 256


@pytest.mark.parametrize(("number", "capacity"), [(0, 16), (11, 16), (12, 17), (24, 33)])
def test_a_set_made_of_a_collection_has_room_for_it(number: int, capacity: int) -> None:
    assert set_capacity(number) == capacity


def test_a_table_has_the_next_power_of_two() -> None:
    assert [table_size_for(n) for n in (0, 1, 2, 3, 17, 64, 65)] == [1, 1, 2, 4, 32, 64, 128]


@given(
    operations=st.lists(
        st.tuples(st.sampled_from(["put", "compute", "remove"]), st.sampled_from(COLLIDING)),
        max_size=120,
    )
)
def test_a_map_holds_what_was_put_and_not_removed(operations: list[tuple[str, str]]) -> None:
    table: HashMap[str, int] = HashMap(string_hash, sort_key=utf16_key)
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


NAMES = st.one_of(
    st.sampled_from(COLLIDING),
    st.integers(0, 400).map("c{}".format),
    st.text(st.sampled_from("ab\x80\u3000\N{GRINNING FACE}"), max_size=6),
)


@given(names=st.lists(NAMES, unique=True, max_size=150), capacity=st.none() | st.integers(0, 300))
def test_the_short_way_to_an_order_gives_the_order_of_the_map(
    names: list[str], capacity: int | None
) -> None:
    table: HashMap[str, None] = HashMap(string_hash, sort_key=utf16_key, capacity=capacity)
    for name in names:
        table.put(name, None)
    assert string_order(names, capacity=capacity) == list(table)


@given(names=st.lists(NAMES, unique=True, min_size=1, max_size=150), again=st.booleans())
def test_the_short_way_gives_the_order_of_computing_if_absent(
    names: list[str], again: bool
) -> None:
    table: HashMap[str, None] = HashMap(string_hash, sort_key=utf16_key)
    for name in [*names, names[-1]] if again else names:
        table.compute_if_absent(name, lambda _: None)
    assert computed_order(names, looked_up_after=again) == list(table)
