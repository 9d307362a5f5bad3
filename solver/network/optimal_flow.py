"""Find optimal placements for equal weights by minimum cost flows.

A minimum cost flow gives members few topics with many partitions each. If a member then leaves,
its partitions have few consumers with room, and others must move. The counts of received
partitions per topic and member are therefore made as even as the loads permit: proportional
fitting of the counts [1]_, and one maximum flow that rounds them.

OR-Tools has a cost per arc, so each unit of flow in a window around the expected flow becomes an
arc of its own. Units outside the window share arcs, more of them the farther they are. The result
is optimal if it is inside all windows; otherwise wider windows around it are tried. OR-Tools is
imported in functions: commands that need no flow start faster.

With a price on moves, imbalance and moves together are one convex minimum cost flow. Two
flows that are optimal at the same price differ by circuits that conform to the
difference, and every sum of some of them is optimal too [3]_. Hence all points of an edge
of the convex hull of moves and sum of squared loads follow from its two corners.

References
----------
.. [1] W. E. Deming, F. F. Stephan. "On a least squares adjustment of a sampled frequency table
   when the expected marginal totals are known". Annals of Mathematical Statistics 11(4), 1940.
.. [2] A. Frank, K. Murota. "Decreasing minimization on M-convex sets: background and
   structures". Mathematical Programming 195, 2022.
.. [3] S. Onn. "Nonlinear Discrete Optimization". European Mathematical Society, 2010:
   decomposition into conformal circuits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.errors import InternalError
from kassay.solver.network.level_cost_network import (
    SQUARES_AND_MOVES,
    LevelNetwork,
    WeightedLevels,
    level_network,
)
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.objective import Level, MissingTagValues, Movement, Slots, StandbyMoves
from kassay.solver.problem import Ints, Placement, Problem

# Levels with the same cost for all units of an arc.
_LINEAR = (Movement, Slots, MissingTagValues, StandbyMoves)

# Each part of an arc outside its window has as many times more units than the one before.
_GROWTH = 4

# Cost scaling is slow if one partition moves along thousands of members. Few cycles of negative
# cost are found fast, so that they are tried first if a topic has few consumers.
_MAX_CYCLES = 4
_MAX_ARCS_PER_NODE = 4
_MAX_ITERATIONS = 30
# The fitting ends if the loads of members differ by less than this share of all partitions.
_PRECISION = 0.002
_SMALLEST = 1e-200
MayContinue = Callable[[], bool]


def min_cost_flow(
    tail: Ints, head: Ints, capacity: Ints, cost: Ints, *, supply: Ints
) -> Ints | None:
    """Return the flow per arc with minimum cost, or None if no flow exists."""
    from ortools.graph.python import min_cost_flow  # noqa: PLC0415

    flow = min_cost_flow.SimpleMinCostFlow()
    ids = flow.add_arcs_with_capacity_and_unit_cost(
        tail.astype(np.int32), head.astype(np.int32), capacity, cost
    )
    flow.set_nodes_supplies(np.arange(len(supply), dtype=np.int32), supply)
    status = flow.solve()
    if status == flow.INFEASIBLE:
        return None
    if status != flow.OPTIMAL:
        raise InternalError(
            f"internal error: OR-Tools finds no flow (status {status}); "
            "report a bug with this group document"
        )
    return np.asarray(flow.flows(ids), dtype=np.int64)


def _pieces(
    low: Ints, high: Ints, first: Ints, last: Ints, windows: NDArray[np.bool_]
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Split arcs with convex costs into parallel arcs with linear costs.

    Arcs without a window are one part. Other arcs have a part per unit in the window, and parts of
    growing size outside, with the cost of their middle unit. The first outside part is one unit, so
    that a flow at the end of a window is optimal, too.
    """
    whole = np.flatnonzero(~windows & (high > low))
    yield whole, (high - low)[whole], low[whole] + 1
    size = np.where(windows, last - first, 0)
    arc = np.repeat(np.arange(len(size)), size)
    step = np.arange(len(arc)) - np.repeat(np.cumsum(size) - size, size)
    yield arc, np.ones_like(arc), first[arc] + step + 1
    arc, length = np.flatnonzero(windows & (first > low)), 1
    while len(arc):
        start = np.maximum(first[arc] - length, low[arc])
        yield arc, first[arc] - start, (start + first[arc] + 1) // 2
        first = first.copy()
        first[arc] = start
        arc, length = arc[start > low[arc]], length * _GROWTH
    arc, length = np.flatnonzero(windows & (last < high)), 1
    while len(arc):
        end = np.minimum(last[arc] + length, high[arc])
        yield arc, end - last[arc], (last[arc] + 1 + end) // 2
        last = last.copy()
        last[arc] = end
        arc, length = arc[end < high[arc]], length * _GROWTH


