"""Most even loads that subscriptions and large weights permit, computed by counting."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.topic_partitions import Column
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
