"""Maximum flows with minimum cuts, and minimum cost flows with reduced costs.

Maximum flows of small networks are found by augmenting paths, because loading OR-Tools takes a
tenth of a second. The method is that of Edmonds and Karp, "Theoretical improvements in algorithmic
efficiency for network flow problems", Journal of the ACM 19(2), 1972. OR-Tools finds all others.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.errors import InternalError
from kassay.solver.problem import Ints

# Networks with at most this many arcs are small.
MAX_SMALL_ARCS = 256


@dataclass(frozen=True, slots=True)
class MaximumFlow:
    """Maximum flow: flow per arc, total flow, and the source side of a minimum cut.

    The source side is the smallest of all minimum cuts.
    """

    flows: Ints
    total: int
    source_side: NDArray[np.bool_]


def maximum_flow(tail: Ints, head: Ints, capacity: Ints, *, source: int, sink: int) -> MaximumFlow:
    """Compute a maximum flow from the source to the sink.

    The sink must be the node with the highest number.
    """
    if len(tail) <= MAX_SMALL_ARCS:
        return _by_augmenting_paths(tail.tolist(), head.tolist(), capacity.tolist(), source, sink)
    return _by_ortools(tail, head, capacity, source, sink)


def _by_ortools(tail: Ints, head: Ints, capacity: Ints, source: int, sink: int) -> MaximumFlow:
    from ortools.graph.python import max_flow  # noqa: PLC0415

    flow = max_flow.SimpleMaxFlow()
    arcs = flow.add_arcs_with_capacity(tail.astype(np.int32), head.astype(np.int32), capacity)
    if flow.solve(source, sink) != flow.OPTIMAL:
        raise InternalError("OR-Tools found no maximum flow")
    side = np.zeros(sink + 1, dtype=np.bool_)
    side[np.asarray(flow.get_source_side_min_cut(), dtype=np.int64)] = True
    return MaximumFlow(np.asarray(flow.flows(arcs), dtype=np.int64), flow.optimal_flow(), side)


def _by_augmenting_paths(
    tail: list[int], head: list[int], capacity: list[int], source: int, sink: int
) -> MaximumFlow:
    """Compute a maximum flow by shortest augmenting paths (Edmonds and Karp).

    The reverse of arc ``i`` is ``~i``.
    """
    links: list[list[int]] = [[] for _ in range(sink + 1)]
    for arc, (start, end) in enumerate(zip(tail, head, strict=True)):
        links[start].append(arc)
        links[end].append(~arc)
    flows, total = [0] * len(tail), 0
    while True:
        reached: dict[int, int | None] = {source: None}  # node to the arc that leads to it
        queue = deque([source])
        while queue and sink not in reached:
            for arc in links[queue.popleft()]:
                node = head[arc] if arc >= 0 else tail[~arc]
                left = capacity[arc] - flows[arc] if arc >= 0 else flows[~arc]
                if left and node not in reached:
                    reached[node] = arc
                    queue.append(node)
        if sink not in reached:
            side = np.zeros(sink + 1, dtype=np.bool_)
            side[list(reached)] = True
            return MaximumFlow(np.array(flows, dtype=np.int64), total, side)
        path = []
        node = sink
        while (step := reached[node]) is not None:
            path.append(step)
            node = tail[step] if step >= 0 else head[~step]
        amount = min(capacity[a] - flows[a] if a >= 0 else flows[~a] for a in path)
        for arc in path:
            flows[max(arc, ~arc)] += amount if arc >= 0 else -amount
        total += amount


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
