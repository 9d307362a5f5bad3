"""Most even loads that subscriptions and large weights permit, computed by counting."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.metrics import LoadUnits, Measure
from kassay.reference.model.topic_partitions import Column
from kassay.solver.evaluation import rank_of_descending
from kassay.solver.problem import Problem, connected_components

_MAX_CONSUMER_SETS = 5_000
# Limits of the rounds that balance divisible loads.
_ROUNDS = 30
_MAX_SHARES = 20_000
_PRECISION = 1e-6


def most_even_loads(problem: Problem) -> list[int]:
    """Return a load vector that every feasible load vector majorises.

    In each component of the subscription graph the loads add up to its total. The k greatest
    loads add up to at least the k greatest weights, and to at least the weight of the partitions
    that only k members can receive.
    """
    unit = problem.weight_unit
    loads: list[int] = []
    for members, partitions in connected_components(problem):
        weights = sorted((int(w) // unit for w in problem.weight[partitions]), reverse=True)
        sums = dict(enumerate(accumulate(weights[: len(members) - 1], initial=0)))
        for size, weight in _closed_sums(problem, members, partitions):
            sums[size] = max(weight // unit, sums.get(size, 0))
        sums[len(members)] = sum(weights)
        loads.extend(unit * load for load in _loads_with_sums(sums))
    return loads


def _closed_sums(
    problem: Problem, members: list[int], partitions: NDArray[np.intp]
) -> Iterator[tuple[int, int]]:
    """Yield sizes of sets of members, and the weight that only the members of a set can receive.

    The sets are the members of a component with the greatest loads if partitions are divisible.
    There are none for equal weights.
    """
    # np.unique would load numpy.ma, which adds to the start-up time.
    indices = np.flatnonzero(np.bincount(problem.consumer_set[partitions]))
    if not problem.group.is_weighted or not 1 < len(indices) <= _MAX_CONSUMER_SETS:
        return
    weights = np.zeros(len(problem.consumer_sets), dtype=problem.weight.dtype)
    np.add.at(weights, problem.consumer_set[partitions], problem.weight[partitions])
    consumers = [problem.consumer_sets[at] for at in indices]
    loads = _divisible_loads(consumers, weights[indices].astype(np.float64), problem.member_count)
    rank = np.zeros(problem.member_count, dtype=np.int64)
    rank[sorted(members, key=lambda member: -loads[member])] = np.arange(len(members))
    added = np.zeros(len(members), dtype=problem.weight.dtype)
    np.add.at(added, [rank[own].max() for own in consumers], weights[indices])
    yield from enumerate(accumulate(added.tolist()), start=1)


def _divisible_loads(
    consumers: Sequence[Column], weights: NDArray[np.float64], members: int
) -> NDArray[np.float64]:
    """Return the most even load per member, as if weights could be divided arbitrarily.

    Each round distributes the weight of one set of consumers after the other again, as evenly as
    possible.
    """
    loads = np.zeros(members)
    shares = [np.zeros(len(own)) for own in consumers]
    for _ in range(min(_ROUNDS, _MAX_SHARES // len(consumers))):
        largest = 0.0
        for at, own in enumerate(consumers):
            others = loads[own] - shares[at]
            ascending = np.sort(others)
            levels = (weights[at] + np.cumsum(ascending)) / np.arange(1, len(own) + 1)
            level = levels[np.count_nonzero(ascending <= levels) - 1]
            share = np.maximum(level - others, 0.0)
            largest = max(largest, float(np.abs(share - shares[at]).max()))
            loads[own], shares[at] = others + share, share
        if largest <= _PRECISION * float(loads.max()):
            break
    return loads


def _loads_with_sums(sums: Mapping[int, int]) -> list[int]:
    """Return the most even loads if the k greatest loads add up to at least given sums, by k.

    The sums include those of no load and of all loads.
    """
    hull: list[tuple[int, int]] = []
    for count, total in sorted(sums.items()):
        # The sums of the greatest loads are a concave function of their number.
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (count - hull[-2][0]) <= (
            total - hull[-2][1]
        ) * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        hull.append((count, total))
    return [
        load
        for (count, total), (further, greater) in pairwise(hull)
        for load in even_loads(greater - total, further - count)
    ]


def even_loads(total: int, parts: int) -> list[int]:
    """Split a total load into integer loads that differ by at most one, in descending order.

    Examples
    --------
    >>> even_loads(8, 3)
    [3, 3, 2]
    """
    low, more = divmod(total, parts)
    return [low + 1] * more + [low] * (parts - more)


_MAX_COMPARISONS = 1_000_000
"""Number of comparisons of two sets, which take about 0.1 s."""


def unit_imbalance_bound(problem: Problem, measure: Measure, units: LoadUnits) -> int:
    """Return a lower bound on the imbalance of members or hosts, for one measure."""
    bound = 0
    if not units.names or not problem.total:
        return bound
    match measure:
        case Measure.MAKESPAN:
            bound = _makespan_bound(problem, units)
        case Measure.LEXIMAX:
            first = _makespan_bound(problem, units)
            loads = [first, *[0] * (len(units.names) - 1)]
            bound = rank_of_descending(loads, problem.total * max(units.factors))
        case Measure.SUM_OF_SQUARES:
            bound = sum(
                _least_squares(
                    problem,
                    sum(problem.weight[partitions].tolist()),
                    [units.factors[unit] for unit in inside],
                )
                for inside, partitions in connected_components(problem, units)
            )
        case Measure.SPREAD:
            bound = max(_makespan_bound(problem, units) - _greatest_minimum(problem, units), 0)
        case Measure.DEVIATION:
            # The distance of a load to its share is at least that of the nearest multiple of the
            # weight unit.
            step = sum(units.speeds) * problem.weight_unit
            shares = [own * problem.total for own in units.speeds]
            bound = sum(min(share % step, -share % step) for share in shares)
        case Measure.BALANCE_SCORE:
            pass
    return bound


def max_unit_load(measure: Measure, total: int, limit: int, units: LoadUnits, unit: int) -> int:
    """Return the maximum load of a load unit if the imbalance is within a limit."""
    factor = units.factors[unit]
    if measure is Measure.MAKESPAN:
        return min(limit // factor, total)
    if measure is not Measure.SUM_OF_SQUARES:
        return total
    others = sum(units.speeds) - units.speeds[unit]
    multiple = factor * units.speeds[unit]

    def is_within(load: int) -> bool:
        # By the inequality of Cauchy and Schwarz, the other units have at least this value.
        rest = -(-((total - load) ** 2 * multiple) // others) if others else 0
        is_below_share = load * sum(units.speeds) <= total * units.speeds[unit]
        return is_below_share or load * load * factor + rest <= limit

    return greatest_true(is_within, total)


def _makespan_bound(problem: Problem, units: LoadUnits) -> int:
    best = max(
        _least_makespan(problem, load, [units.factors[unit] for unit in inside])
        for inside, load in _closed_sets(problem, units)
    )
    for index, consumers in enumerate(problem.consumer_sets):
        weights = problem.weight[problem.consumer_set == index]
        if len(weights):
            smallest = min(units.factors[units.unit_of[member]] for member in consumers.tolist())
            best = max(best, int(weights.max()) * smallest)
    return best


def _least_makespan(problem: Problem, load: int, factors: Sequence[int]) -> int:
    """Return the minimum makespan of a total load that can be split into weight units."""
    step = problem.weight_unit

    def is_too_low(limit: int) -> bool:
        return sum(limit // (factor * step) for factor in factors) * step < load

    return greatest_true(is_too_low, load * min(factors)) + 1 if load else 0


def _greatest_minimum(problem: Problem, units: LoadUnits) -> int:
    """Return an upper bound on the minimum relative load of the load units."""
    step = problem.weight_unit

    def fits(limit: int) -> bool:
        return sum(-(-limit // (factor * step)) for factor in units.factors) * step <= problem.total

    return greatest_true(fits, problem.total * min(units.factors))


def greatest_true(holds: Callable[[int], bool], most: int) -> int:
    """Find the greatest integer for which a monotone condition is true, by bisection."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _least_squares(problem: Problem, load: int, factors: Sequence[int]) -> int:
    """Return the minimum sum of load times relative load for a total load.

    The ``k``-th weight unit of a load unit with factor ``f`` costs ``(2 * k - 1) * f``; the
    cheapest weight units have the minimum sum.
    """
    parts = load // problem.weight_unit

    def count(cost: int, factor: int) -> int:
        return (cost // factor + 1) // 2

    def are_available(cost: int) -> bool:
        return sum(count(cost, factor) for factor in factors) <= parts

    low = greatest_true(are_available, (2 * parts + 1) * max(factors))
    counts = [count(low, factor) for factor in factors]
    squares = sum(number**2 * factor for number, factor in zip(counts, factors, strict=True))
    return int((squares + (parts - sum(counts)) * (low + 1)) * problem.weight_unit**2)


def compared_sets(count: int) -> int:
    """Return the number of sets that are compared with all of ``count`` sets in a short time."""
    return _MAX_COMPARISONS // max(count, 1)


def _closed_sets(problem: Problem, units: LoadUnits) -> Iterator[tuple[list[int], int]]:
    """Yield sets of load units, each with the load that only these units can receive."""
    sets = [frozenset(units.unit_of[at] for at in each.tolist()) for each in problem.consumer_sets]
    loads = [
        sum(problem.weight[problem.consumer_set == index].tolist()) for index in range(len(sets))
    ]
    compared = sets[: compared_sets(len(sets))]
    for units_of_set in dict.fromkeys((*compared, frozenset(range(len(units.names))))):
        inside = sum(load for other, load in zip(sets, loads, strict=True) if other <= units_of_set)
        yield sorted(units_of_set), inside
