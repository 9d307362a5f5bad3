"""Find points on the convex hull of moves and sum of squared loads, for equal weights.

With a price on moves, imbalance and moves together are one convex minimum cost flow. Two
flows that are optimal at the same price differ by circuits that conform to the
difference, and every sum of some of them is optimal too [1]_. Hence all points of an edge
of the hull follow from its two corners.

References
----------
.. [1] S. Onn. "Nonlinear Discrete Optimization". European Mathematical Society, 2010:
   decomposition into conformal circuits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.solver.network.level_network import SQUARES_AND_MOVES, LevelNetwork, level_network
from kassay.solver.network.optimal_flow import ConvexFlow, optimal_counts
from kassay.solver.network.subscription_network import SubscriptionNetwork
from kassay.solver.problem import Ints

MayContinue = Callable[[], bool]


class FlowPoint(NamedTuple):
    """Partition counts per arc, with their moves and their sum of squared loads."""

    moves: int
    squares: int
    counts: Ints


class BoundedPoint(NamedTuple):
    """Point (moves, sum of squares) within a limit on one value, and a bound on the other value."""

    point: FlowPoint
    bound: int


class _Circuit(NamedTuple):
    """Closed path in the difference of two flows, with changes in moves and squared loads."""

    arcs: Ints
    steps: Ints  # 1, or -1 for an arc with less flow
    moves: int
    squares: int


_moves, _squares = attrgetter("moves"), attrgetter("squares")


def _flow_point(network: SubscriptionNetwork, counts: Ints) -> FlowPoint:
    squares = int((network.loads(counts) ** 2).sum())
    return FlowPoint(network.min_movement(counts), squares, counts)


def fewest_moves_point(network: SubscriptionNetwork, balanced: Ints) -> FlowPoint:
    """Find the flow with the fewest moves, then the minimum sum of squares, from even counts."""
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
class ConvexHull:
    """Lower convex hull of (moves, sum of squared loads), whose corners are found when needed."""

    arcs: LevelNetwork
    ends: tuple[FlowPoint, FlowPoint]  # fewest moves, minimum sum of squares
    corners: dict[tuple[int, int], FlowPoint | None] = field(default_factory=dict)

    @classmethod
    def of(cls, network: SubscriptionNetwork, balanced: Ints | None = None) -> "ConvexHull":
        """Find both ends of the hull, from optimal counts per arc if they are known."""
        counts = optimal_counts(network) if balanced is None else balanced
        arcs = level_network(network.problem, SQUARES_AND_MOVES, network)
        return cls(arcs, (fewest_moves_point(network, counts), _flow_point(network, counts)))

    def within_moves(
        self, limit: int, may_continue: MayContinue = lambda: True
    ) -> BoundedPoint | None:
        """Minimise squared loads with a limit on moves; return None if the limit is too low."""
        found = self._within(self.ends, limit, may_continue, limited=_moves, minimised=_squares)
        if found is None:
            return None
        # All sums of squares have the parity of the number of partitions.
        parity = (found.bound - self.arcs.network.problem.partition_count) % 2
        return BoundedPoint(found.point, found.bound + parity)

    def within_squares(
        self, limit: int, may_continue: MayContinue = lambda: True
    ) -> BoundedPoint | None:
        """Minimise moves with a limit on squared loads; return None if the limit is too low."""
        return self._within(
            self.ends[::-1], limit, may_continue, limited=_squares, minimised=_moves
        )

    def _within(
        self,
        ends: tuple[FlowPoint, FlowPoint],
        limit: int,
        may_continue: MayContinue,
        *,
        limited: Callable[[FlowPoint | _Circuit], int],
        minimised: Callable[[FlowPoint | _Circuit], int],
    ) -> BoundedPoint | None:
        """Find the edge of the hull that crosses a limit above its first end, and a point on it."""
        inside, outside = ends
        if limited(inside) > limit:
            return None
        if limited(outside) <= limit:
            return BoundedPoint(outside, minimised(outside))
        bound = minimised(outside) + 1
        while abs(inside.moves - outside.moves) > 1:
            if not may_continue():
                return BoundedPoint(inside, bound)
            corner = self._corner_between(*sorted((inside, outside), key=_moves))
            base = inside if corner is None else corner
            width = limited(outside) - limited(inside)
            height = minimised(inside) - minimised(outside)
            bound = max(bound, minimised(base) - height * (limit - limited(base)) // width)
            if corner is None:
                # Every sum of circuits is on the edge: add them while the limit permits it.
                flow, value = self.arcs.flow_of(inside.counts), limited(inside)
                for circuit in sorted(self._circuits(inside, outside), key=minimised):
                    if value + limited(circuit) <= limit:
                        flow[circuit.arcs] += circuit.steps
                        value += limited(circuit)
                point = _flow_point(self.arcs.network, self.arcs.counts(flow))
                return BoundedPoint(point, min(bound, minimised(point)))
            inside, outside = (corner, outside) if limited(corner) <= limit else (inside, corner)
        return BoundedPoint(inside, minimised(inside))

    def _corner_between(self, left: FlowPoint, right: FlowPoint) -> FlowPoint | None:
        """Return a corner below the line through two points, or None if there is none."""
        key = left.moves, right.moves
        if key not in self.corners:
            moves, squares = right.moves - left.moves, left.squares - right.squares
            flow = ConvexFlow(self.arcs).cheapest(
                tuple(zip(SQUARES_AND_MOVES, (moves, squares), strict=True)),
                *(self.arcs.flow_of(end.counts) for end in self.ends),
            )
            if flow is None:
                raise InternalError("no flow has the loads of a known placement")
            point = _flow_point(self.arcs.network, self.arcs.counts(flow))
            below = moves * point.squares + squares * point.moves
            is_below = below < moves * left.squares + squares * left.moves
            self.corners[key] = point if is_below else None
        return self.corners[key]

    def _circuits(self, start: FlowPoint, end: FlowPoint) -> Iterator[_Circuit]:
        """Decompose the difference of two points on a hull edge into circuits.

        On an edge, the load of a member differs by at most one, so that the effects of the circuits
        add up.
        """
        flow = self.arcs.flow_of(start.counts)
        change = self.arcs.flow_of(end.counts) - flow
        arcs = np.flatnonzero(change)
        rises = change[arcs] > 0
        tail = np.where(rises, self.arcs.tail[arcs], self.arcs.head[arcs]).tolist()
        head = np.where(rises, self.arcs.head[arcs], self.arcs.tail[arcs]).tolist()
        steps = np.where(rises, 1, -1)
        # Cost of one more unit, or of one less.
        moves, squares = (
            steps * self.arcs.unit_costs([(level, 1)], arcs, flow[arcs] + rises)
            for level in SQUARES_AND_MOVES[::-1]
        )
        leaving: dict[int, list[int]] = {self.arcs.sink: []}
        for at, units in enumerate(np.abs(change[arcs]).tolist()):
            leaving.setdefault(tail[at], []).extend([at] * units)
        for first, waiting in leaving.items():
            while waiting:
                path: list[int] = []
                node, position = first, dict[int, int]()
                while node not in position:
                    position[node] = len(path)
                    path.append(leaving[node].pop())
                    node = head[path[-1]]
                for at in path[: position[node]]:
                    leaving[tail[at]].append(at)
                used = path[position[node] :]
                yield _Circuit(
                    arcs[used], steps[used], int(moves[used].sum()), int(squares[used].sum())
                )
