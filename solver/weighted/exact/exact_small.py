"""Minimise imbalance, then movement, exactly for small weighted groups.

All subsets of partitions with a load in a window around the mean are listed, and the
cheapest set partitioning with one subset per member is found among them. The window grows
until a partitioning exists; everything outside is proven worse. The search over windows of
subset sums is that of Schreiber, Korf and Moffitt ("Optimal multi-way number partitioning",
Journal of the ACM 65(4), 2018).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.counting import even_loads, load_window
from kassay.solver.enumeration.subset_enumeration import (
    EnumerationLimitError,
    Subsets,
    contained,
    enumerate_subsets,
)
from kassay.solver.evaluation import imbalance_of
from kassay.solver.number_ranges import Weights
from kassay.solver.problem import Ints, Problem
from kassay.solver.weighted.exact.set_partitioning import (
    SCALE,
    PricedSubsets,
    partitions_by_price,
    reduced_costs,
)

_NOISE = 64
_MAX_COST = 2**24
# Prices of subsets have at most this many bits, so that sums of them fit 64 bits.
_PRICE_BITS = 58


@dataclass(frozen=True, slots=True)
class Subproblem:
    """Subproblem of one component: partitions (items), and members that may receive them."""

    weights: Weights
    base: tuple[int, ...]  # fixed load per member
    allowed: tuple[int, ...]  # mask of items per member
    costs: Ints  # shape (members, items)
    may_continue: Callable[[], bool] = lambda: True

    @property
    def total(self) -> int:
        """Return the total load of the items and of the fixed loads."""
        return sum(map(int, self.weights), sum(self.base))

    def loads(self, masks: Sequence[int]) -> list[int]:
        """Return the load of each member, given the bit mask of its items."""
        weights = self.weights.tolist()
        return [
            base + sum(weight for at, weight in enumerate(weights) if mask >> at & 1)
            for base, mask in zip(self.base, masks, strict=True)
        ]

    def partitions(
        self, priced: Sequence[PricedSubsets], budget: int
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield set partitionings of the items, see `partitions_by_price`."""
        all_items = (1 << len(self.weights)) - 1
        return partitions_by_price(priced, all_items, budget, self.may_continue)


def allowed_items(
    problem: Problem, partitions: NDArray[np.intp], members: Sequence[int]
) -> tuple[int, ...]:
    """Return, per member, the bit mask of the partitions that it may consume."""
    may_consume = problem.may_consume[problem.consumer_set[partitions]][:, members]
    return tuple(sum(1 << at for at in np.flatnonzero(column).tolist()) for column in may_consume.T)


@dataclass(frozen=True, slots=True)
class ExactResult:
    """Optimal distribution of items: items per member, imbalance, and cost of moves."""

    masks: tuple[int, ...]
    imbalance: int
    cost: int


def solve_small(
    subproblem: Subproblem, measure: Measure, *, seed: int = 0, minimum: int | None = None
) -> ExactResult | None:
    """Minimise the imbalance of a small group, then the cost of moves.

    ``minimum`` is the minimum imbalance, if it is known. Return None if the component is too
    large, the time of the subproblem is up, the sum of the costs is too large, or the measure is
    neither the sum of squares nor the makespan.
    """
    if measure not in (Measure.SUM_OF_SQUARES, Measure.MAKESPAN):
        return None
    if int(subproblem.costs.max(initial=0)) * len(subproblem.weights) > _MAX_COST:
        return None
    excluded = -1
    try:
        if minimum is not None:
            return _cheapest(subproblem, measure, minimum, seed)
        for limit in _imbalance_limits(subproblem, measure):
            result = _best_within(subproblem, measure, excluded, limit, seed)
            if result is not None:
                return result
            excluded = limit
    except EnumerationLimitError:
        return None
    return None


def _imbalance_limits(subproblem: Subproblem, measure: Measure) -> Iterator[int]:
    """Yield increasing imbalance limits to try, starting with the lower bound.

    Each further limit allows wider load windows.
    """
    total = subproblem.total
    shares = even_loads(total, len(subproblem.base))
    yield imbalance_of(measure, shares)
    reach = 1
    while len(subproblem.base) > 1:
        outside = [at for at in (shares[-1] - reach, shares[0] + reach) if 0 <= at <= total]
        if not outside:
            break
        others = len(subproblem.base) - 1
        yield min(
            imbalance_of(measure, [load, *even_loads(total - load, others)]) for load in outside
        )
        reach *= 2
    yield imbalance_of(measure, [total, *[0] * (len(subproblem.base) - 1)])


