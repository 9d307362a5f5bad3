"""Small weighted groups to proven optimality, both levels at once.

Loads near the even share are rare: of the 2^40 sets of 40 partitions some ten thousand
weigh a sixth of the total to the unit. All sets in a window of loads are listed, and the
cheapest cover by one set a member is found among them. The window grows until there is
a cover; what it excludes is proven worse. The idea of searching windows of subset sums
is that of Schreiber, Korf and Moffitt ("Optimal multi-way number partitioning", Journal
of the ACM 65(4), 2018).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kassay.solver.bounds import rounded_up_mean
from kassay.solver.evaluation import imbalance_of
from kassay.solver.objective import Measure
from kassay.solver.weighted.pricing import SCALE, price_sets
from kassay.solver.weighted.set_partitioning import PricedSet, cheapest_cover
from kassay.solver.weighted.subset_enumeration import (
    Ints,
    Subsets,
    TooManySubsetsError,
    enumerate_subsets,
)

_NOISE = 64
_MOST_COST = 2**24


@dataclass(frozen=True, slots=True)
class Subproblem:
    """Items that several members may take, as one component of a group.

    Parameters
    ----------
    weights
        Load of each item.
    base
        Load that each member has anyway.
    allowed
        Mask of the items that each member may take.
    costs
        What each item costs with each member, shape (members, items).
    """

    weights: Ints
    base: tuple[int, ...]
    allowed: tuple[int, ...]
    costs: Ints

    @property
    def total(self) -> int:
        """Load of all members together."""
        return int(self.weights.sum()) + sum(self.base)

    def loads(self, masks: Sequence[int]) -> list[int]:
        """Load of each member with these sets."""
        weights = self.weights.tolist()
        return [
            base + sum(weight for at, weight in enumerate(weights) if mask >> at & 1)
            for base, mask in zip(self.base, masks, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class ExactResult:
    """An optimal cover.

    Parameters
    ----------
    masks
        The items of each member.
    imbalance
        Its imbalance, the least possible.
    cost
        Its cost, the least possible at that imbalance.
    """

    masks: tuple[int, ...]
    imbalance: int
    cost: int


def solve_small(piece: Subproblem, measure: Measure, *, seed: int = 0) -> ExactResult | None:
    """Find the least imbalance, and the least cost at it; None if the piece is too large.

    Examples
    --------
    >>> free = np.zeros((2, 3), dtype=np.int64)
    >>> piece = Subproblem(np.array([5, 4, 3]), (0, 0), (0b111, 0b111), free)
    >>> proven = solve_small(piece, Measure.SUM_OF_SQUARES)
    >>> sorted(proven.masks), proven.imbalance
    ([1, 6], 74)
    """
    if measure not in (Measure.SUM_OF_SQUARES, Measure.MAKESPAN):
        return None
    if int(piece.costs.max(initial=0)) * len(piece.weights) > _MOST_COST:
        return None
    excluded = -1
    try:
        for limit in _limits(piece, measure):
            found = _least(piece, measure, excluded, limit, seed)
            if found is not None:
                return found
            excluded = limit
    except TooManySubsetsError:
        return None
    return None


def _limits(piece: Subproblem, measure: Measure) -> Iterator[int]:
    """Limits of the imbalance to try: from the even share on, windows that double."""
    total = piece.total
    shares = rounded_up_mean(total, len(piece.base))
    yield imbalance_of(measure, shares)
    reach = 1
    while len(piece.base) > 1:
        outside = [at for at in (shares[-1] - reach, shares[0] + reach) if 0 <= at <= total]
        if not outside:
            break
        yield min(imbalance_of(measure, _with(piece, load)) for load in outside)
        reach *= 2
    yield imbalance_of(measure, [total, *[0] * (len(piece.base) - 1)])


def _least(
    piece: Subproblem, measure: Measure, excluded: int, limit: int, seed: int
) -> ExactResult | None:
    """Find the best cover within a limit, knowing that none is within ``excluded``."""
    if measure is Measure.SUM_OF_SQUARES:
        least = limit if excluded < 0 else _least_squares(piece, limit)
        return None if least is None else _cheapest(piece, measure, least, seed)
    best = _cheapest(piece, measure, limit, seed)
    while best is not None and best.imbalance - excluded > 1 and excluded >= 0:
        middle = (excluded + best.imbalance) // 2
        better = _cheapest(piece, measure, middle, seed)
        if better is None:
            excluded = middle
        else:
            best = better
    return best


def _least_squares(piece: Subproblem, limit: int) -> int | None:
    """Find the least sum of squares within a limit."""
    centre = piece.total // len(piece.base)
    columns = _columns(piece, Measure.SUM_OF_SQUARES, limit)
    # Centred on the mean, squares differ from those of the loads by this constant.
    constant = 2 * centre * piece.total - len(piece.base) * centre * centre
    priced = [
        _by_price(column.mask, (column.weight + base - centre) ** 2)
        for column, base in zip(columns, piece.base, strict=True)
    ]
    found = cheapest_cover(priced, _everything(piece), limit - constant)
    return None if found is None else found[0] + constant


def _cheapest(piece: Subproblem, measure: Measure, limit: int, seed: int) -> ExactResult | None:
    """Find the cheapest cover within a limit of the imbalance.

    A little noise on the costs makes the optimum unique, which keeps the number of sets
    with small reduced prices down; it is too small to change which covers are cheapest.
    """
    columns = _columns(piece, measure, limit)
    if any(not len(column.mask) for column in columns):
        return None
    factor = _NOISE * len(piece.weights) + 1
    noise = np.random.default_rng(seed).integers(0, _NOISE, size=piece.costs.shape)
    costs = piece.costs * factor + noise
    prices = price_sets(columns, costs)
    most = SCALE * int(costs.max(axis=0).sum()) - prices.bound
    budget = SCALE * _NOISE
    while True:
        priced = [
            _by_price(column.mask, reduced, min(budget, most))
            for column, reduced in zip(columns, prices.reduced, strict=True)
        ]
        found = cheapest_cover(
            priced,
            _everything(piece),
            min(budget, most),
            lambda masks: imbalance_of(measure, piece.loads(masks)) <= limit,
        )
        if found is not None:
            cost = sum(_cost(piece, at, mask) for at, mask in enumerate(found[1]))
            return ExactResult(tuple(found[1]), imbalance_of(measure, piece.loads(found[1])), cost)
        if budget >= most:
            return None
        budget += min(budget, SCALE * factor // 2)


def _columns(piece: Subproblem, measure: Measure, limit: int) -> list[Subsets]:
    """List for each member the sets that keep its load within the window of a limit."""
    low, high = _window(piece, measure, limit)
    lists: dict[tuple[int, int], Subsets] = {}
    for base, allowed in zip(piece.base, piece.allowed, strict=True):
        if (base, -1) not in lists:
            lists[base, -1] = enumerate_subsets(piece.weights, low - base, high - base)
        if (base, allowed) not in lists:
            lists[base, allowed] = lists[base, -1].within(allowed)
    return [lists[key] for key in zip(piece.base, piece.allowed, strict=True)]


def _by_price(mask: Ints, price: Ints, budget: int | None = None) -> PricedSet:
    if budget is not None:
        keep = price <= budget
        mask, price = mask[keep], price[keep]
    order = np.argsort(price, kind="stable")
    return PricedSet(mask[order], price[order])


def _everything(piece: Subproblem) -> int:
    return (1 << len(piece.weights)) - 1


def _cost(piece: Subproblem, member: int, mask: int) -> int:
    costs = piece.costs[member].tolist()
    return sum(cost for at, cost in enumerate(costs) if mask >> at & 1)


def _with(piece: Subproblem, load: int) -> list[int]:
    return [load, *rounded_up_mean(piece.total - load, len(piece.base) - 1)]


def _window(piece: Subproblem, measure: Measure, limit: int) -> tuple[int, int]:
    """Least and greatest load that a member can have within a limit of the imbalance."""
    width, total = len(piece.base), piece.total
    if width == 1:
        return total, total

    def fits(load: int) -> bool:
        return imbalance_of(measure, [load, *rounded_up_mean(total - load, width - 1)]) <= limit

    share = total // width
    low = _last(lambda step: fits(share - step), share)
    high = _last(lambda step: fits(share + step), total - share)
    return share - low, share + high


def _last(holds: Callable[[int], bool], most: int) -> int:
    """Return the last step up to which something that holds at first goes on holding."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
