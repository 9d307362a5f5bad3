"""Iteration order of sets of integers; the general hash map determines the expected order."""

from hypothesis import given
from hypothesis import strategies as st

from kassay.reference.java.hash_map import HashMap, set_capacity
from kassay.reference.java.hash_order import IntegerSet

_NUMBERS = st.one_of(
    st.integers(0, 40),
    st.integers(0, 70_000),
    st.integers(0, 40).map(lambda number: 64 * number),
)
_CHANGES = st.lists(st.tuples(st.sampled_from(["add", "remove"]), _NUMBERS), max_size=120)
_CAPACITIES = st.one_of(st.none(), st.integers(1, 100))


def _hash_map(numbers: "list[int] | range", capacity: int | None) -> HashMap[int, None]:
    return HashMap.of(numbers, lambda number: number, sort_key=lambda n: n, capacity=capacity)


@given(changes=_CHANGES, capacity=_CAPACITIES)
def test_a_set_has_the_order_of_a_hash_map(
    changes: list[tuple[str, int]], capacity: int | None
) -> None:
    fast, general = IntegerSet(capacity=capacity), _hash_map([], capacity)
    for change, number in changes:
        if change == "add":
            fast.add(number)
            general.put(number, None)
        else:
            fast.remove(number)
            general.remove(number)
    copy = _hash_map(list(general), set_capacity(len(general)))
    assert (list(fast), len(fast)) == (list(general), len(general))
    assert list(IntegerSet(list(fast), capacity=set_capacity(len(fast)))) == list(copy)


@given(
    start=st.integers(0, 66_000),
    size=st.integers(0, 300),
    more=st.lists(_NUMBERS, max_size=20),
    capacity=_CAPACITIES,
)
def test_consecutive_numbers_have_the_order_of_a_hash_map(
    start: int, size: int, more: list[int], capacity: int | None
) -> None:
    numbers = range(start, start + size)
    fast = IntegerSet(numbers, capacity=capacity)
    fast.update(more)
    assert list(fast) == list(_hash_map([*numbers, *more], capacity))


def test_crowded_bins_iterate_from_the_root_of_a_tree() -> None:
    numbers = [1024 * number for number in range(60)]
    assert list(IntegerSet(numbers)) == list(_hash_map(numbers, None)) != numbers
