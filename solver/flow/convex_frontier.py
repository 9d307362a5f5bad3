"""For equal weights: the points of the frontier that lie on its convex hull, by flows alone.

A price on moves turns both aims into one convex min-cost flow. Two flows that are optimal
at the same price differ by closed chains which conform to the difference; convexity makes
every partial sum of them optimal too [1]_, so the points between two corners come at once.

References
----------
.. [1] S. Onn. "Nonlinear Discrete Optimization". European Mathematical Society, 2010:
   decomposition into conformal circuits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from ortools.graph.python import min_cost_flow

from kassay.reference.model.errors import InternalError
from kassay.solver.flow.network import Counts, Network, build_network
from kassay.solver.flow.placing import place_partitions
from kassay.solver.problem import Placement, Problem

# Beyond this many arcs one flow takes too long to be solved for every corner.
MOST_ARCS = 40_000


@dataclass(frozen=True, slots=True)
class Hull:
    """The lower convex hull of (moves, sum of squared counts).

    Parameters
    ----------
    network
        Where it was found.
    corners
        By ascending moves.
    counts
        By moves: counts of every point found on the hull; each is non-dominated.
    """

    network: Network
    corners: tuple[tuple[int, int], ...]
    counts: dict[int, Counts]

    def placement(self, moves: int) -> Placement:
        """Place a point found on the hull."""
        return place_partitions(self.network, self.counts[moves])

    def floor(self, moves: int) -> int:
        """Return the least sum of squares that so many moves could have by the hull alone."""
        for (k, v), (after, w) in pairwise(self.corners):
            if k <= moves <= after:
                drop = (v - w) * (moves - k)
                return v - drop // (after - k)
        return self.corners[-1][1] if moves >= self.corners[-1][0] else self.corners[0][1]


def hull_of(problem: Problem) -> Hull | None:
    """Find the hull; None if it would take long.

    Equal weights are taken for granted: only counts are looked at.

    Examples
    --------
    >>> from kassay.reference.model.group import Group, Member, Topic
    >>> from kassay.solver.problem import build_problem
    >>> members = (
    ...     Member(id="a", subscription=("t",), owned=[("t", p) for p in range(4)]),
    ...     Member(id="b", subscription=("t",)),
    ... )
    >>> group = Group(topics=(Topic(name="t", partitions=4),), members=members)
    >>> hull = hull_of(build_problem(group))
    >>> hull.corners, list(hull.counts)
    (((0, 16), (1, 10), (2, 8)), [0, 1, 2])
    """
    network = build_network(problem)
    room = np.bincount(
        network.head, weights=network.supply[network.tail], minlength=network.members
    ).astype(np.int64)
    if not problem.size or int(room.sum()) + len(network.tail) > MOST_ARCS:
        return None
    size = problem.size
    ends = [
        cheapest_at_price(network, room, 1, size**2 + 1),
        cheapest_at_price(network, room, size + 1, 1),
    ]
    corners = {values_of(network, counts): counts for counts in ends}
    waiting = [(ends[0], ends[1])]
    found: dict[int, Counts] = {moves: counts for (moves, _), counts in corners.items()}
    while waiting:
        left, right = waiting.pop()
        (k, v), (after, w) = values_of(network, left), values_of(network, right)
        if after <= k + 1:
            continue
        middle = cheapest_at_price(network, room, after - k, v - w)
        moves, squares = values_of(network, middle)
        if (after - k) * squares + (v - w) * moves < (after - k) * v + (v - w) * k:
            corners[moves, squares] = found[moves] = middle
            waiting += [(left, middle), (middle, right)]
            continue
        for counts in between(network, left, right):
            found.setdefault(values_of(network, counts)[0], counts)
    return Hull(network, tuple(sorted(corners)), dict(sorted(found.items())))


def values_of(network: Network, counts: Counts) -> tuple[int, int]:
    """Return moves and the sum of squared counts."""
    loads = np.bincount(network.head, weights=counts, minlength=network.members).astype(np.int64)
    moves = network.owned - np.minimum(network.owned, counts)
    return int(moves.sum()), int((loads**2).sum())


def cheapest_at_price(network: Network, room: Counts, square: int, move: int) -> Counts:
    """Return counts of the least ``square * sum of squares + move * moves``."""
    arcs, members = len(network.tail), network.topics + network.head
    owning = np.flatnonzero(network.owned)
    steps = np.concatenate([np.arange(size, dtype=np.int64) for size in room.tolist()])
    sink = network.topics + network.members
    flow = min_cost_flow.SimpleMinCostFlow()
    takers = network.topics + np.repeat(np.arange(network.members), room)
    ids = flow.add_arcs_with_capacity_and_unit_cost(
        np.concatenate([network.tail, network.tail[owning], takers]).astype(np.int32),
        np.concatenate([members, members[owning], np.full(len(steps), sink)]).astype(np.int32),
        np.concatenate(
            [network.supply[network.tail], network.owned[owning], np.ones(len(steps), np.int64)]
        ),
        np.concatenate(
            [np.full(arcs, move), np.zeros(len(owning), np.int64), square * (2 * steps + 1)]
        ),
    )
    supplies = np.zeros(sink + 1, dtype=np.int64)
    supplies[: network.topics] = network.supply
    supplies[sink] = -int(network.supply.sum())
    flow.set_nodes_supplies(np.arange(sink + 1, dtype=np.int32), supplies)
    if flow.solve() != flow.OPTIMAL:
        raise InternalError("no flow was found for a price on moves")
    flows = np.asarray(flow.flows(ids), dtype=np.int64)
    counts = flows[:arcs].copy()
    counts[owning] += flows[arcs : arcs + len(owning)]
    return counts


def between(network: Network, left: Counts, right: Counts) -> Iterator[Counts]:
    """Go from one flow to another chain by chain, along arcs whose counts differ."""
    change = right - left
    rise = np.bincount(network.head, weights=change, minlength=network.members).astype(np.int64)
    tail, head = network.tail.tolist(), network.head.tolist()
    by_topic: list[list[int]] = [[] for _ in range(network.topics)]
    by_member: list[list[int]] = [[] for _ in range(network.members)]
    for arc in np.flatnonzero(change).tolist():
        (by_topic[tail[arc]] if change[arc] > 0 else by_member[head[arc]]).append(arc)
    counts = left.copy()
    while change.any():
        falling = np.flatnonzero(rise < 0)
        start = int(falling[0]) if len(falling) else head[int(np.flatnonzero(change < 0)[0])]
        for arc, step in _chain(start, change, rise, (tail, head, by_topic, by_member)):
            counts[arc] += step
            change[arc] -= step
            rise[head[arc]] -= step
        yield counts.copy()


def _chain(
    start: int,
    change: Counts,
    rise: Counts,
    graph: tuple[list[int], list[int], list[list[int]], list[list[int]]],
) -> list[tuple[int, int]]:
    """Return one chain that conforms to the change: it ends where a load rises, or closes."""
    tail, head, by_topic, by_member = graph
    chain: list[tuple[int, int]] = []
    met_member: dict[int, int] = {start: 0}
    met_topic: dict[int, int] = {}
    member = start
    while True:
        given = next(arc for arc in by_member[member] if change[arc] < 0)
        if tail[given] in met_topic:
            # Closed at a topic: from the taking arc there to this giving arc.
            return [*chain[met_topic[tail[given]] + 1 :], (given, -1)]
        met_topic[tail[given]] = len(chain)
        chain.append((given, -1))
        taken = next(arc for arc in by_topic[tail[given]] if change[arc] > 0)
        chain.append((taken, 1))
        member = head[taken]
        if member in met_member:
            return chain[met_member[member] :]
        if rise[member] > 0 and rise[start] < 0:
            return chain
        met_member[member] = len(chain)
