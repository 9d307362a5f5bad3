"""Shortest paths to the sink of a residual network: node prices, or a cycle of negative cost."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from kassay.solver.number_ranges import Weights
from kassay.solver.problem import Ints

# Rounds over all arcs; more are only needed for long paths.
_MAX_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """Distance of each node to the sink, or the arcs of a cycle with negative cost."""

    distance: Weights  # final only without a cycle
    cycle: tuple[int, ...]


def shortest_paths(tail: Ints, head: Ints, cost: Weights, *, sink: int) -> ShortestPaths:
    """Compute the distances to the sink by the Bellman-Ford algorithm, or find a negative cycle.

    The sink is the last node. Nodes without a path to it have distances that are greater than all
    others, and valid prices. The first cycle through the sink that is found has the fewest arcs,
    if it has at most 64; other cycles are searched when the number of rounds is a power of two.
    """
    paths = _Rounds(tail, head, cost, sink)
    rounds = 0
    cycle: list[int] = []
    while not cycle and rounds < _MAX_ROUNDS and paths.relax():
        rounds += 1
        if rounds & (rounds - 1) == 0 or paths.distance[sink] < 0:
            cycle = paths.cycle()
    if not cycle and rounds == _MAX_ROUNDS:
        sweeps = _Sweeps(paths)
        while not cycle and sweeps.run():
            cycle = paths.cycle()
    return ShortestPaths(paths.distance, tuple(paths.order[cycle].tolist()))


class _Rounds:
    """Bellman-Ford algorithm with one vectorised pass over all arcs per round."""

    def __init__(self, tail: Ints, head: Ints, cost: Weights, sink: int) -> None:
        self.order = np.argsort(tail, kind="stable")
        self.tail, self.head, self.cost = tail[self.order], head[self.order], cost[self.order]
        self.sink = sink
        is_first = np.diff(self.tail, prepend=-1) != 0
        self.starts = np.flatnonzero(is_first)
        self.place = np.cumsum(is_first) - 1  # of the tail of each arc among all tails
        # Farther than any path, so that the nodes without a path get consistent distances.
        far = (sink + 2) * int(np.abs(cost).max(initial=0)) + 1
        self.distance = np.full(sink + 1, far, dtype=cost.dtype)
        self.distance[sink] = 0
        self.via = np.full(sink + 1, -1, dtype=np.int64)  # arc that last lowered the distance

    def relax(self) -> bool:
        """Relax every arc once, and return whether any distance fell."""
        if not len(self.starts):
            return False
        offers = self.distance[self.head] + self.cost
        best = np.minimum.reduceat(offers, self.starts)
        nodes = self.tail[self.starts]
        fell = (best < self.distance[nodes]).astype(np.bool_)
        self.distance[nodes[fell]] = best[fell]
        arcs = np.flatnonzero(fell[self.place])
        arcs = arcs[(offers[arcs] == best[self.place[arcs]]).astype(np.bool_)][::-1]
        self.via[self.tail[arcs]] = arcs
        return bool(fell.any())

    def cycle(self) -> list[int]:
        """Return the arcs of a cycle among the shortest paths, or an empty list.

        Such a cycle has negative cost. One that the sink leads to is preferred.
        """
        nodes = self.sink + 1
        step = np.append(np.where(self.via >= 0, self.head[self.via], nodes), nodes)
        reached = step
        # The number of steps doubles, until it exceeds the length of any path.
        for _ in range(nodes.bit_length()):
            reached = reached[reached]
        endless = np.flatnonzero(reached != nodes)
        if not len(endless):
            return []
        start = self.sink if reached[self.sink] != nodes else int(endless[0])
        arcs: list[int] = []
        position = {start: 0}
        while True:
            arcs.append(int(self.via[start]))
            start = int(self.head[arcs[-1]])
            if start in position:
                return arcs[position[start] :]
            position[start] = len(arcs)


class _Sweeps:
    """Bellman-Ford algorithm with nodes in breadth-first order, forwards and backwards in turn.

    A path that follows the order is relaxed in one sweep, however long it is.
    """

    def __init__(self, paths: _Rounds) -> None:
        self.paths = paths
        self.tail, self.head = paths.tail.tolist(), paths.head.tolist()
        self.cost = paths.cost.tolist()
        nodes = paths.sink + 1
        self.into: list[list[int]] = [[] for _ in range(nodes)]
        self.out_of: list[list[int]] = [[] for _ in range(nodes)]
        for arc, (tail, head) in enumerate(zip(self.tail, self.head, strict=True)):
            self.into[head].append(arc)
            self.out_of[tail].append(arc)
        # The sink is next to most nodes, so that the order ignores it.
        ends = self._breadth_first(range(nodes - 1))
        self.nodes = [*self._breadth_first(reversed(ends)), paths.sink]
        self.position = [0] * nodes
        for position, node in enumerate(self.nodes):
            self.position[node] = position
        self.active: Iterable[int] = range(nodes)
        self.is_forward = False

    def _breadth_first(self, starts: Iterable[int]) -> list[int]:
        """Order the nodes of each component by breadth-first search."""
        seen = [False] * len(self.into)
        seen[self.paths.sink] = True
        ordered: list[int] = []
        for start in starts:
            if seen[start]:
                continue
            seen[start] = True
            ordered.append(start)
            at = len(ordered) - 1
            while at < len(ordered):
                node = ordered[at]
                at += 1
                for end in (
                    *(self.tail[arc] for arc in self.into[node]),
                    *(self.head[arc] for arc in self.out_of[node]),
                ):
                    if not seen[end]:
                        seen[end] = True
                        ordered.append(end)
        return ordered

    def run(self) -> bool:
        """Relax the arcs into the active nodes, in order. Return whether any distance fell."""
        paths = self.paths
        distance, via = paths.distance.tolist(), paths.via.tolist()
        sign = 1 if self.is_forward else -1
        ahead = [sign * self.position[node] for node in self.active]
        heapify(ahead)
        waiting = set(ahead)
        behind: dict[int, None] = {}
        while ahead:
            at = heappop(ahead)
            waiting.discard(at)
            for fallen in self._relax(self.nodes[sign * at], distance, via):
                position = sign * self.position[fallen]
                if position < at:
                    behind[fallen] = None
                elif position not in waiting:
                    waiting.add(position)
                    heappush(ahead, position)
        paths.distance[:], paths.via[:] = distance, via
        self.active = behind
        self.is_forward = not self.is_forward
        return bool(behind) or bool(paths.distance[paths.sink] < 0)

    def _relax(self, node: int, distance: list[int], via: list[int]) -> Iterator[int]:
        """Lower the distances of the nodes with an arc into a node, and yield these nodes."""
        own = distance[node]
        for arc in self.into[node]:
            offer = own + self.cost[arc]
            start = self.tail[arc]
            if offer < distance[start]:
                distance[start] = offer
                via[start] = arc
                # A distance of the sink below 0 ends the search: it is on a cycle.
                if start != self.paths.sink:
                    yield start
