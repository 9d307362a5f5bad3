"""Lower bounds on the levels of the objective, computed without search."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from heapq import merge
from itertools import accumulate
from math import inf
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver import objective
from kassay.solver.bounds.even_loads import (
    compared_sets,
    even_loads,
    greatest_true,
    max_unit_load,
    most_even_loads,
    unit_imbalance_bound,
)
from kassay.solver.evaluation import (
    RackTable,
    colocation_blocks,
    imbalance_of,
    load_units,
    movement_costs,
)
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.problem import Problem, connected_components, positions_by_value


def level_bound(
    problem: Problem,
    level: objective.Level,
    limits: Sequence[tuple[objective.Level, int]] = (),
) -> int:
    """Return a lower bound on the value of one level within the limits of earlier levels.

    Only the bound on movement uses the limits. If partitions can have several members, the bound
    is 0, because some of the members are optional.
    """
    if problem.copies is not None:
        return 0
    match level:
        case objective.Imbalance():
            bound = imbalance_bound(problem, level.measure)
        case objective.HostImbalance():
            bound = unit_imbalance_bound(problem, level.measure, problem.host_units)
        case objective.Movement():
            bound = _movement_bound(problem, level, limits)
        case objective.CrossRack():
            racks = RackTable(problem)
            bound = sum(
                all(
                    racks.is_cross_rack(partition, member)
                    for member in problem.consumer_sets[index].tolist()
                )
                for partition, index in enumerate(problem.consumer_set.tolist())
            )
        case objective.TopicSpread():
            counts = np.bincount(problem.topic, minlength=len(problem.group.topics)).tolist()
            bound = sum(
                imbalance_of(
                    Measure.SUM_OF_SQUARES, even_loads(count, len(problem.consumer_sets[index]))
                )
                for count, index in zip(counts, problem.consumer_set_of_topic.tolist(), strict=True)
                if count
            )
        case objective.MembersUsed():
            bound = 1 if problem.partition_count else 0
        case objective.Colocation():
            bound = sum(
                not problem.may_consume[problem.consumer_set[list(block)]].all(axis=0).any()
                for block in colocation_blocks(problem, level)
            )
        case objective.FlowLevel():
            bound = 0
        case _:
            assert_never(level)
    return bound


def imbalance_bound(problem: Problem, measure: Measure) -> int:
    """Return a lower bound on the imbalance of a group, for one measure of imbalance.

    All measures are monotone in majorisation, so `most_even_loads` has a minimal value if all
    speeds are equal.
    """
    units = problem.member_units
    if not units.has_equal_speeds:
        return unit_imbalance_bound(problem, measure, units)
    bound = imbalance_of(measure, most_even_loads(problem))
    if measure is Measure.MAKESPAN:
        return max(bound, makespan_bound(problem))
    if measure is Measure.SPREAD and problem.member_count:
        return max(bound, makespan_bound(problem) - problem.total // problem.member_count)
    return bound


def makespan_bound(problem: Problem) -> int:
    """Return a lower bound on the maximum load, from mean loads and the largest weights.

    With different speeds, it is a bound on the maximum relative load.
    """
    units = problem.member_units
    if not units.has_equal_speeds:
        return unit_imbalance_bound(problem, Measure.MAKESPAN, units)
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

    The weights are in descending order. The sets are the consumers of each topic (of some topics,
    if there are many), and the components.
    """
    by_set: list[list[int]] = [[] for _ in problem.consumer_sets]
    for index, weight in zip(problem.consumer_set.tolist(), problem.weight.tolist(), strict=True):
        by_set[index].append(weight)
    for weights in by_set:
        weights.sort(reverse=True)
    consumer_sets = [frozenset(consumers.tolist()) for consumers in problem.consumer_sets]
    candidates = dict.fromkeys(consumer_sets[: compared_sets(len(consumer_sets))])
    candidates.update(
        dict.fromkeys(frozenset(members) for members, _ in connected_components(problem))
    )
    for members in candidates:
        inside = [by_set[at] for at, consumers in enumerate(consumer_sets) if consumers <= members]
        yield len(members), list(merge(*inside, reverse=True))