@dataclass(slots=True)
class ConvexFlow:
    """Minimum cost flow problem with convex costs and a flow range per arc."""

    arcs: LevelNetwork
    low: Ints = field(init=False)
    high: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.low, self.high = np.zeros_like(self.arcs.high), self.arcs.high.copy()

    def cheapest(self, costs: WeightedLevels, *near: Ints) -> Ints | None:
        """Return a flow with minimum cost, or None if no flow exists."""
        low, high = self.low, self.high
        windows = np.zeros(len(low), dtype=np.bool_)
        for level, _ in costs:
            if not isinstance(level, _LINEAR):
                windows[self.arcs.part_of(level)] = True
        first, last = np.min(near, axis=0) - 1, np.max(near, axis=0) + 1
        reach = 1
        while True:
            first = np.where(windows, np.clip(first, low, high), low)
            last = np.where(windows, np.clip(last, low, high), high)
            flow = self._cheapest_piecewise(costs, first, last, windows)
            if flow is None or not (windows & ((flow < first) | (flow > last))).any():
                return flow
            reach *= 2
            first, last = flow - reach, flow + reach

    def _cheapest_piecewise(
        self, costs: WeightedLevels, first: Ints, last: Ints, windows: NDArray[np.bool_]
    ) -> Ints | None:
        """Minimise costs that are exact only from ``first`` to ``last`` units per arc."""
        pieces = _pieces(self.low, self.high, first, last, windows)
        arc, capacity, unit = (np.concatenate(column) for column in zip(*pieces, strict=True))
        supply = self.arcs.supply
        np.subtract.at(supply, self.arcs.tail, self.low)
        np.add.at(supply, self.arcs.head, self.low)
        tail, head = self.arcs.tail[arc], self.arcs.head[arc]
        cost = self.arcs.unit_costs(costs, arc, unit)
        flows = min_cost_flow(tail, head, capacity, cost, supply=supply)
        if flows is None:
            return None
        return self.low + np.bincount(arc, weights=flows, minlength=len(first)).astype(np.int64)

    def keep_optimal(self, level: Level, flow: Ints) -> None:
        """Restrict the flow per arc to the flows that are optimal for a level.

        A unit with a cost below the difference of the prices is in each optimal flow, and one with
        a greater cost is in none.
        """
        paths, _ = self.arcs.paths([(level, 1)], flow, (self.low, self.high))
        if paths.cycle:
            raise InternalError(
                "internal error: a flow is not optimal; report a bug with this group document"
            )
        difference = paths.distance[self.arcs.tail] - paths.distance[self.arcs.head]
        least, most = (self._units_below(level, difference + more) for more in (0, 1))
        self.low, self.high = least, most

    def _units_below(self, level: Level, limit: Ints) -> Ints:
        """Count the units of flow per arc with a cost below a limit."""
        low, high, arcs = self.low.copy(), self.high.copy(), np.arange(len(self.low))
        while (open_ := low < high).any():
            middle = (low + high + 1) // 2
            is_below = self.arcs.unit_costs([(level, 1)], arcs, middle) < limit
            low = np.where(open_ & is_below, middle, low)
            high = np.where(open_ & ~is_below, middle - 1, high)
        return low


def flow_work(problem: Problem) -> float:
    """Estimate the work of one network flow from the size of the network."""
    sizes = np.array([len(consumers) for consumers in problem.consumer_sets], dtype=np.int64)
    placed = problem.consumer_set_of_topic[problem.consumer_set_of_topic >= 0]
    nodes = len(placed) + problem.member_count
    # Seconds of a processor of 2020, per arc, node and partition.
    return 8e-7 * int(sizes[placed].sum()) + 2.5e-5 * nodes + 1e-6 * problem.partition_count


