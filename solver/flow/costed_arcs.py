"""Arcs with costs: minimum cost flows, their reduced costs, and convex costs as several arcs."""

from dataclasses import dataclass

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.solver.flow.priced_flow import LoadWindows
from kassay.solver.problem import Ints


@dataclass(frozen=True, slots=True)
class LoadPieces:
    """Arcs of members or hosts, divided into pieces with ascending cost per unit of load."""

    unit: Ints
    capacity: Ints
    cost: Ints
    units: int

    @classmethod
    def of(cls, low: Ints, high: Ints, windows: LoadWindows, factors: Ints) -> "LoadPieces":
        """Divide the loads from ``low`` to ``high``: below, in and above the windows."""
        first = np.clip(windows.low, low, high)
        last = np.clip(windows.high, low, high)
        units = np.arange(len(low))
        inside = np.repeat(units, last - first)
        step = np.arange(len(inside)) - np.repeat(np.cumsum(last - first) - last, last - first)
        unit = np.concatenate([units, inside, units])
        capacity = np.concatenate([first - low, np.ones(len(inside), dtype=np.int64), high - last])
        cost = factors[unit] * np.concatenate([2 * first - 1, 2 * step + 1, 2 * last + 1])
        used = capacity > 0
        return cls(unit[used], capacity[used], cost[used], len(low))

    def sums(self, values: Ints) -> Ints:
        """Return the sum of the values of the pieces, per member or host."""
        sums = np.zeros(self.units, dtype=np.int64)
        np.add.at(sums, self.unit, values)
        return sums


@dataclass(frozen=True, slots=True)
class CostedArcs:
    """Arcs of a network with capacities and costs."""

    tail: Ints
    head: Ints
    capacity: Ints
    cost: Ints

    def min_cost_flow(self, supply: Ints) -> Ints | None:
        """Return the flow per arc with minimum cost, or None if no flow exists."""
        # Imported here: commands that need no flow start faster.
        from ortools.graph.python import min_cost_flow  # noqa: PLC0415

        flow = min_cost_flow.SimpleMinCostFlow()
        ids = flow.add_arcs_with_capacity_and_unit_cost(
            self.tail.astype(np.int32), self.head.astype(np.int32), self.capacity, self.cost
        )
        flow.set_nodes_supplies(np.arange(len(supply), dtype=np.int32), supply)
        status = flow.solve()
        if status == flow.INFEASIBLE:
            return None
        if status != flow.OPTIMAL:
            raise InternalError(f"OR-Tools found no minimum cost flow: {status}")
        return np.asarray(flow.flows(ids), dtype=np.int64)

    def reduced_costs(self, flows: Ints, nodes: int) -> Ints:
        """Return the reduced cost of each arc for an optimal flow.

        The prices of the nodes are shortest distances in the residual network (Bellman-Ford).
        """
        forward, backward = flows < self.capacity, flows > 0
        head = np.concatenate([self.head[forward], self.tail[backward]])
        tail = np.concatenate([self.tail[forward], self.head[backward]])
        cost = np.concatenate([self.cost[forward], -self.cost[backward]])
        order = np.argsort(head, kind="stable")
        head, tail, cost = head[order], tail[order], cost[order]
        starts = np.flatnonzero(np.diff(head, prepend=-1))
        ends = head[starts]
        distance = np.zeros(nodes, dtype=np.int64)
        for _ in range(nodes + 1):
            shorter = np.minimum(distance[ends], np.minimum.reduceat(distance[tail] + cost, starts))
            if (shorter == distance[ends]).all():
                return self.cost + distance[self.tail] - distance[self.head]
            distance[ends] = shorter
        raise InternalError("the residual network of an optimal flow has a negative cycle")
