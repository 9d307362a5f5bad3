"""Lower bounds on the levels of the objective, computed without search."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from heapq import merge
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.metrics import Measure
from kassay.solver import objective
from kassay.solver.evaluation import RackTable, imbalance_of, movement_costs
from kassay.solver.problem import Problem


def level_bound(
    problem: Problem, level: objective.Level, max_loads: Sequence[int] | None = None
) -> int:
    """Return a lower bound on the value of one level of the objective.

    Only the bound on movement uses ``max_loads``.
    """
    match level:
        case objective.Imbalance():
            return imbalance_bound(problem, level.measure)
        case objective.Movement():
            return 0 if max_loads is None else overload_moves_bound(problem, level, max_loads)
        case objective.CrossRack():
            racks = RackTable(problem)
            return sum(
                all(
                    racks.is_cross_rack(partition, member)
                    for member in problem.consumer_sets[index].tolist()
                )
                for partition, index in enumerate(problem.consumer_set.tolist())
            )
        case objective.TopicSpread():
            counts = np.bincount(problem.topic, minlength=len(problem.group.topics)).tolist()
            return sum(
                imbalance_of(
                    Measure.SUM_OF_SQUARES, even_loads(count, len(problem.consumer_sets[index]))
                )
                for count, index in zip(counts, problem.consumer_set_of_topic.tolist(), strict=True)
                if count
            )
        case objective.MembersUsed():
            return 1 if problem.partition_count else 0


def imbalance_bound(problem: Problem, measure: Measure) -> int:
    """Return a lower bound on the imbalance of a group, for one measure of imbalance.

    All measures are monotone in majorisation, so `majorised_loads` has a minimal value.
    """
    bound = imbalance_of(measure, majorised_loads(problem))
    if measure is Measure.MAKESPAN:
        return max(bound, makespan_bound(problem))
    if measure is Measure.SPREAD and problem.member_count:
        return max(bound, makespan_bound(problem) - problem.total // problem.member_count)
    return bound


def majorised_loads(problem: Problem) -> list[int]:
    """Return a load vector that every feasible load vector majorises.

    In each component of the subscription graph the loads add up to its total, and the k
    greatest loads to at least its k greatest weights.
    """
    unit = problem.weight_unit
    loads: list[int] = []
    for members, partitions in components(problem):
        weights = sorted((int(w) // unit for w in problem.weight[partitions]), reverse=True)
        loads.extend(unit * load for load in _even_loads_of_weights(weights, len(members)))
    return loads


def _even_loads_of_weights(weights: Sequence[int], members: int) -> list[int]:
    """Return the most even loads if only weights below the mean load can be split.

    Each weight above the mean load of the remaining members gets a member of its own.
    """
    rest = sum(weights)
    single: list[int] = []
    for weight in weights[: members - 1]:
        if weight * (members - len(single)) <= rest:
            break
        single.append(weight)
        rest -= weight
    return [*single, *even_loads(rest, members - len(single))]


def even_loads(total: int, parts: int) -> list[int]:
    """Split a total load into integer loads that differ by at most one, in descending order.

    Examples
    --------
    >>> even_loads(8, 3)
    [3, 3, 2]
    """
    low, more = divmod(total, parts)
    return [low + 1] * more + [low] * (parts - more)


def components(problem: Problem) -> list[tuple[list[int], NDArray[np.intp]]]:
    """Return the connected components of the subscription graph as (members, partitions)."""
    if any(len(consumers) == problem.member_count for consumers in problem.consumer_sets):
        return [([*range(problem.member_count)], np.arange(problem.partition_count))]
    if not problem.consumer_sets:
        return []
    first, first_of_set = _first_connected(problem)
    numbers, part_of_member = np.unique(first, return_inverse=True)
    part_of_set = np.searchsorted(numbers, first_of_set)
    members_of = _positions(part_of_member, len(numbers))
    partitions_of = _positions(part_of_set[problem.consumer_set], len(numbers))
    return [
        (inside.tolist(), partitions)
        for inside, partitions in zip(members_of, partitions_of, strict=True)
    ]


def _first_connected(problem: Problem) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Label each member and each set of consumers with the first member of its component."""
    members = np.concatenate(problem.consumer_sets)
    sizes = [len(consumers) for consumers in problem.consumer_sets]
    starts = np.cumsum([0, *sizes[:-1]])
    first, following = np.arange(0), np.arange(problem.member_count)
    while not np.array_equal(first, following):
        first = following
        of_set = np.minimum.reduceat(first[members], starts)
        following = first.copy()
        np.minimum.at(following, members, np.repeat(of_set, sizes))
        following = following[following]
    return first, of_set