def solve_flow(problem: Problem, levels: int = 2) -> tuple[Placement, tuple[int, ...]]:
    """Find a placement with optimal loads and, at these loads, the fewest moves.

    Weights must be equal: only counts are used. The prices are computed independently of the
    flow. They prove the loads and, with two levels, the moves.
    """
    network = build_network(problem)
    arcs = level_network(problem, SQUARES_AND_MOVES, network)
    counts = optimal_counts(network, arcs)
    prices = arcs.prices(SQUARES_AND_MOVES[:levels], arcs.flow_of(counts))
    if prices is None:
        raise InternalError(
            "internal error: wrong node prices; report a bug with this group document"
        )
    return network.place(counts), prices


def optimal_counts(network: SubscriptionNetwork, arcs: LevelNetwork | None = None) -> Ints:
    """Return partition counts per arc with optimal loads and the fewest moves.

    Optimal loads are least majorised. Partitions that do not stay at their owner are spread over
    topics. There must be an assignment within the capacities of the network.
    """
    arcs = arcs or level_network(network.problem, SQUARES_AND_MOVES, network)
    expected = np.zeros_like(arcs.high)
    expected[arcs.members] = _expected_loads(network)
    flow = _flow_by_cycles(arcs)
    if flow is None:
        flow = _even_flow(arcs, expected[arcs.members])
        if flow is not None and not network.owned.any():
            return arcs.counts(flow)  # spread already
    if flow is None:
        flow = ConvexFlow(arcs).cheapest(arcs.weighted(SQUARES_AND_MOVES), expected)
    if flow is None:
        raise InternalError(
            "internal error: no flow meets capacities; report a bug with this group document"
        )
    return spread_received_partitions(network, arcs.counts(flow))


def _even_flow(arcs: LevelNetwork, expected: Ints) -> Ints | None:
    """Return the flow with the fewest moves if all loads differ by at most one.

    Then only moves have costs, so the flow is found faster. Return None if such loads are unlikely
    or not possible.
    """
    network = arcs.network
    mean, more = divmod(int(network.supply.sum()), max(network.members, 1))
    if network.capacity is not None or int(np.abs(expected - mean).max(initial=0)) > 1:
        return None
    if not network.owned.any():
        demand = np.full(network.members, mean)
        demand[np.argsort(-expected, kind="stable")[:more]] += 1
        counts = _even_counts(network, network.supply, demand)
        return None if counts is None else arcs.flow_of(counts)
    even = ConvexFlow(arcs)
    even.low[arcs.members] = mean
    even.high[arcs.members] = np.minimum(network.max_counts, mean + (more > 0))
    if (even.high < even.low).any():
        return None
    return even.cheapest(((Movement(), 1),), even.low)


def _flow_by_cycles(arcs: LevelNetwork) -> Ints | None:
    """Improve the flow of owned partitions by a few cycles of the residual network."""
    network = arcs.network
    is_sparse = len(network.tail) <= _MAX_ARCS_PER_NODE * (network.topics + network.members)
    flow = arcs.flow_of(network.owned)
    if not is_sparse or (network.owned.sum() < network.supply.sum()) or (flow > arcs.high).any():
        return None
    costs = arcs.weighted(SQUARES_AND_MOVES)
    for _ in range(_MAX_CYCLES):
        _, cycle = arcs.paths(costs, flow)
        if not len(cycle):
            return flow
        flow[cycle[cycle >= 0]] += 1
        flow[~cycle[cycle < 0]] -= 1
    return None


