"""Find points on the convex hull of moves and sum of squared loads, for equal weights.

With a price on moves, imbalance and moves together are one convex minimum cost flow. Two
flows that are optimal at the same price differ by closed chains that conform to the
difference, and every sum of some of them is optimal too [1]_. Hence all points of an edge
of the hull follow from its two corners.

References
----------
.. [1] S. Onn. "Nonlinear Discrete Optimization". European Mathematical Society, 2010:
   decomposition into conformal circuits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.reference.model.group import Group, cached
from kassay.solver.flow.convex_flow import ConvexFlow
from kassay.solver.flow.optimal_flow import optimal_counts
from kassay.solver.network.level_network import SQUARES_AND_MOVES, LevelNetwork, level_network
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.problem import Ints, Placement, Problem, build_problem
from kassay.solver.solution import LevelValue

MayContinue = Callable[[], bool]


class FlowPoint(NamedTuple):
    """Partition counts per arc, with their moves and their sum of squared loads."""

    moves: int
    squares: int
    counts: Ints


@dataclass(frozen=True, slots=True)
class BoundedPoint:
    """Point (moves, sum of squares) within a limit on one value, and a bound on the other value."""

    point: FlowPoint
    bound: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Chain of transfers: arcs with direction +1 or -1, and changes in moves and squared loads."""

    arcs: tuple[tuple[int, int], ...]
    moves: int  # increase of the moves
    squares: int  # increase of the sum of squared loads


def _nearest_below(chains: list[Chain], point: FlowPoint, limit: int) -> FlowPoint:
    """Apply chains to a point, most moves first; skip chains that exceed the limit of moves."""
    for chain in sorted(chains, key=lambda chain: -chain.moves):
        if point.moves + chain.moves <= limit:
            point = with_chain(point, chain)
    return point


def _first_within(chains: list[Chain], point: FlowPoint, limit: int) -> FlowPoint:
    """Apply chains of transfers to a point until its sum of squares is within a limit.

    The point falls below the limit by as little as possible.
    """
    rest = []
    for chain in sorted(chains, key=lambda chain: chain.squares):
        if point.squares + chain.squares >= limit:
            point = with_chain(point, chain)
        else:
            rest.append(chain)
    return point if point.squares <= limit else with_chain(point, rest[-1])


def with_chain(point: FlowPoint, chain: Chain) -> FlowPoint:
    """Apply a chain of transfers to a point on a hull edge, and return the new point."""
    counts = point.counts.copy()
    for arc, step in chain.arcs:
        counts[arc] += step
    return FlowPoint(point.moves + chain.moves, point.squares + chain.squares, counts)


_moves, _squares = attrgetter("moves"), attrgetter("squares")


def _flow_point(network: SubscriptionNetwork, counts: Ints) -> FlowPoint:
    squares = int((network.loads(counts) ** 2).sum())
    return FlowPoint(network.min_movement(counts), squares, counts)


def fewest_moves_point(network: SubscriptionNetwork, balanced: Ints) -> FlowPoint:
    """Find the flow with the fewest moves and, among those, the minimum sum of squares.

    ``balanced`` are counts per arc with even loads.
    """
    arcs = level_network(network.problem, SQUARES_AND_MOVES, network)
    kept = np.zeros_like(arcs.high)
    kept[arcs.members] = np.minimum(network.loads(network.owned), network.max_counts)
    flow = ConvexFlow(arcs).cheapest(
        arcs.weighted(SQUARES_AND_MOVES[::-1]), arcs.flow_of(balanced), kept
    )
    if flow is None:
        raise InternalError("no flow meets the capacities of the members")
    return _flow_point(network, arcs.counts(flow))


