"""Shortest paths to the sink of a residual network: node prices, or a cycle of negative cost."""

from dataclasses import dataclass

import numpy as np

from kassay.solver.number_ranges import Weights
from kassay.solver.problem import Ints


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """Distance of each node to the sink, or the arcs of a cycle with negative cost."""

    distance: Weights  # final only without a cycle
    cycle: tuple[int, ...]


def shortest_paths(tail: Ints, head: Ints, cost: Weights, *, sink: int) -> ShortestPaths:
    """Compute the distances to the sink by the Bellman-Ford algorithm, or find a negative cycle.

    The sink is the last node. Nodes without a path to it have distances that are greater than all
    others, and valid prices. Each round relaxes the arcs into the nodes whose distance fell in the
    round before. A cycle through the sink is found in as many rounds as it has arcs; other cycles
    are searched when the number of rounds is a power of two.
    """
    order = np.argsort(head, kind="stable")
    tail, head, cost = tail[order], head[order], cost[order]
    starts = np.searchsorted(head, np.arange(sink + 2))
    degrees = np.diff(starts)
    # Farther than any path, so that the nodes without a path get consistent distances.
    far = (sink + 2) * int(np.abs(cost).max(initial=0)) + 1
    distance = np.full(sink + 1, far, dtype=cost.dtype)
    distance[sink] = 0
    via = np.full(sink + 1, -1, dtype=np.int64)  # arc that last lowered the distance
    fallen, rounds = np.flatnonzero(degrees), 0
    while len(fallen):
        # Arcs into the fallen nodes: consecutive numbers from the start of each node.
        count = degrees[fallen]
        arcs = np.repeat(starts[fallen] - np.cumsum(count) + count, count)
        arcs += np.arange(len(arcs))
        offers = distance[head[arcs]] + cost[arcs]
        falls = (offers < distance[tail[arcs]]).astype(np.bool_)
        arcs, offers = arcs[falls], offers[falls]
        np.minimum.at(distance, tail[arcs], offers)
        arcs = arcs[(offers == distance[tail[arcs]]).astype(np.bool_)][::-1]
        via[tail[arcs]] = arcs
        is_fallen = np.zeros(sink + 1, dtype=np.bool_)
        is_fallen[tail[arcs]] = True
        fallen, rounds = np.flatnonzero(is_fallen), rounds + 1
        if rounds & (rounds - 1) == 0 or distance[sink] < 0:
            cycle = _cycle(head, via, sink)
            if cycle:
                return ShortestPaths(distance, tuple(order[cycle].tolist()))
    return ShortestPaths(distance, ())


def _cycle(head: Ints, via: Ints, sink: int) -> list[int]:
    """Return the arcs of a cycle among the shortest paths, or an empty list.

    Such a cycle has negative cost. One that the sink leads to is preferred.
    """
    nodes = sink + 1
    step = np.append(np.where(via >= 0, head[via], nodes), nodes)
    reached = step
    # The number of steps doubles, until it exceeds the length of any path.
    for _ in range(nodes.bit_length()):
        reached = reached[reached]
    endless = np.flatnonzero(reached != nodes)
    if not len(endless):
        return []
    start = sink if reached[sink] != nodes else int(endless[0])
    arcs: list[int] = []
    position = {start: 0}
    while True:
        arcs.append(int(via[start]))
        start = int(head[arcs[-1]])
        if start in position:
            return arcs[position[start] :]
        position[start] = len(arcs)
