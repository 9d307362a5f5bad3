"""Compute lower bounds on the levels of the objective without search."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from heapq import merge
from itertools import accumulate, pairwise
from math import inf, isqrt
from operator import itemgetter
from typing import NamedTuple, assert_never

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.load_metrics import LoadUnits, Measure
from kassay.reference.model.topic_partitions import Column
from kassay.solver import evaluation, objective
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.problem import UNREACHABLE, Problem, connected_components, positions_by_value

_MAX_CONSUMER_SETS = 5_000
# Limits of the rounds that balance divisible loads.
_ROUNDS = 30
_MAX_SHARES = 20_000
_PRECISION = 1e-6
_MAX_COMPARISONS = 1_000_000
"""Maximum number of comparisons of two sets. They take about 0.1 s."""


def level_bound(
    problem: Problem, level: objective.Level, limits: Sequence[tuple[objective.Level, int]] = ()
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
            racks = evaluation.RackTable(problem)
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
                evaluation.imbalance_of(
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
                for block in evaluation.colocation_blocks(problem, level)
            )
        case objective.FlowLevel():
            bound = 0
        case _:
            assert_never(level)
    return bound


def imbalance_bound(problem: Problem, measure: Measure) -> int:
    """Return a lower bound on the imbalance of a group.

    If all speeds are equal, the bound is the value of `most_even_loads`, because all measures are
    monotone in majorisation.
    """
    units = problem.member_units
    if not units.has_equal_speeds or problem.profiles is not None:
        return unit_imbalance_bound(problem, measure, units)
    bound = evaluation.imbalance_of(measure, most_even_loads(problem))
    if measure is Measure.MAKESPAN:
        return max(bound, makespan_bound(problem))
    if measure is Measure.SPREAD and problem.member_count:
        return max(bound, makespan_bound(problem) - problem.total // problem.member_count)
    return bound


def makespan_bound(problem: Problem, units: LoadUnits | None = None) -> int:
    """Return a lower bound on the maximum load, from mean loads and the largest weights.

    With different speeds, it is a bound on the maximum relative load, by default of the members.
    """
    units = problem.member_units if units is None else units
    if problem.profiles is not None:
        return peak_bound(problem, units).value
    best = 0
    for inside, weights in _closed_sets(problem, units):
        factors = [units.factors[unit] for unit in inside]
        best = max(
            best,
            _least_makespan(problem, sum(weights), factors),
            _pigeonhole_bound(weights, len(inside)) * min(factors),
        )
    return best


class PeakBound(NamedTuple):
    """Lower bound on the maximum load, and the weight windows that prove the bound."""

    value: int
    windows: tuple[int, ...]


_HIGH_SHARES = (0.0, 0.8, 0.95)
"""Windows are merged if their total load is at least this share of the greatest one."""


def peak_bound(problem: Problem, units: LoadUnits) -> PeakBound:
    """Return a lower bound on the maximum load over all weight windows."""
    if units.names not in problem.peaks:
        totals = [sum(column) for column in problem.load_table.T.tolist()]
        highest = max(totals, default=0)
        merged = ([at for at, t in enumerate(totals) if t >= s * highest] for s in _HIGH_SHARES)
        sets = [*([at] for at in range(len(totals))), *merged]
        bounds = (PeakBound(merged_bound(problem, units, each), tuple(each)) for each in sets)
        problem.peaks[units.names] = max(bounds, key=itemgetter(0))
    found: PeakBound = problem.peaks[units.names]
    return found


def merged_bound(problem: Problem, units: LoadUnits, windows: Sequence[int]) -> int:
    """Return a lower bound on the maximum load, from the sum of some weight windows."""
    return -(-makespan_bound(problem.merged_windows(windows), units) // len(windows))


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


def _closed_sets(problem: Problem, units: LoadUnits) -> Iterator[tuple[list[int], list[int]]]:
    """Yield sets of members (or hosts) with the weights that only the set can receive.

    The weights are in descending order. The sets are the consumers of each topic (of some topics,
    if there are many), and the components.
    """
    by_set: list[list[int]] = [[] for _ in problem.consumer_sets]
    for index, weight in zip(problem.consumer_set.tolist(), problem.weight.tolist(), strict=True):
        by_set[index].append(weight)
    for weights in by_set:
        weights.sort(reverse=True)
    sets = [frozenset(units.unit_of[at] for at in each.tolist()) for each in problem.consumer_sets]
    components = [sorted(inside) for inside, _ in connected_components(problem, units)]
    component_of = {unit: at for at, inside in enumerate(components) for unit in inside}
    received: list[list[list[int]]] = [[] for _ in components]
    for consumers, weights in zip(sets, by_set, strict=True):
        if consumers:
            received[component_of[min(consumers)]].append(weights)
    yield from (
        (inside, list(merge(*lists, reverse=True)))
        for inside, lists in zip(components, received, strict=True)
    )
    for inside in dict.fromkeys(sets[: _MAX_COMPARISONS // max(len(sets), 1)]):
        lists = [by_set[at] for at, consumers in enumerate(sets) if consumers <= inside]
        yield sorted(inside), list(merge(*lists, reverse=True))


def max_loads_within(
    problem: Problem, limits: Iterable[tuple[objective.Level, int]]
) -> list[int] | None:
    """Return the maximum load of each member within limits on imbalance; None without limits."""
    columns = [
        max_unit_loads(problem, level, limit)
        for level, limit in limits
        if isinstance(level, objective.Imbalance | objective.HostImbalance)
    ]
    return list(map(min, zip(*columns, strict=True))) if columns else None


def max_unit_loads(
    problem: Problem, level: objective.Imbalance | objective.HostImbalance, limit: int
) -> list[int]:
    """Return the maximum load of each member, or of its host, that a level's limit permits."""
    units, total = evaluation.load_units(problem, level), problem.total
    if problem.profiles is not None:
        shares = [limit // units.factors[unit] for unit in units.unit_of]
        if level.measure is Measure.SUM_OF_SQUARES:
            return [*map(isqrt, shares)]
        return shares if level.measure is Measure.MAKESPAN else [UNREACHABLE] * len(shares)
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
        loads = [load, *even_loads(total - load, members - 1)]
        return evaluation.imbalance_of(measure, loads) <= limit

    mean = total // members
    low = greatest_true(lambda step: is_within(mean - step), mean)
    high = greatest_true(lambda step: is_within(mean + step), total - mean)
    return mean - low, mean + high


def _movement_bound(
    problem: Problem, level: objective.Movement, limits: Sequence[tuple[objective.Level, int]]
) -> int:
    """Return a lower bound on movement, from the load limits of members and hosts.

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
    """Return a lower bound on the cost of the moves that remove all overloads."""
    cost = sum(_excess_costs(problem, level, max_loads))
    return max(cost, _large_partitions_bound(problem, level, max_loads))


def _large_partitions_bound(
    problem: Problem, level: objective.Movement, max_loads: Sequence[int]
) -> int:
    if level.cost is not objective.MovementCost.COUNT:
        return 0
    if problem.profiles is not None:
        windows = np.argsort(-problem.profiles.sum(axis=0), kind="stable")[:_MAX_PRICED_WINDOWS]
        return max(
            large_partition_moves_bound(problem.merged_windows([window]), max_loads)
            for window in windows.tolist()
        )
    return large_partition_moves_bound(problem, max_loads)


def _excess_costs(
    problem: Problem, level: objective.Movement, max_loads: Sequence[int]
) -> list[int]:
    """Return per member a lower bound on the cost of moves that remove its overload."""
    if level.cost is objective.MovementCost.COUNT and problem.profiles is None:
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
    """Return a lower bound on the cost of moves that lower an owned load to ``max_load``."""
    if problem.profiles is not None:
        return _excess_cost_of_windows(problem, level, partitions, max_load)
    weights = [int(weight) for weight in problem.weight[partitions]]
    excess = sum(weights) - max_load
    if excess <= 0:
        return 0
    if level.cost is objective.MovementCost.WEIGHT:
        return excess
    if level.cost is objective.MovementCost.COUNT:
        return min_count(weights, excess)
    costs = [int(cost) for cost in evaluation.movement_costs(problem, level)[partitions]]
    return fractional_cost(weights, costs, excess)


_MAX_PRICED_WINDOWS = 5
"""Maximum number of windows for bounds on moves of different costs or of large partitions."""


def _excess_cost_of_windows(
    problem: Problem, level: objective.Movement, partitions: NDArray[np.intp], max_load: int
) -> int:
    profiles = problem.load_table[partitions]
    excess = profiles.sum(axis=0) - max_load
    windows = np.flatnonzero(excess > 0)
    if not len(windows):
        return 0
    if level.cost is objective.MovementCost.COUNT:
        sums = np.cumsum(-np.sort(-profiles[:, windows], axis=0), axis=0)
        return int((sums < excess[windows]).sum(axis=0).max()) + 1
    costs = evaluation.movement_costs(problem, level)[partitions].tolist()
    highest = windows[np.argsort(-excess[windows], kind="stable")][:_MAX_PRICED_WINDOWS].tolist()
    return max(
        fractional_cost(profiles[:, window].tolist(), costs, int(excess[window]))
        for window in highest
    )


def owned_partitions(problem: Problem) -> list[NDArray[np.intp]]:
    """Return the owned partitions of each member in ascending order."""
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
    """Return a lower bound on the number of moves, from partitions with large weights.

    Large partitions are above half of the maximum load of any member. The bound is 0 if there are
    none or too many, or if no member can receive one of them.
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
    """Return the minimum number of partitions that must leave a member.

    The ``heavy`` heaviest partitions leave, and the others that stay have at most the load
    ``limit``.
    """
    sums = problem.owned_weight_sums[member]
    return max(heavy, bisect_left(sums, sums[-1] - limit, lo=heavy))


def _min_assignment_cost(costs: Sequence[Sequence[float]]) -> float:
    """Return the minimum cost to assign a different column to each row; inf if impossible."""
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
    """Return a lower bound on the makespan with at most ``max_moves`` moves.

    A member with an excess of owned load gives at least the heaviest partitions that sum to
    the excess. With different speeds, the makespan is the maximum relative load. ``low`` is a
    known bound, ``high`` an upper limit of the returned bound.
    """
    level = Imbalance(Measure.MAKESPAN)
    low = makespan_bound(problem) if low is None else low

    def is_too_low(makespan: int) -> bool:
        max_loads = max_unit_loads(problem, level, makespan)
        return overload_moves_bound(problem, Movement(), max_loads) > max_moves

    return low + greatest_true(lambda step: is_too_low(low + step - 1), high - low)


def most_even_loads(problem: Problem) -> list[int]:
    """Return loads that are at least as even as the loads of every assignment.

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
    """Yield numbers of members, with the total weight that only these members can receive.

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
    """Return the most even loads whose k greatest values sum to at least ``sums[k]``."""
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
    """Split a total load into integer loads that differ by at most one, in descending order."""
    low, more = divmod(total, parts)
    return [low + 1] * more + [low] * (parts - more)


def unit_imbalance_bound(problem: Problem, measure: Measure, units: LoadUnits) -> int:
    """Return a lower bound on the imbalance of members or hosts."""
    bound = 0
    if not units.names or not problem.total:
        return bound
    if problem.profiles is not None and measure is not Measure.SUM_OF_SQUARES:
        return makespan_bound(problem, units) if measure is Measure.MAKESPAN else 0
    match measure:
        case Measure.MAKESPAN:
            bound = makespan_bound(problem, units)
        case Measure.LEXIMAX:
            first = makespan_bound(problem, units)
            loads = [first, *[0] * (len(units.names) - 1)]
            bound = evaluation.rank_of_descending(loads, problem.total * max(units.factors))
        case Measure.SUM_OF_SQUARES:
            bound = sum(
                _least_squares(problem, total, [units.factors[unit] for unit in inside])
                for inside, partitions in connected_components(problem, units)
                for total in map(sum, problem.load_table[partitions].T.tolist())
            )
        case Measure.SPREAD:
            bound = max(makespan_bound(problem, units) - _greatest_minimum(problem, units), 0)
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
    """Return the maximum load of a member or host that a limit on imbalance permits."""
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


def _least_makespan(problem: Problem, load: int, factors: Sequence[int]) -> int:
    step = problem.weight_unit

    def is_too_low(limit: int) -> bool:
        return sum(limit // (factor * step) for factor in factors) * step < load

    return greatest_true(is_too_low, load * min(factors)) + 1 if load else 0


def _greatest_minimum(problem: Problem, units: LoadUnits) -> int:
    step = problem.weight_unit

    def fits(limit: int) -> bool:
        return sum(-(-limit // (factor * step)) for factor in units.factors) * step <= problem.total

    return greatest_true(fits, problem.total * min(units.factors))


def greatest_true(holds: Callable[[int], bool], most: int) -> int:
    """Find the greatest integer up to ``most`` for which a monotone condition is true."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _least_squares(problem: Problem, load: int, factors: Sequence[int]) -> int:
    """Return the minimum sum of load times relative load, for a total load.

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