def _expected_loads(network: SubscriptionNetwork) -> Ints:
    """Estimate the optimal loads as if partitions were divisible."""
    mean = network.supply.sum() / max(network.members, 1)
    share = np.ones(network.members)
    loads: NDArray[np.float64] = np.zeros(network.members)
    for _ in range(_MAX_ITERATIONS):
        of_topic = np.bincount(network.tail, share[network.head], network.topics)
        part = share[network.head] * _ratio(network.supply, of_topic)[network.tail]
        before, loads = loads, np.bincount(network.head, part, network.members).astype(np.float64)
        if float(np.abs(loads - before).max(initial=0)) < 0.5:
            break
        # Members with a high load get smaller shares. The limits only prevent an overflow.
        share = np.clip(share * mean / np.maximum(loads, _SMALLEST), 1e-60, 1e60)
    return np.rint(loads).astype(np.int64)


def level_sets(network: SubscriptionNetwork, counts: Ints) -> tuple[tuple[int, ...], ...]:
    """Divide members into sets that have fixed total loads in all optimal assignments.

    A level set consists of the members with the greatest load, and of those that can receive their
    partitions by chains of transfers. Their loads differ by at most one, or they are full. All
    least majorised loads have the same level sets [2]_.
    """
    import networkx as nx  # noqa: PLC0415

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(network.members))
    columns = zip(network.tail.tolist(), network.head.tolist(), counts.tolist(), strict=True)
    for topic, member, count in columns:
        graph.add_edge(network.members + topic, member)
        if count:
            graph.add_edge(member, network.members + topic)
    loads = network.loads(counts)
    sets: list[set[int]] = []
    high = 0
    for first in np.argsort(-loads, kind="stable").tolist():
        if first not in graph:
            continue
        reached = {first, *nx.descendants(graph, first)}
        graph.remove_nodes_from(reached)
        if not sets or int(loads[first]) < high:
            sets.append(set())
            high = int(loads[first])
        sets[-1] |= reached
    return tuple(tuple(sorted(one & set(range(network.members)))) for one in sets)


def is_feasible(network: SubscriptionNetwork) -> bool:
    """Return whether the capacities of the network permit an assignment."""
    used = np.flatnonzero(network.supply)
    if not np.isin(used, network.tail).all():
        return False
    if network.capacity is None:
        return True
    most = network.supply[network.tail]
    flow = _bipartite_flow(network.tail, network.head, most, network.supply, network.capacity)
    return flow is not None


def spread_received_partitions(network: SubscriptionNetwork, counts: Ints) -> Ints:
    """Spread received partitions evenly, without a change of loads or moves."""
    kept = np.minimum(counts, network.owned)
    placed = counts - kept
    if int(placed.max(initial=0)) <= 1:
        return counts
    supply = np.bincount(network.tail, placed, network.topics).astype(np.int64)
    # No optimal loads have partitions of a topic at members with much more than another consumer.
    loads = network.loads(counts)
    lowest = np.full(network.topics, network.problem.partition_count)
    np.minimum.at(lowest, network.tail, loads[network.head])
    open_ = (loads[network.head] <= lowest[network.tail] + 1) | (placed > 0)
    received = _even_counts(network, supply, network.loads(placed), open_)
    return counts if received is None else kept + received


def _even_counts(
    network: SubscriptionNetwork, supply: Ints, demand: Ints, open_: NDArray[np.bool_] | bool = True
) -> Ints | None:
    """Return even integer counts per arc with given totals, or None if impossible."""
    arcs = np.flatnonzero((supply[network.tail] > 0) & (demand[network.head] > 0) & open_)
    tail, head = network.tail[arcs], network.head[arcs]
    least = np.floor(_fitted(tail, head, supply, demand) + 1e-9).astype(np.int64)
    rest_supply = supply - np.bincount(tail, least, len(supply)).astype(np.int64)
    rest_demand = demand - np.bincount(head, least, len(demand)).astype(np.int64)
    highest = int(supply.max(initial=0))
    capacity = 1
    while True:
        most = np.full(len(arcs), capacity)
        rest = _bipartite_flow(tail, head, most, rest_supply, rest_demand)
        if rest is not None:
            counts = np.zeros(len(network.tail), dtype=np.int64)
            counts[arcs] = least + rest
            return counts
        if capacity >= highest:
            return None
        capacity *= 4


