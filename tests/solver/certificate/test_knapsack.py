"""Bounds on the profit of a member's partitions, compared with all subsets."""

import random
from itertools import combinations

import pytest

from kassay.solver.certificate.refutation import Item, maximum_profit


def best_subset(items, *, max_load, max_items=None, squares=0):
    """Return the greatest profit of all subsets within the limits."""
    return max(
        sum(item.profit for item in subset) - squares * sum(item.weight for item in subset) ** 2
        for size in range(len(items) + 1)
        for subset in combinations(items, size)
        if sum(item.weight for item in subset) <= max_load
        and (max_items is None or size <= max_items)
        and len({item.apart for item in subset if item.apart >= 0})
        == sum(item.apart >= 0 for item in subset)
    )


def random_items(rng, *, scale=1, sets=False, unit=1):
    return [
        Item(
            rng.randint(1, 9) * unit,
            rng.randint(0, 9) * scale,
            rng.choice((-1, 0, 1, -1)) if sets else -1,
        )
        for _ in range(rng.randint(0, 7))
    ]


@pytest.mark.parametrize("sets", [False, True])
@pytest.mark.parametrize(
    ("squares", "scale", "unit"),
    [(0, 1, 1), (0, 10**9, 1), (0, 1, 10**9), (1, 1, 1), (1, 1, 50), (10**6, 1000, 10**12)],
)
def test_the_maximum_is_exact_if_profits_or_loads_are_small(sets, squares, scale, unit):
    rng = random.Random(f"{sets}{squares}{scale}{unit}")
    for _ in range(150):
        items = random_items(rng, scale=scale, sets=sets, unit=unit)
        limit = rng.randint(0, 30) * scale
        bound = maximum_profit(items, max_load=limit, squares=squares)
        assert bound == best_subset(items, max_load=limit, squares=squares)


@pytest.mark.parametrize("scale", [1, 10**4, 10**17, 2**62])
def test_the_bound_is_valid_for_any_weights_and_limits(scale):
    rng = random.Random(scale)
    for _ in range(200):
        items = [
            Item(rng.randint(1, scale), rng.randint(0, scale), rng.choice((-1, -1, 0)))
            for _ in range(rng.randint(0, 6))
        ]
        limits = {
            "max_load": rng.randint(-1, 4 * scale),
            "max_items": rng.choice((None, 0, 1, 2, 5)),
            "squares": rng.choice((0, 0, 1, 3)),
        }
        best = best_subset(items, **limits) if limits["max_load"] >= 0 else 0
        assert maximum_profit(items, **limits) >= best


def test_the_number_of_items_limits_the_profit():
    items = [Item(5, 1), Item(4, 1), Item(3, 1)]
    assert maximum_profit(items, max_load=3) == 12
    assert maximum_profit(items, max_load=3, max_items=2) == 9
    assert maximum_profit(items, max_load=3, max_items=0) == 0


def test_one_item_of_a_set_counts():
    items = [Item(5, 1, 0), Item(4, 1, 0), Item(3, 1, 1)]
    assert maximum_profit(items, max_load=9) == 8
    assert maximum_profit(items, max_load=9, max_items=1) == 5


def test_large_weights_on_a_grid_give_a_tight_bound():
    rng = random.Random(5)
    items = [Item(rng.randint(10**9, 2 * 10**9), rng.randint(10**9, 2 * 10**9)) for _ in range(8)]
    for limit in (2 * 10**9, 5 * 10**9, 9 * 10**9):
        best = best_subset(items, max_load=limit)
        assert best <= maximum_profit(items, max_load=limit) <= best * 1.01


def test_a_split_item_gives_a_bound_beyond_64_bits():
    items = [Item(10, 2**62), Item(6, 2**61), Item(6, 2**61)]
    assert maximum_profit(items, max_load=2**62) == 12
    assert maximum_profit(items, max_load=2**62 + 2**60) == 12 + 10 // 4
    assert maximum_profit(items, max_load=2**61 - 1) == 0
    assert maximum_profit([Item(3, 0), Item(5, 2**62)], max_load=2**62) == 8


def test_one_item_of_a_set_counts_beyond_64_bits():
    items = [Item(5, 2**62, 0), Item(4, 2**62, 0), Item(3, 2**62, 1), Item(2, 2**62)]
    assert maximum_profit(items, max_load=2**64) == 10
    assert maximum_profit(items, max_load=2**64, max_items=2) == 8
