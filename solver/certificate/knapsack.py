"""Upper bounds on the total profit of the partitions that fit into one member (knapsack)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from kassay.solver.number_ranges import UNREACHABLE, Arithmetic
from kassay.solver.problem import Ints

# Maximum number of cells of a table: items times width.
_MAX_CELLS = 8_000_000
# Width of the table of weights that are rounded to a grid.
_GRID = 20_000


class Item(NamedTuple):
    """Knapsack item: a block of partitions with its profit, weight and set of alternatives.

    At most one item of a set of alternatives can be chosen; -1 means no set.
    """

    profit: int
    weight: int
    apart: int = -1


def maximum_profit(
    items: Sequence[Item], *, max_load: int, max_items: int | None = None, squares: int = 0
) -> int:
    """Return an upper bound on the profit of a knapsack with a maximum load.

    It is exact if the total profit or the maximum load is small.

    Parameters
    ----------
    items
        Items with profits above 0.
    max_items
        Greatest number of items, None for no limit.
    squares
        Cost per squared load.

    Examples
    --------
    >>> maximum_profit([Item(4, 3), Item(3, 2), Item(3, 2)], max_load=4)
    6
    >>> maximum_profit([Item(9, 1), Item(9, 1)], max_load=2, squares=4)
    5
    """
    items = [item for item in items if item.weight <= max_load]
    if not items:
        return 0
    most = _greatest_sum(items, max_items)
    if squares == 0:
        most = min(most, _fractional_profit(items, max_load))
    table = _table_profit(items, max_load, squares)
    return most if table is None else min(most, table)


def _greatest_sum(items: Sequence[Item], max_items: int | None) -> int:
    """Return the sum of the greatest profits, with one item per set of alternatives."""
    single = [item.profit for item in items if item.apart < 0]
    sets: dict[int, int] = {}
    for item in items:
        if item.apart >= 0:
            sets[item.apart] = max(sets.get(item.apart, 0), item.profit)
    profits = sorted([*single, *sets.values()], reverse=True)
    return sum(profits if max_items is None else profits[: max(max_items, 0)])


def _fractional_profit(items: Sequence[Item], max_load: int) -> int:
    """Return the maximum profit if one item can be split, rounded down."""
    total = sum(item.profit for item in items if item.weight == 0)
    heavy = [item for item in items if item.weight]
    for item in sorted(heavy, key=lambda item: Fraction(-item.profit, item.weight)):
        if item.weight >= max_load:
            return total + item.profit * max_load // item.weight
        total, max_load = total + item.profit, max_load - item.weight
    return total


def _table_profit(items: Sequence[Item], max_load: int, squares: int) -> int | None:
    """Compute the maximum profit by dynamic programming; return None for large instances."""
    profit = sum(item.profit for item in items)
    weight = sum(item.weight for item in items)
    width = min(max_load, weight)
    if not Arithmetic.INT64.represents(max(profit, weight, squares * max(width, 1) ** 2)):
        return None
    most = _MAX_CELLS // len(items)
    if width < most and width <= profit:
        gains = _greatest_profits(items, np.zeros(width + 1, dtype=np.int64))
        return int((gains - squares * np.arange(width + 1, dtype=np.int64) ** 2).max())
    if profit < most:
        # Profits and weights change roles: the least weight per exact total profit.
        swapped = [Item(-item.weight, item.profit, item.apart) for item in items]
        start = np.full(profit + 1, -UNREACHABLE // 2, dtype=np.int64)
        start[0] = 0
        least = -_greatest_profits(swapped, start)
        reached = np.flatnonzero(least <= width)
        return int((reached - squares * least[reached] ** 2).max())
    if squares:
        return None
    grain = width // min(most, _GRID) + 1  # rounding weights down keeps the bound valid
    coarse = [Item(item.profit, item.weight // grain, item.apart) for item in items]
    return int(_greatest_profits(coarse, np.zeros(width // grain + 1, dtype=np.int64)).max())


def _sets_of(items: Sequence[Item]) -> list[list[Item]]:
    """Group the items by set of alternatives; at most one item per set can be chosen."""
    sets: dict[int, list[Item]] = {}
    for index, item in enumerate(items):
        sets.setdefault(item.apart if item.apart >= 0 else -1 - index, []).append(item)
    return list(sets.values())


def _greatest_profits(items: Sequence[Item], profits: Ints) -> Ints:
    """Update ``profits``, the greatest profit for each total weight, with the given items."""
    for choice in _sets_of(items):
        before = profits.copy()
        for item in choice:
            taken = before[: len(profits) - item.weight] + item.profit
            profits[item.weight :] = np.maximum(profits[item.weight :], taken)
    return profits
