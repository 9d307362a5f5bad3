"""Lower bounds that need no search."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from heapq import merge
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from kassay.solver.evaluation import RackTable, imbalance_of, movement_costs
from kassay.solver.objective import (
    CrossRack,
    Imbalance,
    Level,
    Measure,
    MembersUsed,
    Movement,
    MovementCost,
    TopicSpread,
)
from kassay.solver.problem import Problem


def level_bound(problem: Problem, level: Level, ceilings: "Sequence[int] | None" = None) -> int:
    """Bound a level from below, over all assignments.

    Parameters
    ----------
    problem
        What has to be placed.
    level
        The level.
    ceilings
        The most load that each position may still have, as `load_ceiling` tells from
        earlier levels; it matters for movement.
    """
    match level:
        case Imbalance():
            return imbalance_bound(problem, level.measure)
        case Movement():
            return 0 if ceilings is None else overload_moves_bound(problem, level, ceilings)
        case CrossRack():
            near = RackTable(problem)
            return sum(
                not any(not near.far(row, at) for at in problem.sets[index].tolist())
                for row, index in enumerate(problem.set_of_row.tolist())
            )
        case TopicSpread():
            counts = np.bincount(problem.topic, minlength=len(problem.group.topics)).tolist()
            return sum(
                imbalance_of(
                    Measure.SUM_OF_SQUARES, rounded_up_mean(count, len(problem.sets[index]))
                )
                for count, index in zip(counts, problem.set_of_topic.tolist(), strict=True)
                if count
            )
        case MembersUsed():
            return 1 if problem.size else 0


def imbalance_bound(problem: Problem, measure: Measure) -> int:
    """Bound a measure of imbalance: all of ours are least at the least majorised vector.

    Examples
    --------
    >>> from kassay.reference.model.group import Group, Member, Topic
    >>> from kassay.solver.problem import build_problem
    >>> topic = Topic(name="t", partitions=4, weights=(5, 5, 5, 1))
    >>> members = (Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",)))
    >>> problem = build_problem(Group(topics=(topic,), members=members))
    >>> imbalance_bound(problem, Measure.SUM_OF_SQUARES), imbalance_bound(problem, Measure.MAKESPAN)
    (128, 10)
    """
    bound = imbalance_of(measure, least_vector(problem))
    if measure is Measure.MAKESPAN:
        return max(bound, makespan_bound(problem))
    if measure is Measure.SPREAD and problem.width:
        return max(bound, makespan_bound(problem) - problem.total // problem.width)
    return bound


def least_vector(problem: Problem) -> list[int]:
    """Return a load vector that every reachable one majorises, component by component.

    In each component of the subscription graph the loads add up to its total, and the k
    greatest loads to at least its k greatest weights.
    """
    unit = int(np.gcd.reduce(problem.weight)) or 1 if problem.size else 1
    vector: list[int] = []
    for positions, rows in components(problem):
        weights = sorted((int(w) // unit for w in problem.weight[rows]), reverse=True)
        vector.extend(unit * load for load in _water_fill(weights, len(positions)))
    return vector


def _water_fill(weights: Sequence[int], width: int) -> list[int]:
    """Give the greatest weights a member each while they exceed an even share of the rest."""
    left = sum(weights)
    alone: list[int] = []
    for weight in weights[: width - 1]:
        if weight * (width - len(alone)) <= left:
            break
        alone.append(weight)
        left -= weight
    return [*alone, *rounded_up_mean(left, width - len(alone))]


def rounded_up_mean(total: int, parts: int) -> list[int]:
    """Split a total into integers that differ by at most one, greater ones first.

    Examples
    --------
    >>> rounded_up_mean(8, 3)
    [3, 3, 2]
    """
    low, more = divmod(total, parts)
    return [low + 1] * more + [low] * (parts - more)


def components(problem: Problem) -> list[tuple[list[int], NDArray[np.intp]]]:
    """Split into parts that share no member: (positions, rows) each, ascending."""
    import networkx as nx  # noqa: PLC0415 - loads longer than a small solve takes

    graph: nx.Graph[int | tuple[str, int]] = nx.Graph()
    graph.add_nodes_from(range(problem.width))
    for index, consumers in enumerate(problem.sets):
        graph.add_edges_from((("set", index), at) for at in consumers.tolist())
    parts = []
    for part in nx.connected_components(graph):
        positions = sorted(node for node in part if isinstance(node, int))
        sets = sorted(node[1] for node in part if not isinstance(node, int))
        parts.append((positions, np.flatnonzero(np.isin(problem.set_of_row, sets))))
    return sorted(parts, key=lambda part: part[0])


def makespan_bound(problem: Problem) -> int:
    """Bound the greatest load: even shares of closed sets, and pigeonholes among weights."""
    best = 0
    for consumers, weights in _closed_sets(problem):
        total, width = sum(weights), len(consumers)
        best = max(best, -(-total // width), _pigeonhole(weights, width))
    unit = int(np.gcd.reduce(problem.weight)) or 1 if problem.size else 1
    return -(-best // unit) * unit


def _pigeonhole(weights: list[int], width: int) -> int:
    """Of the ``k * width + 1`` greatest weights some member has k + 1, and maybe the least ones.

    ``weights`` descend.
    """
    sums = list(accumulate(weights, initial=0))
    return max(
        (
            sums[count] - sums[count - 1 - (count - 1) // width]
            for count in range(1, len(weights) + 1, width)
        ),
        default=0,
    )


def _closed_sets(problem: Problem) -> Iterable[tuple[set[int], list[int]]]:
    """Yield sets of members, with the descending weights of the rows that nobody else can take.

    The consumers of each topic, the unions with all that overlap, and the components.
    """
    by_set = [
        sorted(problem.weight[problem.set_of_row == index].tolist(), reverse=True)
        for index in range(len(problem.sets))
    ]
    members = [frozenset(consumers.tolist()) for consumers in problem.sets]
    candidates = dict.fromkeys(members)
    candidates.update(dict.fromkeys(frozenset(part[0]) for part in components(problem)))
    for consumers in candidates:
        inside = [by_set[index] for index, other in enumerate(members) if other <= consumers]
        if consumers:
            yield set(consumers), list(merge(*inside, reverse=True))


def load_ceiling(problem: Problem, measure: Measure, limit: int) -> int:
    """Return the most load that one member can have where a measure is within its limit."""
    if not problem.width:
        return 0
    if measure is Measure.MAKESPAN:
        return limit
    low, high = 0, problem.total
    rest = problem.width - 1

    def least(load: int) -> int:
        vector = [load, *rounded_up_mean(problem.total - load, rest)] if rest else [load]
        return imbalance_of(measure, vector)

    low = -(-problem.total // problem.width)
    while low < high:
        middle = (low + high + 1) // 2
        if least(middle) <= limit:
            low = middle
        else:
            high = middle - 1
    return high


def overload_moves_bound(problem: Problem, level: Movement, ceilings: Sequence[int]) -> int:
    """Bound movement: what each member must shed of what it owns to come under its ceiling."""
    bound = 0
    for rows, ceiling in zip(owned_rows(problem), ceilings, strict=True):
        weights = [int(weight) for weight in problem.weight[rows]]
        excess = sum(weights) - ceiling
        if excess <= 0:
            continue
        if level.cost is MovementCost.WEIGHT:
            bound += excess
        elif level.cost is MovementCost.COUNT:
            bound += least_count(weights, excess)
        else:
            costs = [int(cost) for cost in movement_costs(problem, level)[rows]]
            bound += cheapest_share(weights, costs, excess)
    return bound


def owned_rows(problem: Problem) -> list[NDArray[np.intp]]:
    """Return the rows that each position owns, ascending."""
    order = np.argsort(problem.owner, kind="stable")
    starts = np.searchsorted(problem.owner[order], np.arange(problem.width + 1))
    return [order[starts[at] : starts[at + 1]] for at in range(problem.width)]


def least_count(weights: Iterable[int], excess: int) -> int:
    """Count the fewest weights that add up to an excess.

    Examples
    --------
    >>> least_count([3, 1, 4, 1], 5)
    2
    """
    count = 0
    for weight in sorted(weights, reverse=True):
        if excess <= 0:
            break
        excess -= weight
        count += 1
    return count


def cheapest_share(weights: Sequence[int], costs: Sequence[int], excess: int) -> int:
    """Bound the cost of weights that add up to an excess, by letting the last be split."""
    total = 0
    heavy = [pair for pair in zip(weights, costs, strict=True) if pair[0]]
    for weight, cost in sorted(heavy, key=lambda pair: Fraction(pair[1], pair[0])):
        if excess <= weight:
            return total - (-cost * excess // weight)
        excess -= weight
        total += cost
    return total