@dataclass(frozen=True, slots=True)
class HullSearch:
    """Search for points of the convex hull by minimum cost flows with a price per move."""

    arcs: LevelNetwork
    ends: tuple[FlowPoint, FlowPoint]  # fewest moves, minimum sum of squares

    @classmethod
    def of(cls, network: SubscriptionNetwork, balanced: Ints | None = None) -> "HullSearch":
        """Find both ends of the hull, and create a search between them.

        ``balanced`` contains optimal counts per arc, if they are known.
        """
        counts = optimal_counts(network) if balanced is None else balanced
        arcs = level_network(network.problem, SQUARES_AND_MOVES, network)
        return cls(arcs, (fewest_moves_point(network, counts), _flow_point(network, counts)))

    @property
    def network(self) -> SubscriptionNetwork:
        """Network of the partitions and members."""
        return self.arcs.network

    def corner_between(self, left: FlowPoint, right: FlowPoint) -> FlowPoint | None:
        """Return a corner below the line through two points, or None if no corner is below."""
        moves, squares = right.moves - left.moves, left.squares - right.squares
        flow = ConvexFlow(self.arcs).cheapest(
            tuple(zip(SQUARES_AND_MOVES, (moves, squares), strict=True)),
            *(self.arcs.flow_of(end.counts) for end in self.ends),
        )
        if flow is None:
            raise InternalError("no flow has the loads of a known placement")
        point = _flow_point(self.network, self.arcs.counts(flow))
        below = moves * point.squares + squares * point.moves
        return point if below < moves * left.squares + squares * left.moves else None

    def chains(self, left: FlowPoint, right: FlowPoint) -> list[Chain]:
        """Decompose the difference of two points on a hull edge into chains of transfers.

        Each sum of some chains gives a point on the edge.
        """
        difference = _FlowDifference(self.network, right.counts - left.counts)
        loads = self.network.loads(left.counts)
        return [self._effect(left.counts, loads, arcs) for arcs in difference.chains()]

    def _effect(self, counts: Ints, loads: Ints, arcs: list[tuple[int, int]]) -> Chain:
        moves = 0
        change: dict[int, int] = {}
        owned, head = self.network.owned, self.network.head
        for arc, step in arcs:
            if step > 0:
                moves += bool(counts[arc] >= owned[arc]) - 1
            else:
                moves += 1 - bool(counts[arc] > owned[arc])
            member = int(head[arc])
            change[member] = change.get(member, 0) + step
        squares = sum(2 * int(loads[at]) * step + step * step for at, step in change.items())
        return Chain(tuple(arcs), moves, squares)

    def within_moves(
        self, limit: int, may_continue: MayContinue = lambda: True
    ) -> BoundedPoint | None:
        """Minimise the sum of squared loads with a limit on moves.

        Return None if the limit is too low.
        """
        found = self._within(
            self.ends,
            limit,
            may_continue,
            limited=_moves,
            minimised=_squares,
            point_on_edge=_nearest_below,
        )
        if found is None:
            return None
        # All sums of squares have the parity of the number of partitions.
        parity = (found.bound - self.network.problem.partition_count) % 2
        return BoundedPoint(found.point, found.bound + parity)

    def within_squares(
        self, limit: int, may_continue: MayContinue = lambda: True
    ) -> BoundedPoint | None:
        """Minimise moves with a limit on the sum of squared loads.

        Return None if the limit is too low.
        """
        return self._within(
            self.ends[::-1],
            limit,
            may_continue,
            limited=_squares,
            minimised=_moves,
            point_on_edge=_first_within,
        )

    def _within(
        self,
        ends: tuple[FlowPoint, FlowPoint],
        limit: int,
        may_continue: MayContinue,
        *,
        limited: Callable[[FlowPoint], int],
        minimised: Callable[[FlowPoint], int],
        point_on_edge: Callable[[list[Chain], FlowPoint, int], FlowPoint],
    ) -> BoundedPoint | None:
        """Find the hull edge that crosses a limit, and a point on the edge within the limit.

        The first end of the hull has the minimum of the limited value.
        """
        inside, outside = ends
        if limited(inside) > limit:
            return None
        if limited(outside) <= limit:
            return BoundedPoint(outside, minimised(outside))
        bound = minimised(outside) + 1
        while abs(inside.moves - outside.moves) > 1:
            if not may_continue():
                return BoundedPoint(inside, bound)
            left, right = sorted((inside, outside), key=_moves)
            corner = self.corner_between(left, right)
            base = inside if corner is None else corner
            width = limited(outside) - limited(inside)
            height = minimised(inside) - minimised(outside)
            bound = max(bound, minimised(base) - height * (limit - limited(base)) // width)
            if corner is None:
                point = point_on_edge(self.chains(left, right), left, limit)
                return BoundedPoint(point, min(bound, minimised(point)))
            inside, outside = (corner, outside) if limited(corner) <= limit else (inside, corner)
        return BoundedPoint(inside, minimised(inside))


class _FlowDifference:
    """Difference of two flows, decomposed into chains of transfers."""

    def __init__(self, network: SubscriptionNetwork, change: Ints) -> None:
        arcs = np.flatnonzero(change).tolist()
        self.left = dict(zip(arcs, np.abs(change[arcs]).tolist(), strict=True))
        self.load_change = network.loads(change).tolist()
        tails, heads = network.tail[arcs].tolist(), network.head[arcs].tolist()
        self.tail = dict(zip(arcs, tails, strict=True))
        self.head = dict(zip(arcs, heads, strict=True))
        self.rising: dict[int, list[int]] = {}  # arcs by topic
        self.falling: dict[int, list[int]] = {}  # arcs by member
        for arc, is_rising in zip(arcs, (change[arcs] > 0).tolist(), strict=True):
            if is_rising:
                self.rising.setdefault(self.tail[arc], []).append(arc)
            else:
                self.falling.setdefault(self.head[arc], []).append(arc)

    def chains(self) -> list[list[tuple[int, int]]]:
        """Decompose the whole difference into chains: open chains first, then closed ones."""
        found = []
        for member in sorted(self.falling):
            while self.load_change[member] < 0:
                found.append(self._remove(member))
        for member in sorted(self.falling):
            while self._last_arc(self.falling[member]) is not None:
                found.append(self._remove(member))
        return found

    def _remove(self, member: int) -> list[tuple[int, int]]:
        chain = self._chain_from(member)
        for arc, step in chain:
            self.left[arc] -= 1
            self.load_change[self.head[arc]] -= step
        return chain

    def _last_arc(self, arcs: list[int]) -> int | None:
        """Return the last arc in a list that has a remaining flow difference.

        Remove the arcs after it from the list. Return None if no arc has a difference.
        """
        while arcs and not self.left[arcs[-1]]:
            arcs.pop()
        return arcs[-1] if arcs else None

    def _chain_from(self, start: int) -> list[tuple[int, int]]:
        """Follow arcs from a member to a member with rising load, or until they form a cycle."""
        chain: list[tuple[int, int]] = []
        visited_members: dict[int, int] = {start: 0}
        visited_topics: dict[int, int] = {}
        member = start
        while True:
            given = self._last_arc(self.falling[member])
            if given is None:
                raise InternalError("a difference of two flows is not balanced")
            topic = self.tail[given]
            if topic in visited_topics:
                # Closed at a topic: from its receiving arc to this giving arc.
                return [*chain[visited_topics[topic] + 1 :], (given, -1)]
            visited_topics[topic] = len(chain)
            chain.append((given, -1))
            received = self._last_arc(self.rising[topic])
            if received is None:
                raise InternalError("a difference of two flows is not balanced")
            chain.append((received, 1))
            member = self.head[received]
            if member in visited_members:
                return chain[visited_members[member] :]
            if self.load_change[member] > 0 and self.load_change[start] < 0:
                return chain
            visited_members[member] = len(chain)


# Larger networks take too long for one flow per corner.
_MAX_ARCS = 40_000


@dataclass(frozen=True, slots=True)
class ConvexHull:
    """Lower convex hull of the points (moves, sum of squared loads)."""

    network: SubscriptionNetwork
    corners: tuple[FlowPoint, ...]  # by ascending moves
    points: dict[int, FlowPoint]  # by moves; each is non-dominated

    def placement(self, moves: int) -> Placement:
        """Return the placement of the hull point with the given number of moves."""
        return self.network.place(self.points[moves].counts)

    def min_squares(self, moves: int) -> int:
        """Return a lower bound on the sum of squared loads for a number of moves."""
        for left, right in pairwise(self.corners):
            if left.moves <= moves <= right.moves:
                drop = (left.squares - right.squares) * (moves - left.moves)
                return left.squares - drop // (right.moves - left.moves)
        return self.corners[-1 if moves >= self.corners[-1].moves else 0].squares


def convex_hull(problem: Problem, may_continue: MayContinue) -> ConvexHull | None:
    """Find the convex hull of the frontier of a group with equal weights.

    Return None if the network is too large, or the search may not continue.
    """
    search = _hull_search(problem)
    if search is None:
        return None
    corners = {point.moves: point for point in search.ends}
    points = dict(corners)
    waiting = [search.ends]
    while waiting:
        if not may_continue():
            return None
        left, right = waiting.pop()
        if right.moves <= left.moves + 1:
            continue
        corner = search.corner_between(left, right)
        if corner is not None:
            corners[corner.moves] = points[corner.moves] = corner
            waiting += [(left, corner), (corner, right)]
            continue
        point = left
        for chain in search.chains(left, right):
            point = with_chain(point, chain)
            points.setdefault(point.moves, point)
    return ConvexHull(
        search.network,
        tuple(corners[moves] for moves in sorted(corners)),
        {moves: points[moves] for moves in sorted(points)},
    )


def fewest_moves(group: Group, sum_of_squares: int) -> LevelValue | None:
    """Bound the fewest moves of assignments with at most the given sum of squared loads.

    The value is the number of moves of such an assignment, and the bound is a proven lower bound.
    Return None if weights differ, if the group is too large, or if there is no such assignment.
    Capacities are ignored.
    """
    search = _search_of(group)
    weight = group.uniform_weight
    if search is None or not weight:
        return None
    found = search.within_squares(sum_of_squares // weight**2)
    return None if found is None else LevelValue("movement", found.point.moves, found.bound)


@cached
def _search_of(group: Group) -> HullSearch | None:
    return _hull_search(build_problem(group)) if group.uniform_weight else None


def _hull_search(problem: Problem) -> HullSearch | None:
    network = build_network(problem)
    if not problem.partition_count or int(network.max_counts.sum()) > _MAX_ARCS:
        return None
    return HullSearch.of(network)
