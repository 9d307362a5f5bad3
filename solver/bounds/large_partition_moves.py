"""Lower bound on moves if some partitions are heavier than half of the maximum load.

A member has at most one of these large partitions. Each choice of their members implies a
minimum number of moves per member, so the bound is the cost of an assignment problem.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import inf

import numpy as np

from kassay.solver.problem import Problem

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
    if not large or len(large) > min(_MAX_LARGE, problem.member_count):
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
    """Return the minimum cost of different columns for all rows (Hungarian method).

    The result is infinite if no choice of columns has a finite cost.
    """
    columns = len(costs[0])
    row_price, price = [0.0] * (len(costs) + 1), [0.0] * (columns + 1)
    row_of = [0] * (columns + 1)  # the last entry is the start of each augmenting path
    for row in range(1, len(costs) + 1):
        at, row_of[columns] = columns, row
        distance, before = [inf] * columns, [columns] * columns
        visited: list[int] = []
        is_free = [True] * columns
        while row_of[at]:
            visited.append(at)
            row_costs, offset = costs[row_of[at] - 1], row_price[row_of[at]]
            free = [column for column in range(columns) if is_free[column]]
            for column in free:
                reduced = row_costs[column] - offset - price[column]
                if reduced < distance[column]:
                    distance[column], before[column] = reduced, at
            nearest = min(free, key=distance.__getitem__)
            step = distance[nearest]
            if step == inf:
                return inf
            for seen in visited:
                row_price[row_of[seen]] += step
                price[seen] -= step
            for column in free:
                distance[column] -= step
            is_free[nearest], at = False, nearest
        while at != columns:
            row_of[at] = row_of[before[at]]
            at = before[at]
    return sum(costs[row - 1][column] for column, row in enumerate(row_of[:-1]) if row)
