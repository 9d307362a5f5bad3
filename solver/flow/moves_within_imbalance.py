"""For equal weights: the fewest moves within a given imbalance, between two bounds by flows.

At a price on moves, imbalance and moves together are one convex min-cost flow. The prices
that matter are those of one edge of the lower convex hull, the edge on which the imbalance
allowed lies. No assignment lies below that edge, and the points on it are assignments.
"""

from dataclasses import dataclass

import numpy as np

from kassay.reference.model.group import Group
from kassay.reference.model.result_cache import cached
from kassay.solver.flow.convex_frontier import MOST_ARCS, between, cheapest_at_price, values_of
from kassay.solver.flow.network import Counts, Network, build_network
from kassay.solver.problem import build_problem
from kassay.solver.solution import LevelValue


def fewest_moves(group: Group, sum_of_squares: int) -> LevelValue | None:
    """Bound the fewest moves to an assignment whose loads are no more imbalanced.

    Parameters
    ----------
    group
        The rebalance. Its capacities are ignored.
    sum_of_squares
        The most imbalance allowed, in weight squared.

    Returns
    -------
    Bounded or None
        Moves that are enough, and moves that are needed: mostly one number. None where
        the flow has nothing to say: weights differ, the group is too large, or no
        assignment is within the imbalance.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> members = (
    ...     Member(id="a", subscription=("t",), owned=[("t", p) for p in range(4)]),
    ...     Member(id="b", subscription=("t",)),
    ... )
    >>> group = Group(topics=(Topic(name="t", partitions=4),), members=members)
    >>> found = fewest_moves(group, 10)
    >>> found.value, found.bound
    (1, 1)
    """
    ends = _ends_of(group)
    return None if ends is None else _fewest(ends, sum_of_squares // ends.weight**2)


@dataclass(frozen=True, slots=True)
class _Ends:
    """The two ends of the hull, the same for every imbalance that is asked for.

    Parameters
    ----------
    network
        Where they were found.
    room
        The most that each member could get.
    weight
        What every partition weighs.
    left, right
        The fewest moves, and the least imbalance.
    """

    network: Network
    room: Counts
    weight: int
    left: Counts
    right: Counts


@cached
def _ends_of(group: Group) -> _Ends | None:
    problem = build_problem(group)
    if not problem.size or not group.common_weight:
        return None
    network = build_network(problem)
    room = np.bincount(
        network.head, weights=network.supply[network.tail], minlength=network.members
    ).astype(np.int64)
    if int(room.sum()) + len(network.tail) > MOST_ARCS:
        return None
    return _Ends(
        network,
        room,
        weight=group.common_weight,
        left=cheapest_at_price(network, room, 1, problem.size**2 + 1),
        right=cheapest_at_price(network, room, problem.size + 1, 1),
    )


def _fewest(ends: _Ends, cap: int) -> LevelValue | None:
    network, left, right = ends.network, ends.left, ends.right
    (k, v), (after, w) = values_of(network, left), values_of(network, right)
    if v <= cap:
        return LevelValue("movement", k, k)
    if w > cap:
        return None
    # `left` has too much imbalance, `right` has not; both are corners of the hull.
    while after > k + 1:
        middle = cheapest_at_price(network, ends.room, after - k, v - w)
        moves, squares = values_of(network, middle)
        if (after - k) * squares + (v - w) * moves >= (after - k) * v + (v - w) * k:
            break
        if squares > cap:
            left, k, v = middle, moves, squares
        else:
            right, after, w = middle, moves, squares
    found = min(
        (moves for moves, squares in _points(network, left, right, after) if squares <= cap),
        default=after,
    )
    # On the edge an imbalance of `cap` takes this many moves, rounded up.
    return LevelValue("movement", found, min(found, k - (cap - v) * (after - k) // (v - w)))


def _points(network: Network, left: Counts, right: Counts, after: int) -> list[tuple[int, int]]:
    if after <= values_of(network, left)[0] + 1:
        return []
    return [values_of(network, counts) for counts in between(network, left, right)]
