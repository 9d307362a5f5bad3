"""Minimum cost flow with a price per unit of squared load and per move."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kassay.solver.flow.min_cost_flow import SinkArcs, min_cost_counts
from kassay.solver.problem import Ints
from kassay.solver.subscription_network import SubscriptionNetwork


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
    while True:
        sinks = _sink_arcs(network, windows, square_cost)
        demand = np.zeros(network.members + 1, dtype=np.int64)
        demand[-1] = network.supply.sum()
        arcs = np.arange(len(network.tail))
        counts = min_cost_counts(network, arcs, move_cost=move_cost, sink_arcs=sinks, demand=demand)
        loads = network.loads(counts)
        if ((loads >= windows.low) & (loads <= windows.high)).all():
            return flow_point(network, counts)
        windows = windows.widened(loads)


def _sink_arcs(network: SubscriptionNetwork, windows: LoadWindows, cost: int) -> SinkArcs:
    top = network.max_counts
    low, high = np.minimum(windows.low, top), np.minimum(windows.high, top)
    members = np.arange(network.members)
    inside = np.repeat(members, high - low)
    steps = np.arange(len(inside)) - np.repeat(np.cumsum(high - low) - high, high - low)
    member = np.concatenate([members, inside, members])
    return SinkArcs(
        member=member,
        sink=np.zeros(len(member), dtype=np.int64),
        cost=cost * np.concatenate([2 * low - 1, 2 * steps + 1, 2 * high + 1]),
        capacity=np.concatenate([low, np.ones(len(inside), dtype=np.int64), top - high]),
    )


def fewest_moves_point(network: SubscriptionNetwork, windows: LoadWindows) -> FlowPoint:
    """Find the flow with the fewest moves and, among those, the minimum sum of squares.

    A chain of transfers changes two loads by one each, so it changes the sum of squares by less
    than the price of a move.
    """
    highest = int(network.max_counts.max(initial=0))
    return cheapest_point(network, windows, square_cost=1, move_cost=2 * highest + 3)