def max_loads_within(
    problem: Problem, limits: Iterable[tuple[objective.Level, int]]
) -> list[int] | None:
    """Return the maximum load per member that the limits on imbalance allow.

    Return None if there is no limit on imbalance.
    """
    columns = [
        max_unit_loads(problem, level, limit)
        for level, limit in limits
        if isinstance(level, objective.Imbalance | objective.HostImbalance)
    ]
    return list(map(min, zip(*columns, strict=True))) if columns else None


def max_unit_loads(
    problem: Problem, level: objective.Imbalance | objective.HostImbalance, limit: int
) -> list[int]:
    """Return, per member, the maximum load of the member or its host within a level limit."""
    units, total = load_units(problem, level), problem.total
    if not units.has_equal_speeds:
        loads = [
            max_unit_load(level.measure, total, limit, units, unit)
            for unit in range(len(units.names))
        ]
        return [loads[unit] for unit in units.unit_of]
    most = limit
    if level.measure is not Measure.MAKESPAN and units.names:
        most = load_window(level.measure, total, len(units.names), limit)[1]
    return [most] * problem.member_count


def load_window(measure: Measure, total: int, members: int, limit: int) -> tuple[int, int]:
    """Return the minimum and maximum load of a member if the imbalance is within a limit."""
    if members == 1:
        return total, total

    def is_within(load: int) -> bool:
        return imbalance_of(measure, [load, *even_loads(total - load, members - 1)]) <= limit

    mean = total // members
    low = greatest_true(lambda step: is_within(mean - step), mean)
    high = greatest_true(lambda step: is_within(mean + step), total - mean)
    return mean - low, mean + high


def _movement_bound(
    problem: Problem, level: objective.Movement, limits: Sequence[tuple[objective.Level, int]]
) -> int:
    """Return a lower bound on movement, from the maximum loads of members and hosts.

    A move within a host does not lower the load of the host. Per host, the bound is the maximum of
    the bound of the host and the sum of the bounds of its members.
    """
    max_loads = max_loads_within(problem, limits)
    if max_loads is None:
        return 0
    per_member = _excess_costs(problem, level, max_loads)
    columns = [
        max_unit_loads(problem, earlier, limit)
        for earlier, limit in limits
        if isinstance(earlier, objective.HostImbalance)
    ]
    if not columns:
        return max(sum(per_member), _large_partitions_bound(problem, level, max_loads))
    units = problem.host_units
    bounds = units.loads(per_member)
    unit_of = np.array(units.unit_of, dtype=np.int64)
    owned = problem.owner != NO_OWNER
    host = np.where(owned, unit_of[np.where(owned, problem.owner, 0)], NO_OWNER)
    for member, load in enumerate(map(min, zip(*columns, strict=True))):
        unit = units.unit_of[member]
        cost = _excess_cost(problem, level, np.flatnonzero(host == unit), load)
        bounds[unit] = max(bounds[unit], cost)
    return sum(bounds)


def overload_moves_bound(
    problem: Problem, level: objective.Movement, max_loads: Sequence[int]
) -> int:
    """Return a lower bound on movement, from owned loads that exceed the members' maximum loads."""
    cost = sum(_excess_costs(problem, level, max_loads))
    return max(cost, _large_partitions_bound(problem, level, max_loads))


def _large_partitions_bound(
    problem: Problem, level: objective.Movement, max_loads: Sequence[int]
) -> int:
    if level.cost is not objective.MovementCost.COUNT:
        return 0
    return large_partition_moves_bound(problem, max_loads)


def _excess_costs(
    problem: Problem, level: objective.Movement, max_loads: Sequence[int]
) -> list[int]:
    """Return, per member, a lower bound on the cost of moves that lower its load to a maximum."""
    if level.cost is objective.MovementCost.COUNT:
        return [
            bisect_left(sums, sums[-1] - max_load)
            for sums, max_load in zip(problem.owned_weight_sums, max_loads, strict=True)
        ]
    return [
        _excess_cost(problem, level, partitions, max_load)
        for partitions, max_load in zip(owned_partitions(problem), max_loads, strict=True)
    ]