def _positions(column: NDArray[np.integer], count: int) -> list[NDArray[np.intp]]:
    """Return, per value from 0 to ``count - 1``, its positions in the column, ascending."""
    order = np.argsort(column, kind="stable")
    starts = np.searchsorted(column[order], np.arange(count + 1))
    return [order[starts[at] : starts[at + 1]] for at in range(count)]


def makespan_bound(problem: Problem) -> int:
    """Return a lower bound on the maximum load, from mean loads and the largest weights."""
    best = 0
    for members, weights in _closed_member_sets(problem):
        best = max(best, -(-sum(weights) // members), _pigeonhole_bound(weights, members))
    unit = problem.weight_unit
    return -(-best // unit) * unit


def _pigeonhole_bound(weights: list[int], members: int) -> int:
    # Descending weights: one member has at least k + 1 of the first `k * members + 1`.
    sums = list(accumulate(weights, initial=0))
    return max(
        (
            sums[count] - sums[count - 1 - (count - 1) // members]
            for count in range(1, len(weights) + 1, members)
        ),
        default=0,
    )


def _closed_member_sets(problem: Problem) -> Iterator[tuple[int, list[int]]]:
    """Yield, per set of members, its size and the weights that only these members can receive.

    The weights are in descending order. The sets are the consumers of each topic and the
    components.
    """
    by_set = [
        sorted(problem.weight[problem.consumer_set == index].tolist(), reverse=True)
        for index in range(len(problem.consumer_sets))
    ]
    consumer_sets = [frozenset(consumers.tolist()) for consumers in problem.consumer_sets]
    candidates = dict.fromkeys(consumer_sets)
    candidates.update(dict.fromkeys(frozenset(members) for members, _ in components(problem)))
    for members in candidates:
        inside = [by_set[at] for at, consumers in enumerate(consumer_sets) if consumers <= members]
        yield len(members), list(merge(*inside, reverse=True))


def max_loads_within(
    problem: Problem, limits: Iterable[tuple[objective.Level, int]]
) -> list[int] | None:
    """Return the maximum load per member that the limits on imbalance allow.

    Return None if there is no limit on imbalance.
    """
    loads = [
        limit
        if level.measure is Measure.MAKESPAN or not problem.member_count
        else load_window(level.measure, problem.total, problem.member_count, limit)[1]
        for level, limit in limits
        if isinstance(level, objective.Imbalance)
    ]
    return [min(loads)] * problem.member_count if loads else None


def load_window(measure: Measure, total: int, members: int, limit: int) -> tuple[int, int]:
    """Return the minimum and maximum load of a member if the imbalance is within a limit."""
    if members == 1:
        return total, total

    def is_within(load: int) -> bool:
        return imbalance_of(measure, [load, *even_loads(total - load, members - 1)]) <= limit

    mean = total // members
    low = _last_true(lambda step: is_within(mean - step), mean)
    high = _last_true(lambda step: is_within(mean + step), total - mean)
    return mean - low, mean + high


def _last_true(holds: Callable[[int], bool], most: int) -> int:
    """Find the greatest integer for which a monotone condition is true, by bisection."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def overload_moves_bound(
    problem: Problem, level: objective.Movement, max_loads: Sequence[int]
) -> int:
    """Return a lower bound on movement, from owned loads that exceed the members' maximum loads."""
    bound = 0
    for partitions, max_load in zip(owned_partitions(problem), max_loads, strict=True):
        weights = [int(weight) for weight in problem.weight[partitions]]
        excess = sum(weights) - max_load
        if excess <= 0:
            continue
        if level.cost is objective.MovementCost.WEIGHT:
            bound += excess
        elif level.cost is objective.MovementCost.COUNT:
            bound += min_count(weights, excess)
        else:
            costs = [int(cost) for cost in movement_costs(problem, level)[partitions]]
            bound += fractional_cost(weights, costs, excess)
    return bound


def owned_partitions(problem: Problem) -> list[NDArray[np.intp]]:
    """Return, per member, the partitions that it owns, in ascending order."""
    return _positions(problem.owner, problem.member_count)


def min_count(weights: Iterable[int], excess: int) -> int:
    """Return the minimum number of weights with a sum of at least ``excess``."""
    sums = accumulate(sorted(weights, reverse=True), initial=0)
    return next(count for count, total in enumerate(sums) if total >= excess)


def fractional_cost(weights: Sequence[int], costs: Sequence[int], excess: int) -> int:
    """Return a lower bound on the cost of moving weights with a sum of at least ``excess``."""
    total = 0
    positive = [pair for pair in zip(weights, costs, strict=True) if pair[0]]
    for weight, cost in sorted(positive, key=lambda pair: Fraction(pair[1], pair[0])):
        if excess <= weight:
            return total - (-cost * excess // weight)
        excess -= weight
        total += cost
    return total