def _fitted(tail: Ints, head: Ints, supply: Ints, demand: Ints) -> NDArray[np.float64]:
    """Compute even fractional counts per arc within the totals of topics and members."""
    count = np.ones(len(tail))
    most = _PRECISION * float(demand.sum())
    for _ in range(_MAX_ITERATIONS):
        count *= _ratio(supply, np.bincount(tail, count, len(supply)))[tail]
        loads = np.bincount(head, count, len(demand))
        count *= _ratio(demand, loads)[head]
        if float(np.abs(loads - demand).sum()) < most:
            break
    ratio = _ratio(supply, np.bincount(tail, count, len(supply)))
    result: NDArray[np.float64] = count * np.minimum(ratio, 1)[tail]
    return result


def _bipartite_flow(
    tail: Ints, head: Ints, capacity: Ints, supply: Ints, demand: Ints
) -> Ints | None:
    """Return a flow from topics to members with the whole supply, or None if impossible."""
    from ortools.graph.python import max_flow  # noqa: PLC0415

    topics, members = np.flatnonzero(supply), np.flatnonzero(demand)
    first = len(supply)
    source, sink = first + len(demand), first + len(demand) + 1
    flow = max_flow.SimpleMaxFlow()
    ids = flow.add_arcs_with_capacity(
        np.concatenate([tail, np.full(len(topics), source), first + members]).astype(np.int32),
        np.concatenate([first + head, topics, np.full(len(members), sink)]).astype(np.int32),
        np.concatenate([capacity, supply[topics], demand[members]]),
    )
    if flow.solve(source, sink) != flow.OPTIMAL:
        raise InternalError(
            "internal error: no maximum flow found; report a bug with this group document"
        )
    counts = np.asarray(flow.flows(ids), dtype=np.int64)[: len(tail)]
    return counts if int(counts.sum()) == int(supply.sum()) else None


def _ratio(target: Ints, total: NDArray[Any]) -> NDArray[np.float64]:
    ratio: NDArray[np.float64] = target / np.maximum(total, _SMALLEST)
    return ratio


class FlowPoint(NamedTuple):
    """Partition counts per arc, with their moves and their sum of squared loads."""

    moves: int
    squares: int
    counts: Ints


class BoundedPoint(NamedTuple):
    """Flow within a limit on moves or squared loads, and a bound on the other objective."""

    point: FlowPoint
    bound: int


class _Circuit(NamedTuple):
    """Closed path in the difference of two flows, with its changes in both objectives."""

    arcs: Ints
    steps: Ints  # 1, or -1 for an arc with less flow
    moves: int
    squares: int


_moves, _squares = attrgetter("moves"), attrgetter("squares")


def _flow_point(network: SubscriptionNetwork, counts: Ints) -> FlowPoint:
    squares = int((network.loads(counts) ** 2).sum())
    return FlowPoint(network.min_movement(counts), squares, counts)


def fewest_moves_point(network: SubscriptionNetwork, balanced: Ints) -> FlowPoint:
    """Find a flow with the fewest moves and then the minimum sum of squares."""
    arcs = level_network(network.problem, SQUARES_AND_MOVES, network)
    kept = np.zeros_like(arcs.high)
    kept[arcs.members] = np.minimum(network.loads(network.owned), network.max_counts)
    flow = ConvexFlow(arcs).cheapest(
        arcs.weighted(SQUARES_AND_MOVES[::-1]), arcs.flow_of(balanced), kept
    )
    if flow is None:
        raise InternalError(
            "internal error: no flow meets capacities; report a bug with this group document"
        )
    return _flow_point(network, arcs.counts(flow))


@dataclass(frozen=True, slots=True)
class ConvexHull:
    """Lower convex hull of the points (moves, sum of squared loads)."""

    arcs: LevelNetwork
    ends: tuple[FlowPoint, FlowPoint]  # fewest moves, minimum sum of squares
    corners: dict[tuple[int, int], FlowPoint | None] = field(default_factory=dict)

    @classmethod
    def of(cls, network: SubscriptionNetwork, balanced: Ints | None = None) -> "ConvexHull":
        """Create the hull from its two end points."""
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
        """Find the best point within a limit, from the hull edge that crosses the limit."""
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
                raise InternalError(
                    "internal error: no flow found; report a bug with this group document"
                )
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
