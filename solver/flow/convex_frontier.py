"""Convex hull of the imbalance-movement frontier for equal weights, by network flows.

With a price on moves, imbalance and moves together are one convex minimum cost flow. Two
flows that are optimal at the same price differ by closed chains that conform to the
difference, and every partial sum of them is optimal too [1]_. Hence all points of an edge
of the hull follow from its two corners.

References
----------
.. [1] S. Onn. "Nonlinear Discrete Optimization". European Mathematical Society, 2010:
   decomposition into conformal circuits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kassay.reference.model.group import Group
from kassay.reference.model.result_cache import cached
from kassay.solver.flow.min_cost_flow import SinkArcs, min_cost_counts
from kassay.solver.problem import Ints, Placement, Problem, build_problem
from kassay.solver.solution import LevelValue
from kassay.solver.subscription_network import SubscriptionNetwork, build_network

# Larger networks take too long for one flow per corner.
_MAX_ARCS = 40_000


class HullPoint(NamedTuple):
    """A point on the hull: moves, sum of squared loads, and partitions per arc."""

    moves: int
    squares: int
    counts: Ints


@dataclass(frozen=True, slots=True)
class ConvexHull:
    """Lower convex hull of the points (moves, sum of squared loads)."""

    network: SubscriptionNetwork
    corners: tuple[HullPoint, ...]  # by ascending moves
    points: dict[int, HullPoint]  # by moves; each is non-dominated

    def placement(self, moves: int) -> Placement:
        """Return a placement with the moves and loads of a hull point."""
        return self.network.place(self.points[moves].counts)

    def min_squares(self, moves: int) -> int:
        """Return a lower bound on the sum of squared loads for a number of moves."""
        for left, right in pairwise(self.corners):
            if left.moves <= moves <= right.moves:
                drop = (left.squares - right.squares) * (moves - left.moves)
                return left.squares - drop // (right.moves - left.moves)
        return self.corners[-1 if moves >= self.corners[-1].moves else 0].squares


def convex_hull(problem: Problem) -> ConvexHull | None:
    """Find the convex hull for equal weights; None if the network is too large."""
    search = _HullSearch.of(problem)
    if search is None:
        return None
    corners = {point.moves: point for point in search.ends}
    points = dict(corners)
    waiting = [search.ends]
    while waiting:
        left, right = waiting.pop()
        if right.moves <= left.moves + 1:
            continue
        corner = search.corner_between(left, right)
        if corner is not None:
            corners[corner.moves] = points[corner.moves] = corner
            waiting += [(left, corner), (corner, right)]
            continue
        for point in search.edge(left, right):
            points.setdefault(point.moves, point)
    return ConvexHull(
        search.network,
        tuple(corners[moves] for moves in sorted(corners)),
        {moves: points[moves] for moves in sorted(points)},
    )


def fewest_moves(group: Group, sum_of_squares: int) -> LevelValue | None:
    """Return bounds on the minimum number of moves to a given sum of squared loads.

    The value is a sufficient number of moves. None if weights differ, the group is too
    large, or no assignment is within the limit. Capacities are ignored.
    """
    search = _search_of(group)
    if search is None or not group.common_weight:
        return None
    limit = sum_of_squares // group.common_weight**2
    left, right = search.ends
    if left.squares <= limit:
        return LevelValue("movement", left.moves, left.moves)
    if right.squares > limit:
        return None
    # `left` exceeds the limit, `right` does not; both stay corners of the hull.
    while right.moves > left.moves + 1:
        corner = search.corner_between(left, right)
        if corner is None:
            break
        left, right = (corner, right) if corner.squares > limit else (left, corner)
    edge = search.edge(left, right) if right.moves > left.moves + 1 else ()
    moves = min((point.moves for point in edge if point.squares <= limit), default=right.moves)
    # Moves at which the edge reaches the limit, rounded up.
    drop = (limit - left.squares) * (right.moves - left.moves)
    return LevelValue(
        "movement", moves, min(moves, left.moves - drop // (left.squares - right.squares))
    )


@cached
def _search_of(group: Group) -> "_HullSearch | None":
    return _HullSearch.of(build_problem(group)) if group.common_weight else None


@dataclass(frozen=True, slots=True)
class _HullSearch:
    """Search for points of the hull by minimum cost flows with a price per move."""

    network: SubscriptionNetwork
    max_counts: Ints
    ends: tuple[HullPoint, HullPoint]

    @classmethod
    def of(cls, problem: Problem) -> "_HullSearch | None":
        network = build_network(problem)
        max_counts = network.loads(network.supply[network.tail])
        size = problem.partition_count
        if not size or int(max_counts.sum()) + len(network.tail) > _MAX_ARCS:
            return None
        ends = (
            _cheapest(network, max_counts, 1, size**2 + 1),
            _cheapest(network, max_counts, size + 1, 1),
        )
        return cls(network, max_counts, ends)

    def corner_between(self, left: HullPoint, right: HullPoint) -> HullPoint | None:
        """Return a corner below the line through two points; None if no corner is below."""
        moves, squares = right.moves - left.moves, left.squares - right.squares
        point = _cheapest(self.network, self.max_counts, moves, squares)
        below = moves * point.squares + squares * point.moves
        return point if below < moves * left.squares + squares * left.moves else None

    def edge(self, left: HullPoint, right: HullPoint) -> Iterator[HullPoint]:
        """Yield the points of an edge of the hull, applying one chain of transfers at a time."""
        difference = _FlowDifference(self.network, right.counts - left.counts)
        counts = left.counts.copy()
        while difference.change.any():
            for arc, step in difference.next_chain():
                counts[arc] += step
            yield _point(self.network, counts.copy())


def _point(network: SubscriptionNetwork, counts: Ints) -> HullPoint:
    squares = int((network.loads(counts) ** 2).sum())
    return HullPoint(network.min_movement(counts), squares, counts)


def _cheapest(
    network: SubscriptionNetwork, max_counts: Ints, square_cost: int, move_cost: int
) -> HullPoint:
    """Minimise ``square_cost * sum of squares + move_cost * moves``."""
    members = np.repeat(np.arange(network.members), max_counts)
    steps = np.concatenate([np.arange(size, dtype=np.int64) for size in max_counts.tolist()])
    sinks = SinkArcs(members, np.zeros(len(members), np.int64), square_cost * (2 * steps + 1))
    demand = np.zeros(network.members + 1, dtype=np.int64)
    demand[-1] = network.supply.sum()
    arcs = np.arange(len(network.tail))
    return _point(
        network,
        min_cost_counts(network, arcs, move_cost=move_cost, sink_arcs=sinks, demand=demand),
    )


class _FlowDifference:
    """Difference of two flows, decomposed into chains of transfers."""

    def __init__(self, network: SubscriptionNetwork, change: Ints) -> None:
        self.change = change
        self.load_change = network.loads(change)
        self.tail, self.head = network.tail.tolist(), network.head.tolist()
        self.rising: list[list[int]] = [[] for _ in range(network.topics)]
        self.falling: list[list[int]] = [[] for _ in range(network.members)]
        for arc in np.flatnonzero(change).tolist():
            if change[arc] > 0:
                self.rising[self.tail[arc]].append(arc)
            else:
                self.falling[self.head[arc]].append(arc)

    def next_chain(self) -> list[tuple[int, int]]:
        """Remove a chain from the flow difference; return its arcs with direction +1 or -1."""
        falling = np.flatnonzero(self.load_change < 0)
        first = np.flatnonzero(self.change < 0)[0]
        chain = self._chain_from(int(falling[0]) if len(falling) else self.head[int(first)])
        for arc, step in chain:
            self.change[arc] -= step
            self.load_change[self.head[arc]] -= step
        return chain

    def _chain_from(self, start: int) -> list[tuple[int, int]]:
        """Follow arcs from a member until a member's load rises or the chain is a cycle."""
        chain: list[tuple[int, int]] = []
        visited_members: dict[int, int] = {start: 0}
        visited_topics: dict[int, int] = {}
        member = start
        while True:
            given = next(arc for arc in self.falling[member] if self.change[arc] < 0)
            topic = self.tail[given]
            if topic in visited_topics:
                # Closed at a topic: from its receiving arc to this giving arc.
                return [*chain[visited_topics[topic] + 1 :], (given, -1)]
            visited_topics[topic] = len(chain)
            chain.append((given, -1))
            received = next(arc for arc in self.rising[topic] if self.change[arc] > 0)
            chain.append((received, 1))
            member = self.head[received]
            if member in visited_members:
                return chain[visited_members[member] :]
            if self.load_change[member] > 0 and self.load_change[start] < 0:
                return chain
            visited_members[member] = len(chain)
