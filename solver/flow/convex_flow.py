"""Minimum cost flows with convex costs, computed by OR-Tools.

OR-Tools has a cost per arc, so each unit of flow in a window around the expected flow becomes an
arc of its own. Units outside the window share arcs, more of them the farther they are. The result
is optimal if it is inside all windows; otherwise wider windows around it are tried.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.errors import InternalError
from kassay.solver.network.level_network import LevelNetwork, WeightedLevels
from kassay.solver.objective import Level, MissingTagValues, Movement, Slots, StandbyMoves
from kassay.solver.problem import Ints

# Levels with the same cost for all units of an arc.
_LINEAR = (Movement, Slots, MissingTagValues, StandbyMoves)

# Each part of an arc outside its window has as many times more units than the one before.
_GROWTH = 4

# OR-Tools imports are inside functions: commands that need no flow start faster.


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
        raise InternalError(f"OR-Tools found no minimum cost flow: {status}")
    return np.asarray(flow.flows(ids), dtype=np.int64)


def maximum_flow(tail: Ints, head: Ints, capacity: Ints, *, source: int, sink: int) -> Ints:
    """Return the flow per arc of a maximum flow from the source to the sink."""
    from ortools.graph.python import max_flow  # noqa: PLC0415

    flow = max_flow.SimpleMaxFlow()
    ids = flow.add_arcs_with_capacity(tail.astype(np.int32), head.astype(np.int32), capacity)
    if flow.solve(source, sink) != flow.OPTIMAL:
        raise InternalError("OR-Tools found no maximum flow")
    return np.asarray(flow.flows(ids), dtype=np.int64)


def _pieces(
    low: Ints, high: Ints, first: Ints, last: Ints, windows: NDArray[np.bool_]
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield parts of arcs as columns: arc, capacity and a unit with the cost of the part.

    Arcs without a window are one part. Other arcs have a part per unit in the window, and parts of
    growing size outside, with the cost of their middle unit. The first of them is a single unit, so
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
    """Flows of a level network within limits per arc: minimum convex costs, and all optima.

    ``low`` and ``high`` are the limits of the arcs.
    """

    arcs: LevelNetwork
    low: Ints = field(init=False)
    high: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.low, self.high = np.zeros_like(self.arcs.high), self.arcs.high.copy()

    def cheapest(self, costs: WeightedLevels, *near: Ints) -> Ints | None:
        """Return a flow with the minimum weighted sum of some levels, or None if there is none.

        Parameters
        ----------
        near
            Flows around which the optimum is expected. They need not be valid.
        """
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
        """Return a flow of minimum cost, if only units in a window have costs of their own."""
        pieces = _pieces(self.low, self.high, first, last, windows)
        arc, capacity, unit = (np.concatenate(column) for column in zip(*pieces, strict=True))
        flows = min_cost_flow(
            self.arcs.tail[arc],
            self.arcs.head[arc],
            capacity,
            self.arcs.unit_costs(costs, arc, unit),
            supply=self._supply(),
        )
        if flows is None:
            return None
        return self.low + np.bincount(arc, weights=flows, minlength=len(first)).astype(np.int64)

    def _supply(self) -> Ints:
        """Return the supply of each node after the minimum flows of all arcs."""
        supply = self.arcs.supply
        np.subtract.at(supply, self.arcs.tail, self.low)
        np.add.at(supply, self.arcs.head, self.low)
        return supply

    def keep_optimal(self, level: Level, flow: Ints) -> None:
        """Keep only the flows that are optimal for a level, by the prices of an optimal flow.

        A unit with a cost below the difference of the prices is in each optimal flow, and one with
        a greater cost is in none.
        """
        paths, _ = self.arcs.paths([(level, 1)], flow, (self.low, self.high))
        if paths.cycle:
            raise InternalError("the residual network of an optimal flow has a negative cycle")
        difference = paths.distance[self.arcs.tail] - paths.distance[self.arcs.head]
        least, most = (self._units_below(level, difference + more) for more in (0, 1))
        self.low, self.high = least, most

    def _units_below(self, level: Level, limit: Ints) -> Ints:
        """Return, per arc, the number of units with a cost below a limit, by bisection."""
        low, high, arcs = self.low.copy(), self.high.copy(), np.arange(len(self.low))
        while (open_ := low < high).any():
            middle = (low + high + 1) // 2
            is_below = self.arcs.unit_costs([(level, 1)], arcs, middle) < limit
            low = np.where(open_ & is_below, middle, low)
            high = np.where(open_ & ~is_below, middle - 1, high)
        return low
