"""Fewest moves at optimal loads by the primal-dual method, for sparse and small networks.

The flow starts with all partitions at their owners. Then each phase finds shortest paths from
members and topics with too many partitions to members with too few, and sends partitions along
all of them [1]_. It is fast if few partitions need long paths.

References
----------
.. [1] R. K. Ahuja, T. L. Magnanti, J. B. Orlin. "Network Flows". Prentice Hall, 1993,
   section 9.8.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.errors import InternalError
from kassay.solver.flow.optimal_loads_by_cuts import MAX_SMALL_ARCS, LevelSet
from kassay.solver.network.subscription_network import SubscriptionNetwork
from kassay.solver.number_ranges import UNREACHABLE
from kassay.solver.problem import Ints

# Link of a member to the node of its level set.
_TO_LEVEL_SET = -1
# A distance is `moves * _HOP + steps`: moves count before steps.
_HOP = 2**24
# Limits on the excess, at the start and after the first phases. Above them, the cost scaling
# of OR-Tools is faster.
_NODES_PER_EXCESS = 16
_FIRST_PHASES = 2
_MAX_EXCESS = 8


def few_chains_counts(network: SubscriptionNetwork, levels: Sequence[LevelSet]) -> Ints | None:
    """Minimise moves within the level sets by the primal-dual method; return counts per arc.

    Capacities of members are ignored. None if many phases seem necessary in a large network.
    """
    start = _ExcessStart.of(network, levels)
    is_large = len(network.tail) > MAX_SMALL_ARCS
    excess = int(np.maximum(start.excess, 0).sum())
    if is_large and excess > len(start.excess) // _NODES_PER_EXCESS:
        return None
    flow = _ExcessFlow(network, levels, start)
    phases = 0
    while flow.raise_potentials():
        flow.send_excess()
        phases += 1
        if is_large and phases >= _FIRST_PHASES and flow.total_excess() > _MAX_EXCESS:
            return None
    counts = np.zeros(len(network.tail), dtype=np.int64)
    counts[flow.arcs] = flow.count
    return counts


def min_moves_bound(network: SubscriptionNetwork, levels: Sequence[LevelSet]) -> int:
    """Return a lower bound on the moves to optimal loads, by counting.

    A partition moves if its owner is outside the level set of its topic. Further partitions of a
    member move if it owns more than its greatest optimal load, or if too many members of its level
    set own that many.
    """
    start = _ExcessStart.of(network, levels)
    outside = int(network.owned.sum() - network.owned[start.arcs].sum())
    return outside + int(np.maximum(start.excess[network.topics :], 0).sum())


@dataclass(frozen=True, slots=True)
class _ExcessStart:
    """Initial flow of the primal-dual method: owned partitions, and excess of each node."""

    arcs: Ints  # arcs within level sets
    level_of_member: Ints
    is_high: NDArray[np.bool_]  # per member: has one partition more than the lower load
    excess: Ints

    @classmethod
    def of(cls, network: SubscriptionNetwork, levels: Sequence[LevelSet]) -> "_ExcessStart":
        level_of_topic = np.full(network.topics, -1, dtype=np.int64)
        level_of_member = np.zeros(network.members, dtype=np.int64)
        low = np.zeros(network.members, dtype=np.int64)
        for index, level in enumerate(levels):
            level_of_topic[level.topics] = index
            level_of_member[level.members] = index
            low[level.members] = max(level.high - 1, 0)
        has_topics = np.array([len(level.topics) > 0 for level in levels], dtype=np.bool_)
        targets = np.array([level.at_high for level in levels], dtype=np.int64) * has_topics
        arcs = np.flatnonzero(level_of_topic[network.tail] == level_of_member[network.head])
        owned = np.zeros(len(network.tail), dtype=np.int64)
        owned[arcs] = network.owned[arcs]
        loads = network.loads(owned)
        is_high = (loads > low) & has_topics[level_of_member]
        high_members = np.bincount(level_of_member[is_high], minlength=len(levels))
        kept = np.bincount(network.tail, weights=owned, minlength=network.topics)
        excess = [network.supply - kept.astype(np.int64), loads - low - is_high]
        return cls(
            arcs, level_of_member, is_high, np.concatenate([*excess, high_members - targets])
        )


class _ExcessFlow:
    """Flow that is not yet balanced at each node.

    The nodes are the topics, then the members, then the level sets::

        topic --arcs--> member --_TO_LEVEL_SET--> level set

    A topic supplies its partitions, and each member keeps the lower load of its level set. The
    node of a level set receives one partition of each member with the higher load. A link of a
    topic or a member is the number of an arc, or `_TO_LEVEL_SET`; a link of a level set is the
    node of a member.
    """

    def __init__(
        self, network: SubscriptionNetwork, levels: Sequence[LevelSet], start: _ExcessStart
    ) -> None:
        topics, members = network.topics, network.members
        self.topics, self.first_level = topics, topics + members
        self.arcs = start.arcs
        self.tail: list[int] = network.tail[self.arcs].tolist()
        self.head: list[int] = (network.head[self.arcs] + topics).tolist()
        self.owned: list[int] = network.owned[self.arcs].tolist()
        self.count = list(self.owned)
        self.is_high: list[bool] = start.is_high.tolist()
        self.sink: list[int] = (start.level_of_member + self.first_level).tolist()
        self.excess: list[int] = start.excess.tolist()
        self.potential = [0] * len(self.excess)
        self.sources = [node for node, excess in enumerate(self.excess) if excess > 0]
        self.steps: dict[int, int] = {}  # of a shortest path from an excess to each node
        self.links = self._links(members, levels)

    def _links(self, members: int, levels: Sequence[LevelSet]) -> list[list[int]]:
        links: list[list[int]] = [[] for _ in range(self.topics + members)]
        for arc, (tail, head) in enumerate(zip(self.tail, self.head, strict=True)):
            links[tail].append(arc)
            links[head].append(arc)
        for member in range(members):
            links[self.topics + member].append(_TO_LEVEL_SET)
        return [*links, *((level.members + self.topics).tolist() for level in levels)]

    def residual(self, node: int, link: int) -> tuple[int, int, int]:
        """Return the end node, cost and remaining capacity of a link in the residual network.

        A partition that a topic gives to a member is free while the member owns one more of the
        topic, and otherwise costs a move. In the opposite direction, moves are taken back first.
        """
        if node < self.topics:
            spare = self.owned[link] - self.count[link]
            return (self.head[link], 0, spare) if spare > 0 else (self.head[link], 1, UNREACHABLE)
        if node >= self.first_level:
            return link, 0, int(self.is_high[link - self.topics])
        if link == _TO_LEVEL_SET:
            member = node - self.topics
            return self.sink[member], 0, int(not self.is_high[member])
        foreign = self.count[link] - self.owned[link]
        if foreign > 0:
            return self.tail[link], -1, foreign
        return self.tail[link], 0, self.count[link]

    def send(self, node: int, link: int, amount: int) -> None:
        """Send an amount along a link of a node."""
        if node < self.topics:
            self.count[link] += amount
        elif node >= self.first_level:
            self.is_high[link - self.topics] = False
        elif link == _TO_LEVEL_SET:
            self.is_high[node - self.topics] = True
        else:
            self.count[link] -= amount

    def total_excess(self) -> int:
        """Return the number of partitions that are still at the wrong node."""
        return sum(self.excess[node] for node in self.sources)

    def raise_potentials(self) -> bool:
        """Change node prices so that shortest paths to deficits have reduced cost 0.

        Return False if no excess is left. The search ends when the deficits that it reached can
        receive all excess.
        """
        self.sources = [node for node in self.sources if self.excess[node] > 0]
        if not self.sources:
            return False
        distance, farthest = self._distances()
        if farthest < 0:
            raise InternalError("the residual network has no path from an excess to a deficit")
        self.steps = {}
        for node, at in distance.items():
            moves, self.steps[node] = divmod(at, _HOP)
            if moves < farthest:
                self.potential[node] += moves - farthest
        return True

    def _distances(self) -> tuple[dict[int, int], int]:
        """Return distances from nodes with excess, and the greatest distance to a deficit."""
        potential, excess = self.potential, self.excess
        room = self.total_excess()
        distance = dict.fromkeys(self.sources, 0)
        queue = [(0, node) for node in self.sources]
        farthest = -1
        while queue and room > 0:
            at, node = heappop(queue)
            if at > distance[node]:
                continue
            if excess[node] < 0:
                farthest = at // _HOP
                room += excess[node]
            base = at + potential[node] * _HOP + 1
            for link in self.links[node]:
                end, cost, capacity = self.residual(node, link)
                if capacity:
                    reached = base + (cost - potential[end]) * _HOP
                    if reached < distance.get(end, UNREACHABLE):
                        distance[end] = reached
                        heappush(queue, (reached, end))
        return distance, farthest

    def send_excess(self) -> None:
        """Send excess along paths of reduced cost 0 until no such path is left."""
        search = _PathSearch(self)
        for source in self.sources:
            while self.excess[source] > 0 and search.send_from(source):
                pass


class _PathSearch:
    """Depth-first search for paths of reduced cost 0 to deficits, during one phase.

    Each step of a path leads to a node that is more steps away from an excess, so paths have no
    cycle. Within a phase, a link that is full or leads to a dead end remains so: each node keeps
    its current link, and the links before it are not tried again.
    """

    def __init__(self, flow: _ExcessFlow) -> None:
        self.flow = flow
        self.dead_ends: set[int] = set()
        self.current: dict[int, int | None] = {}  # link in use per node; None after the last one
        self.untried: dict[int, Iterator[int]] = {}  # links after the current one

    def send_from(self, source: int) -> bool:
        """Find one path from a node to a deficit, and send excess along it."""
        flow = self.flow
        path, links = [source], list[int]()  # each node but the last one sends through a link
        amounts = [flow.excess[source]]
        while path:
            node = path[-1]
            if flow.excess[node] < 0:
                amount = min(amounts[-1], -flow.excess[node])
                for giver, link in zip(path, links, strict=False):
                    flow.send(giver, link, amount)
                flow.excess[source] -= amount
                flow.excess[node] += amount
                return True
            step = self._next_step(node)
            if step is None:
                self.dead_ends.add(node)
                path.pop()
                amounts.pop()
                del links[-1:]
            else:
                link, end, capacity = step
                path.append(end)
                links.append(link)
                amounts.append(min(amounts[-1], capacity))
        return False

    def _next_step(self, node: int) -> tuple[int, int, int] | None:
        """Advance a node to its next usable link; return the link, its end and its capacity.

        Return None if all links of the node are used up.
        """
        flow = self.flow
        if node not in self.untried:
            self.untried[node] = iter(flow.links[node])
            self.current[node] = next(self.untried[node], None)
        potential, steps, untried = flow.potential, flow.steps, self.untried[node]
        while (link := self.current[node]) is not None:
            end, cost, capacity = flow.residual(node, link)
            is_shortest = potential[node] + cost == potential[end]
            is_ahead = steps.get(end, -1) > steps[node]
            if capacity and is_shortest and is_ahead and end not in self.dead_ends:
                return link, end, capacity
            self.current[node] = next(untried, None)
        return None
