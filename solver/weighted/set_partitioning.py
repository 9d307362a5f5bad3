"""Cheapest set partitioning with one subset per member, by a meet-in-the-middle search."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kassay.solver.problem import Ints
from kassay.solver.weighted.subset_enumeration import TooManySubsetsError

_MAX_PARTIAL = 3_000_000
_MAX_PAIRS = 400_000_000
_BLOCK = 4_000_000


class PricedSubsets(NamedTuple):
    """Subsets that one member may receive, in ascending order of their prices."""

    mask: Ints
    price: Ints


class PartialPartition(NamedTuple):
    """Disjoint choice of one subset for some members: union, price and indices."""

    mask: Ints
    price: Ints
    chosen: tuple[Ints, ...]


def cheapest_partition(
    members: Sequence[PricedSubsets],
    all_items: int,
    budget: int,
    accept: Callable[[Sequence[int]], bool] = lambda _: True,
) -> tuple[int, list[int]] | None:
    """Find the cheapest choice of one subset per member that contains every item once.

    The result is its price and one mask per member; None if no accepted choice is within the
    budget. TooManySubsetsError if there are too many partial choices.
    """
    order = sorted(range(len(members)), key=lambda at: len(members[at].mask))
    sides = order[0::4] + order[3::4], order[1::4] + order[2::4]
    left, right = (_combine([members[at] for at in side], budget) for side in sides)
    for price, one, other in _matches(left, right, all_items, budget):
        masks = [0] * len(members)
        for partial, index, side in ((left, one, sides[0]), (right, other, sides[1])):
            for at, chosen in zip(side, partial.chosen, strict=True):
                masks[at] = int(members[at].mask[chosen[index]])
        if accept(masks):
            return price, masks
    return None


def _combine(members: Sequence[PricedSubsets], budget: int) -> PartialPartition:
    """List all disjoint choices of one subset per member within the budget."""
    partial = PartialPartition(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), ())
    for member in members:
        partial = _extend(partial, member, budget)
    return partial


def _extend(partial: PartialPartition, member: PricedSubsets, budget: int) -> PartialPartition:
    reach = np.searchsorted(member.price, budget - partial.price, side="right")
    if int(reach.sum()) > _MAX_PAIRS:
        raise TooManySubsetsError
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
        if count > _MAX_PARTIAL:
            raise TooManySubsetsError
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
    """Return pairs of partial choices that contain every item, cheapest first."""
    by_mask = np.argsort(right.mask, kind="stable")
    ascending = right.mask[by_mask]
    missing = np.int64(all_items) ^ left.mask
    start = np.searchsorted(ascending, missing, side="left")
    count = np.searchsorted(ascending, missing, side="right") - start
    total = int(count.sum())
    if total > _MAX_PARTIAL:
        raise TooManySubsetsError
    one = np.repeat(np.arange(len(missing)), count)
    other = by_mask[np.repeat(start - np.cumsum(count) + count, count) + np.arange(total)]
    price = left.price[one] + right.price[other]
    keep = np.flatnonzero(price <= budget)
    keep = keep[np.argsort(price[keep], kind="stable")]
    return list(zip(price[keep].tolist(), one[keep].tolist(), other[keep].tolist(), strict=True))
