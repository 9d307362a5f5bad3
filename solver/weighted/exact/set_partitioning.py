"""Cheapest set partitioning with one subset per member.

The problem is an integer program with one column per subset. The dual values of its linear
relaxation price the items; the reduced cost of a subset is its cost minus the prices of its items.
A partitioning costs the bound plus its reduced costs, so subsets beyond the remaining budget are
excluded. Prices are rounded to integers, and all integer prices give a valid bound. A
meet-in-the-middle search combines the subsets that are left.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.solver.enumeration.subset_enumeration import EnumerationLimitError, Subsets
from kassay.solver.number_ranges import Arithmetic
from kassay.solver.problem import Ints

SCALE = 2**16
_FIRST_SETS = 30
_SETS_PER_ROUND = 40
_ROUNDS = 40
_MAX_PARTIAL = 3_000_000  # partial partitions, and complete ones
_MAX_PAIRS = 400_000_000  # of partial partition and subset
_BLOCK = 4_000_000  # pairs that are compared at once


@dataclass(frozen=True, slots=True)
class ReducedCosts:
    """Lower bound on the cost of a set partitioning, and the reduced cost of each subset.

    Both are multiplied by `SCALE`.
    """

    bound: int
    reduced: tuple[Ints, ...]  # per member and subset; at least 0


def reduced_costs(
    columns: Sequence[Subsets], costs: Ints, may_continue: Callable[[], bool] = lambda: True
) -> ReducedCosts:
    """Compute the reduced costs of each member's subsets, and a lower bound on the cost.

    Every member has at least one subset; costs are at most 2**40. All prices are valid, so a
    reached limit only weakens them.
    """
    items = costs.shape[1]
    shared = {id(column): _bits(column, items) for column in columns}
    bits = [shared[id(column)] for column in columns]
    # Sums of integers are exact in floating point in this range, and faster than in 64 bits.
    subset_costs = [bit @ cost.astype(np.float64) for bit, cost in zip(bits, costs, strict=True)]
    worth = np.rint(_item_prices(bits, subset_costs, may_continue) * SCALE)
    dtype = np.float64 if Arithmetic.FLOAT.represents(int(np.abs(worth).sum())) else np.int64
    reduced = [
        SCALE * cost.astype(np.int64) - (bit.astype(dtype) @ worth.astype(dtype)).astype(np.int64)
        for bit, cost in zip(bits, subset_costs, strict=True)
    ]
    least = [int(price.min()) for price in reduced]
    return ReducedCosts(
        bound=sum(int(price) for price in worth) + sum(least),
        reduced=tuple(price - low for price, low in zip(reduced, least, strict=True)),
    )


def _bits(columns: Subsets, items: int) -> NDArray[np.float64]:
    return ((columns.mask[:, None] >> np.arange(items)) & 1).astype(np.float64)


def _item_prices(
    bits: Sequence[NDArray[np.float64]],
    subset_costs: Sequence[NDArray[np.float64]],
    may_continue: Callable[[], bool],
) -> NDArray[np.float64]:
    """Solve the linear relaxation by column generation, and return the dual values of the items."""
    # Imported here: the local search for low loads rarely needs it, and SciPy takes long to load.
    from scipy.optimize import linprog  # noqa: PLC0415

    items, members = bits[0].shape[1], len(bits)
    chosen = [np.argsort(cost, kind="stable")[:_FIRST_SETS] for cost in subset_costs]
    penalty = max(float(cost.max()) for cost in subset_costs) + 1
    slack = np.concatenate([np.eye(items), -np.eye(items)], axis=1)
    slack = np.concatenate([slack, np.zeros((members, 2 * items))])
    worth = np.zeros(items)
    for _ in range(_ROUNDS):
        if not may_continue():
            break
        parts = [
            _columns_of(bits[at][partitions], at, members) for at, partitions in enumerate(chosen)
        ]
        result = linprog(
            np.concatenate(
                [
                    *(subset_costs[at][partitions] for at, partitions in enumerate(chosen)),
                    np.full(2 * items, penalty),
                ]
            ),
            A_eq=np.concatenate([*parts, slack], axis=1),
            b_eq=np.ones(items + members),
            method="highs",
        )
        if result.status != 0:
            break
        duals = np.asarray(result.eqlin.marginals)
        worth = np.clip(duals[:items], -penalty, penalty)
        more = [
            _improving(subset_costs[at] - bits[at] @ worth - duals[items + at], chosen[at])
            for at in range(members)
        ]
        if not any(len(partitions) for partitions in more):
            break
        chosen = [np.concatenate(pair) for pair in zip(chosen, more, strict=True)]
    return worth


def _columns_of(bits: NDArray[np.float64], member: int, members: int) -> NDArray[np.float64]:
    own_row = np.zeros((members, len(bits)))
    own_row[member] = 1
    return np.concatenate([bits.T, own_row])


def _improving(reduced: NDArray[np.float64], known: Ints) -> Ints:
    """Return the new subsets with the most negative reduced costs."""
    threshold = -1e-7 * max(1.0, float(np.abs(reduced).max()))
    most = min(_SETS_PER_ROUND, len(reduced))
    partitions = np.argpartition(reduced, most - 1)[:most]
    partitions = partitions[reduced[partitions] < threshold]
    return np.setdiff1d(partitions, known)


class PricedSubsets(NamedTuple):
    """Subsets that one member may receive, in ascending order of their prices."""

    mask: Ints
    price: Ints


class PartialPartition(NamedTuple):
    """Choices of disjoint subsets for some members: union, price and subset indices."""

    mask: Ints
    price: Ints
    chosen: tuple[Ints, ...]


def partitions_by_price(
    members: Sequence[PricedSubsets],
    all_items: int,
    budget: int,
    may_continue: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[int, list[int]]]:
    """Yield set partitionings with one subset per member, cheapest first.

    Each set partitioning contains every item once. Each result is its price, at most the budget,
    and one mask per member. EnumerationLimitError if there are too many partial choices, or the
    time is up.
    """
    order = sorted(range(len(members)), key=lambda at: len(members[at].mask))
    sides = order[0::4] + order[3::4], order[1::4] + order[2::4]
    left, right = (_combine([members[at] for at in side], budget, may_continue) for side in sides)
    for price, one, other in _matches(left, right, all_items, budget):
        masks = [0] * len(members)
        for partial, index, side in ((left, one, sides[0]), (right, other, sides[1])):
            for at, chosen in zip(side, partial.chosen, strict=True):
                masks[at] = int(members[at].mask[chosen[index]])
        yield price, masks


def _combine(
    members: Sequence[PricedSubsets], budget: int, may_continue: Callable[[], bool]
) -> PartialPartition:
    """List all choices of one subset per member that are disjoint and within the budget."""
    partial = PartialPartition(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), ())
    for member in members:
        partial = _extend(partial, member, budget, may_continue)
    return partial


def _extend(
    partial: PartialPartition, member: PricedSubsets, budget: int, may_continue: Callable[[], bool]
) -> PartialPartition:
    reach = np.searchsorted(member.price, budget - partial.price, side="right")
    if int(reach.sum()) > _MAX_PAIRS:
        raise EnumerationLimitError
    order = np.argsort(-reach, kind="stable")
    partitions: list[Ints] = []
    picks: list[Ints] = []
    count, at = 0, 0
    while at < len(order) and (width := int(reach[order[at]])):
        block = order[at : at + max(1, _BLOCK // width)]
        at += len(block)
        free = (partial.mask[block][:, None] & member.mask[None, :width]) == 0
        free &= partial.price[block][:, None] + member.price[None, :width] <= budget
        partition, pick = np.nonzero(free)
        partitions.append(block[partition])
        picks.append(pick)
        count += len(partition)
        if count > _MAX_PARTIAL or not may_continue():
            raise EnumerationLimitError
    empty = np.zeros(0, dtype=np.int64)
    partition, pick = np.concatenate([empty, *partitions]), np.concatenate([empty, *picks])
    return PartialPartition(
        partial.mask[partition] | member.mask[pick],
        partial.price[partition] + member.price[pick],
        (*(chosen[partition] for chosen in partial.chosen), pick),
    )


def _matches(
    left: PartialPartition, right: PartialPartition, all_items: int, budget: int
) -> list[tuple[int, int, int]]:
    """Pair partial choices that together contain every item once, cheapest first."""
    by_mask = np.argsort(right.mask, kind="stable")
    ascending = right.mask[by_mask]
    missing = np.int64(all_items) ^ left.mask
    start = np.searchsorted(ascending, missing, side="left")
    count = np.searchsorted(ascending, missing, side="right") - start
    total = int(count.sum())
    if total > _MAX_PARTIAL:
        raise EnumerationLimitError
    one = np.repeat(np.arange(len(missing)), count)
    other = by_mask[np.repeat(start - np.cumsum(count) + count, count) + np.arange(total)]
    price = left.price[one] + right.price[other]
    keep = np.flatnonzero(price <= budget)
    keep = keep[np.argsort(price[keep], kind="stable")]
    return list(zip(price[keep].tolist(), one[keep].tolist(), other[keep].tolist(), strict=True))