def _best_within(
    subproblem: Subproblem, measure: Measure, excluded: int, limit: int, seed: int
) -> ExactResult | None:
    """Find the best distribution of items with an imbalance within a limit.

    It is known that no distribution has an imbalance within ``excluded``.
    """
    if measure is Measure.SUM_OF_SQUARES:
        least = limit if excluded < 0 else _min_squares(subproblem, limit)
        return None if least is None else _cheapest(subproblem, measure, least, seed)
    best = _cheapest(subproblem, measure, limit, seed)
    while best is not None and best.imbalance - excluded > 1 and excluded >= 0:
        middle = (excluded + best.imbalance) // 2
        better = _cheapest(subproblem, measure, middle, seed)
        if better is None:
            excluded = middle
        else:
            best = better
    return best


def _min_squares(subproblem: Subproblem, limit: int) -> int | None:
    """Find the minimum sum of squared loads, if it is within a limit."""
    centre = subproblem.total // len(subproblem.base)
    columns = _columns(subproblem, Measure.SUM_OF_SQUARES, limit)
    # Difference between the squares of loads and of loads centred on the mean.
    constant = 2 * centre * subproblem.total - len(subproblem.base) * centre * centre
    most = limit - constant
    # Rounded down, prices are lower bounds on the exact squares.
    shift = max(most.bit_length() - _PRICE_BITS, 0)
    priced = [
        _sorted_by_price(column.mask, _squares(column.weight, base - centre, shift))
        for column, base in zip(columns, subproblem.base, strict=True)
    ]
    best: int | None = None
    for price, masks in subproblem.partitions(priced, most >> shift):
        if best is not None and price << shift >= best:
            break
        exact = sum((load - centre) ** 2 for load in subproblem.loads(masks))
        if exact <= most and (best is None or exact < best):
            best = exact
    return None if best is None else best + constant


def _squares(weight: Weights, offset: int, shift: int) -> Ints:
    """Add an offset to the weights, square the sums, divide by ``2**shift``, and round down."""
    if shift:
        weight = weight.astype(object)
    return np.asarray(((weight + offset) ** 2) >> shift, dtype=np.int64)


def _cheapest(
    subproblem: Subproblem, measure: Measure, limit: int, seed: int
) -> ExactResult | None:
    """Find the distribution of items with the lowest cost of moves within an imbalance limit.

    Noise on the costs makes the optimum unique, so that few subsets have small reduced
    costs. It is too small to change which partitionings are cheapest.
    """
    if not subproblem.may_continue():
        raise EnumerationLimitError
    columns = _columns(subproblem, measure, limit)
    if any(not len(column.mask) for column in columns):
        return None
    factor = _NOISE * len(subproblem.weights) + 1
    noise = np.random.default_rng(seed).integers(0, _NOISE, size=subproblem.costs.shape)
    costs = subproblem.costs * factor + noise
    found = reduced_costs(columns, costs, subproblem.may_continue)
    most = SCALE * int(costs.max(axis=0).sum()) - found.bound
    budget = SCALE * _NOISE
    while True:
        priced = [
            _sorted_by_price(column.mask, reduced, min(budget, most))
            for column, reduced in zip(columns, found.reduced, strict=True)
        ]
        for _, masks in subproblem.partitions(priced, min(budget, most)):
            imbalance = imbalance_of(measure, subproblem.loads(masks))
            if imbalance <= limit:
                chosen = np.array([contained(mask, len(subproblem.weights)) for mask in masks])
                cost = int(subproblem.costs[chosen].sum())
                return ExactResult(tuple(masks), imbalance, cost)
        if budget >= most:
            return None
        budget += min(budget, SCALE * factor // 2)


def _columns(subproblem: Subproblem, measure: Measure, limit: int) -> list[Subsets]:
    """List, per member, the subsets of items with a load that an imbalance limit allows."""
    low, high = load_window(measure, subproblem.total, len(subproblem.base), limit)
    lists: dict[tuple[int, int], Subsets] = {}
    for base, allowed in zip(subproblem.base, subproblem.allowed, strict=True):
        if not subproblem.may_continue():
            raise EnumerationLimitError
        if (base, -1) not in lists:
            lists[base, -1] = enumerate_subsets(subproblem.weights, low - base, high - base)
        if (base, allowed) not in lists:
            lists[base, allowed] = lists[base, -1].within(allowed)
    return [lists[key] for key in zip(subproblem.base, subproblem.allowed, strict=True)]


def _sorted_by_price(mask: Ints, price: Ints, budget: int | None = None) -> PricedSubsets:
    if budget is not None:
        keep = price <= budget
        mask, price = mask[keep], price[keep]
    order = np.argsort(price, kind="stable")
    return PricedSubsets(mask[order], price[order])
