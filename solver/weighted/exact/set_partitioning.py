"""Cheapest set partitioning with one subset per member, by a meet-in-the-middle search."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kassay.solver.enumeration.subset_enumeration import EnumerationLimitError
from kassay.solver.problem import Ints

_MAX_PARTIAL = 3_000_000
_MAX_PAIRS = 400_000_000
_BLOCK = 4_000_000


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
    partial: PartialPartition,
    member: PricedSubsets,
    budget: int,
    may_continue: Callable[[], bool],
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
