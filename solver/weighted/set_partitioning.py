"""Exact covers by one set a member, cheapest first: partial covers met in the middle."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kassay.solver.weighted.subset_enumeration import Ints, TooManySubsetsError

_MOST_PARTIAL = 3_000_000
_MOST_PAIRS = 400_000_000
_BLOCK = 4_000_000


class PricedSet(NamedTuple):
    """The sets one member may take, cheapest first; prices are 0 or more."""

    mask: Ints
    price: Ints


class PartialCover(NamedTuple):
    """Disjoint sets of some members: their union, price, and which sets they are."""

    mask: Ints
    price: Ints
    chosen: tuple[Ints, ...]


def cheapest_cover(
    members: Sequence[PricedSet],
    everything: int,
    budget: int,
    accept: Callable[[Sequence[int]], bool] = lambda _: True,
) -> tuple[int, list[int]] | None:
    """Find the cheapest way to give each member one set so that every item is covered once.

    Parameters
    ----------
    members
        The sets of each member.
    everything
        Mask of all items.
    budget
        The most that the sets may cost together; all covers up to it are tried.
    accept
        Whether a cover, given as one mask a member, will do.

    Returns
    -------
    tuple or None
        Price and one mask a member; None if nothing acceptable is within budget.

    Raises
    ------
    TooManyError
        If there are too many partial covers.

    Examples
    --------
    >>> sets = PricedSet(np.array([1, 2, 3]), np.array([0, 4, 9]))
    >>> cheapest_cover([sets, sets], 3, 10)
    (4, [1, 2])
    """
    order = sorted(range(len(members)), key=lambda at: len(members[at].mask))
    sides = order[0::4] + order[3::4], order[1::4] + order[2::4]
    left, right = (_combine([members[at] for at in side], budget) for side in sides)
    for price, one, other in _matches(left, right, everything, budget):
        masks = [0] * len(members)
        for partial, index, side in ((left, one, sides[0]), (right, other, sides[1])):
            for at, chosen in zip(side, partial.chosen, strict=True):
                masks[at] = int(members[at].mask[chosen[index]])
        if accept(masks):
            return price, masks
    return None


def _combine(members: Sequence[PricedSet], budget: int) -> PartialCover:
    """List all disjoint choices of one set a member within budget."""
    partial = PartialCover(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), ())
    for member in members:
        partial = _extend(partial, member, budget)
    return partial


def _extend(partial: PartialCover, member: PricedSet, budget: int) -> PartialCover:
    reach = np.searchsorted(member.price, budget - partial.price, side="right")
    if int(reach.sum()) > _MOST_PAIRS:
        raise TooManySubsetsError
    order = np.argsort(-reach, kind="stable")
    rows: list[Ints] = []
    picks: list[Ints] = []
    found, at = 0, 0
    while at < len(order) and (width := int(reach[order[at]])):
        block = order[at : at + max(1, _BLOCK // width)]
        at += len(block)
        free = (partial.mask[block][:, None] & member.mask[None, :width]) == 0
        free &= partial.price[block][:, None] + member.price[None, :width] <= budget
        row, pick = np.nonzero(free)
        rows.append(block[row])
        picks.append(pick)
        found += len(row)
        if found > _MOST_PARTIAL:
            raise TooManySubsetsError
    empty = np.zeros(0, dtype=np.int64)
    row, pick = np.concatenate([empty, *rows]), np.concatenate([empty, *picks])
    return PartialCover(
        partial.mask[row] | member.mask[pick],
        partial.price[row] + member.price[pick],
        (*(chosen[row] for chosen in partial.chosen), pick),
    )


def _matches(
    left: PartialCover, right: PartialCover, everything: int, budget: int
) -> list[tuple[int, int, int]]:
    """Pairs of partial covers that complete each other, cheapest first."""
    by_mask = np.argsort(right.mask, kind="stable")
    ascending = right.mask[by_mask]
    missing = np.int64(everything) ^ left.mask
    start = np.searchsorted(ascending, missing, side="left")
    count = np.searchsorted(ascending, missing, side="right") - start
    total = int(count.sum())
    if total > _MOST_PARTIAL:
        raise TooManySubsetsError
    one = np.repeat(np.arange(len(missing)), count)
    other = by_mask[np.repeat(start - np.cumsum(count) + count, count) + np.arange(total)]
    price = left.price[one] + right.price[other]
    keep = np.flatnonzero(price <= budget)
    keep = keep[np.argsort(price[keep], kind="stable")]
    return list(zip(price[keep].tolist(), one[keep].tolist(), other[keep].tolist(), strict=True))
