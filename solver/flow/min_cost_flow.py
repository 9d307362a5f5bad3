"""Minimum cost flows of a subscription network, with prices of squared loads and moves."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.solver.network.subscription_network import SubscriptionNetwork
from kassay.solver.problem import Ints


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


class FlowPoint(NamedTuple):
    """Partition counts per arc, with their moves and their sum of squared loads."""

    moves: int
    squares: int
    counts: Ints


@dataclass(frozen=True, slots=True)
class LoadWindows:
    """Load range per member in which each further partition has its own cost."""

    low: Ints
    high: Ints

    @classmethod
    def around(cls, *loads: Ints) -> "LoadWindows":
        """Return the smallest load ranges that contain these loads, extended by 1 on each side."""
        return cls(np.maximum(np.min(loads, axis=0) - 1, 0), np.max(loads, axis=0) + 1)

    def widened(self, loads: Ints) -> "LoadWindows":
        """Widen the load ranges of members with loads outside their ranges."""
        reach = self.high - self.low + 1
        return replace(
            self,
            low=np.where(loads < self.low, np.maximum(loads - reach, 0), self.low),
            high=np.where(loads > self.high, loads + reach, self.high),
        )


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
        return cls(unit, capacity, cost, len(low))

    def without_empty(self) -> "LoadPieces":
        """Return the pieces with a capacity above 0."""
        used = self.capacity > 0
        return LoadPieces(self.unit[used], self.capacity[used], self.cost[used], self.units)

    def sums(self, values: Ints) -> Ints:
        """Return the sum of the values of the pieces, per member or host."""
        sums = np.zeros(self.units, dtype=np.int64)
        np.add.at(sums, self.unit, values)
        return sums


@dataclass(frozen=True, slots=True)
class SinkArcs:
    """Arcs from members to sinks, as columns: member, sink, cost and capacity."""

    member: Ints
    sink: Ints
    cost: Ints
    capacity: Ints


def min_cost_counts(
    network: SubscriptionNetwork,
    arcs: Ints,
    *,
    move_cost: int,
    sink_arcs: SinkArcs,
    demand: Ints,
) -> Ints:
    """Return the number of partitions per arc in a minimum cost flow.

    A partition costs ``move_cost`` unless the member owns one more of the topic. ``demand`` is
    the flow that must end at each member, followed by each sink.
    """
    owning = arcs[network.owned[arcs] > 0]
    member = network.topics + network.head
    sink = network.topics + network.members + sink_arcs.sink
    tails = [network.tail[arcs], network.tail[owning], network.topics + sink_arcs.member]
    supplied = network.supply[network.tail[arcs]]
    costs = [np.full(len(arcs), move_cost), np.zeros(len(owning), int), sink_arcs.cost]
    costed = CostedArcs(
        tail=np.concatenate(tails),
        head=np.concatenate([member[arcs], member[owning], sink]),
        capacity=np.concatenate([supplied, network.owned[owning], sink_arcs.capacity]),
        cost=np.concatenate(costs).astype(np.int64),
    )
    flows = costed.min_cost_flow(np.concatenate([network.supply, -demand]))
    if flows is None:
        raise InternalError("OR-Tools found no minimum cost flow")
    counts = np.zeros(len(network.tail), dtype=np.int64)
    counts[arcs] = flows[: len(arcs)]
    counts[owning] += flows[len(arcs) : len(arcs) + len(owning)]
    return counts


def flow_point(network: SubscriptionNetwork, counts: Ints) -> FlowPoint:
    """Compute the moves and the sum of squared loads of partition counts per arc."""
    squares = int((network.loads(counts) ** 2).sum())
    return FlowPoint(network.min_movement(counts), squares, counts)


def cheapest_point(
    network: SubscriptionNetwork, windows: LoadWindows, *, square_cost: int, move_cost: int
) -> FlowPoint:
    """Minimise ``square_cost * sum of squares + move_cost * moves``.

    Inside its window, each partition of a member has its own cost. Below the window, all have
    the highest cost that occurs there; above it, the lowest. The result is optimal if no load is
    outside its window. Otherwise windows are widened.
    """
    none = np.zeros(network.members, dtype=np.int64)
    factors = np.full(network.members, square_cost)
    demand = np.append(none, network.supply.sum())
    arcs = np.arange(len(network.tail))
    while True:
        pieces = LoadPieces.of(none, network.max_counts, windows, factors)
        sinks = SinkArcs(pieces.unit, np.zeros_like(pieces.unit), pieces.cost, pieces.capacity)
        counts = min_cost_counts(network, arcs, move_cost=move_cost, sink_arcs=sinks, demand=demand)
        loads = network.loads(counts)
        if ((loads >= windows.low) & (loads <= windows.high)).all():
            return flow_point(network, counts)
        windows = windows.widened(loads)


def fewest_moves_point(network: SubscriptionNetwork, windows: LoadWindows) -> FlowPoint:
    """Find the flow with the fewest moves and, among those, the minimum sum of squares.

    A chain of transfers changes two loads by one each, so it changes the sum of squares by less
    than the price of a move.
    """
    highest = int(network.max_counts.max(initial=0))
    return cheapest_point(network, windows, square_cost=1, move_cost=2 * highest + 3)