def _excess_cost(
    problem: Problem, level: objective.Movement, partitions: NDArray[np.intp], max_load: int
) -> int:
    """Return a lower bound on the cost of moves that lower owned loads to a maximum load."""
    weights = [int(weight) for weight in problem.weight[partitions]]
    excess = sum(weights) - max_load
    if excess <= 0:
        return 0
    if level.cost is objective.MovementCost.WEIGHT:
        return excess
    if level.cost is objective.MovementCost.COUNT:
        return min_count(weights, excess)
    costs = [int(cost) for cost in movement_costs(problem, level)[partitions]]
    return fractional_cost(weights, costs, excess)


def owned_partitions(problem: Problem) -> list[NDArray[np.intp]]:
    """Return, per member, the partitions that it owns, in ascending order."""
    return positions_by_value(problem.owner, problem.member_count)


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


_MAX_LARGE = 60
"""Maximum number of large partitions; the assignment problem takes cubic time."""


def large_partition_moves_bound(problem: Problem, max_loads: Sequence[int]) -> int:
    """Return a lower bound on the number of moves to placements within maximum loads.

    The bound is 0 if there are no large partitions, too many, or one that no member can receive.

    Examples
    --------
    >>> from kassay.reference.model.group import Group, Member, Topic
    >>> from kassay.solver.problem import build_problem
    >>> owned = {"a": [0, 1, 2], "b": [3, 4]}
    >>> members = [
    ...     Member(id=id, subscription=("t",), owned=[("t", p) for p in owned[id]]) for id in owned
    ... ]
    >>> topic = Topic(name="t", partitions=5, weights=(8, 1, 1, 2, 2))
    >>> large_partition_moves_bound(build_problem(Group(topics=(topic,), members=members)), [8, 8])
    2
    """
    half = min(max(max_loads, default=0), problem.total) // 2
    large = np.flatnonzero(problem.weight > half).tolist()
    nothing_moves = bool((problem.owner == NO_OWNER).all())
    if nothing_moves or not large or len(large) > min(_MAX_LARGE, problem.member_count):
        return 0
    owners = problem.owner[large].tolist()
    heavy = [owners.count(member) for member in range(problem.member_count)]
    without = [
        _leaving(problem, member, heavy[member], limit) for member, limit in enumerate(max_loads)
    ]
    costs: list[list[float]] = []
    for at, owner in zip(large, owners, strict=True):
        weight, allowed = int(problem.weight[at]), problem.may_consume[problem.consumer_set[at]]
        costs.append(
            [
                _leaving(problem, member, heavy[member], limit - weight)
                - int(owner == member)
                - without[member]
                if allowed[member] and weight <= limit
                else inf
                for member, limit in enumerate(max_loads)
            ]
        )
    change = _min_assignment_cost(costs)
    return 0 if change == inf else sum(without) + int(change)


def _leaving(problem: Problem, member: int, heavy: int, limit: int) -> int:
    """Return the minimum number of partitions that leave a member.

    The ``heavy`` heaviest partitions leave, and the others that stay have at most the load
    ``limit``.
    """
    sums = problem.owned_weight_sums[member]
    return max(heavy, bisect_left(sums, sums[-1] - limit, lo=heavy))


def _min_assignment_cost(costs: Sequence[Sequence[float]]) -> float:
    """Return the minimum cost of different columns for all rows, infinite if there is none."""
    table = np.array(costs)
    cheapest = table.argmin(axis=1)
    if len(set(cheapest.tolist())) == len(table):
        return float(table.min(axis=1).sum())
    # Imported here: SciPy is slow to load, and small groups rarely need it.
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    try:
        rows, columns = linear_sum_assignment(table)
    except ValueError:  # each choice has an infinite cost
        return inf
    return float(table[rows, columns].sum())


def makespan_bound_within(
    problem: Problem, max_moves: int, *, high: int, low: int | None = None
) -> int:
    """Return a lower bound on the makespan of placements with at most ``max_moves`` moves.

    A member with an excess of owned load gives at least the heaviest partitions that sum to
    the excess. With different speeds, the makespan is the maximum relative load. ``low`` is a
    known bound, ``high`` an upper limit of the returned bound.
    """
    level = Imbalance(Measure.MAKESPAN)
    low = makespan_bound(problem) if low is None else low
    while low < high:
        middle = (low + high) // 2
        max_loads = max_unit_loads(problem, level, middle)
        if overload_moves_bound(problem, Movement(), max_loads) <= max_moves:
            high = middle
        else:
            low = middle + 1
    return low
