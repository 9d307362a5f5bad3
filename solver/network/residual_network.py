"""Shortest paths in the residual network, which give node prices or a negative cycle."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.solver.network.subscription_network import SubscriptionNetwork
from kassay.solver.number_ranges import UNREACHABLE
from kassay.solver.problem import Ints

# Rounds over all arcs; more are only needed for long chains.
_MAX_ROUNDS = 32
Price = tuple[int, int]  # squared load, movement; compared lexicographically


class Step(NamedTuple):
    """Transfer of one partition between members; topic and members are network indices."""

    topic: int
    giver: int
    taker: int


@dataclass(frozen=True, slots=True)
class NodePrices:
    """Minimum cost of assigning one more partition, per member and per topic.

    A cost (squared load, movement) is one integer, ``squared * scale + movement``. The scale
    exceeds the movement of any chain.
    """

    members: Ints  # final only without a chain
    topics: Ints
    scale: int
    chain: tuple[Step, ...] | None  # transfers that improve the assignment

    def pairs(self, costs: Ints) -> Iterator[tuple[int, int]]:
        """Split combined costs into pairs of squared load and movement."""
        distinct, codes = np.unique(costs, return_inverse=True)
        squared = (distinct + self.scale // 2) // self.scale
        # Equal pairs are one object: many nodes have few prices.
        table = list(zip(squared.tolist(), (distinct - squared * self.scale).tolist(), strict=True))
        return map(table.__getitem__, codes.tolist())


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices of topics and members that prove an assignment optimal.

    The prices are dual values of a minimum cost flow. They prove the sum of squared loads, then
    the movement, to be minimum. Members that consume a topic have the price of one more
    partition; topics with subscribers have the price of one partition.
    """

    members: Mapping[str, Price]
    topics: Mapping[str, Price]


def price_counts(network: SubscriptionNetwork, counts: Ints, *, moved: int) -> PriceTable | None:
    """Return node prices that prove the partition counts per topic and member optimal.

    Return None if the counts are not optimal.
    """
    prices = node_prices(network, counts)
    if prices.chain is not None or moved > network.min_movement(counts):
        return None
    return PriceTable(
        members=dict(zip(network.member_ids, prices.pairs(prices.members), strict=True)),
        topics=dict(zip(network.topic_names, prices.pairs(prices.topics), strict=True)),
    )


class _ShortestPaths:
    """Bellman-Ford algorithm for paths to the sink, one vectorised pass over arcs per round."""

    def __init__(self, network: SubscriptionNetwork, counts: Ints) -> None:
        loads = network.loads(counts)
        self.network = network
        self.scale = 4 * (network.topics + network.members + 2)
        self.first = np.searchsorted(network.tail, np.arange(network.topics))
        giving = np.flatnonzero(counts > 0)
        self.giving = giving[np.argsort(network.head[giving], kind="stable")]
        self.givers, self.first_given = np.unique(network.head[self.giving], return_index=True)
        self.entering = (counts >= network.owned).astype(np.int64)
        self.leaving = (counts > network.owned).astype(np.int64)
        self.members = (2 * loads + 1) * self.scale
        if network.capacity is not None:
            self.members[loads >= network.capacity] = UNREACHABLE
        self.last_cost = (2 * loads - 1) * self.scale
        self.topics = np.full(network.topics, UNREACHABLE)
        # The arc that last lowered the cost of each node; -1 for paths directly to the sink.
        self.via_topic = np.full(network.topics, -1, dtype=np.int64)
        self.via_member = np.full(network.members, -1, dtype=np.int64)

    def relax(self) -> bool:
        """Relax every arc once, and return whether the cost of any node fell."""
        return self._relax_topics() and self._relax_members()

    def _relax_topics(self) -> bool:
        tail = self.network.tail
        offers = self.members[self.network.head] + self.entering
        best = np.minimum.reduceat(offers, self.first)
        fell: NDArray[np.bool_] = best < self.topics
        self.topics = np.minimum(self.topics, best)
        arcs = np.flatnonzero(fell[tail] & (offers == best[tail]))[::-1]
        self.via_topic[tail[arcs]] = arcs
        return bool(fell.any())

    def _relax_members(self) -> bool:
        offers = self.topics[self.network.tail[self.giving]] - self.leaving[self.giving]
        best = np.minimum.reduceat(offers, self.first_given)
        fell = best < self.members[self.givers]
        self.members[self.givers] = np.minimum(self.members[self.givers], best)
        giver = np.repeat(np.arange(len(best)), np.diff([*self.first_given, len(offers)]))
        arcs = np.flatnonzero(fell[giver] & (offers == best[giver]))[::-1]
        self.via_member[self.givers[giver[arcs]]] = self.giving[arcs]
        return bool(fell.any())

    def overpriced_member(self) -> int | None:
        """Return the member that gains most by giving one partition away, or None."""
        gain = self.last_cost - self.members
        member = int(np.argmax(gain))
        return member if gain[member] > 0 else None

    def chain_from(self, member: int) -> list[Step]:
        """Follow the shortest path of a member to the sink, or until the path forms a cycle."""
        chain: list[Step] = []
        visited = {member: 0}
        while self.via_member[member] >= 0:
            topic = int(self.network.tail[self.via_member[member]])
            taker = int(self.network.head[self.via_topic[topic]])
            chain.append(Step(topic, member, taker))
            if taker in visited:
                return chain[visited[taker] :]
            visited[taker] = len(chain)
            member = taker
        return chain

    def cycle(self) -> list[Step] | None:
        """Return a cycle among the shortest paths as transfers, or None."""
        end = self.network.members
        taker = np.full(end + 1, end, dtype=np.int64)
        givers = np.flatnonzero(self.via_member >= 0)
        topics = self.network.tail[self.via_member[givers]]
        taker[givers] = self.network.head[self.via_topic[topics]]
        # The number of steps doubles, until it exceeds the length of any path.
        for _ in range(end.bit_length()):
            taker = taker[taker]
        endless = np.flatnonzero(taker != end)
        return self.chain_from(int(endless[0])) if len(endless) else None


def node_prices(network: SubscriptionNetwork, counts: Ints) -> NodePrices:
    """Find node prices that prove counts optimal, or a chain of transfers that improves them.

    After k rounds all chains of k transfers are known, so the first overpriced member gives
    a shortest chain that lowers the imbalance. Closed chains, which lower movement alone,
    are searched when the number of rounds is a power of two. Long chains are found by sweeps
    over the nodes; they need not be the shortest ones.
    """
    paths = _ShortestPaths(network, counts)
    rounds = 0
    chain: list[Step] | None = None
    while not chain and rounds < _MAX_ROUNDS and paths.relax():
        rounds += 1
        member = paths.overpriced_member()
        if member is not None:
            chain = paths.chain_from(member)
        elif rounds & (rounds - 1) == 0:
            chain = paths.cycle()
    if not chain and rounds == _MAX_ROUNDS:
        chain = _sweep(paths, counts)
    return NodePrices(paths.members, paths.topics, paths.scale, tuple(chain) if chain else None)


def _sweep(paths: _ShortestPaths, counts: Ints) -> list[Step] | None:
    """Relax nodes in alternating order until prices are final or an improving chain is found."""
    sweeps = _Sweeps(paths, counts)
    has_fallen = True
    chain: list[Step] | None = None
    while has_fallen and not chain:
        has_fallen = sweeps.run()
        sweeps.store(paths)
        member = paths.overpriced_member()
        chain = paths.cycle() if member is None else paths.chain_from(member)
    return chain


class _Sweeps:
    """Bellman-Ford algorithm with nodes in breadth-first order, forwards and backwards in turn.

    A path that follows the order is relaxed in one sweep, however long it is. Nodes are topics,
    then members.
    """

    def __init__(self, paths: _ShortestPaths, counts: Ints) -> None:
        network = paths.network
        self.topics = network.topics
        self.tail = network.tail.tolist()
        self.head = (network.head + network.topics).tolist()
        self.price: list[int] = [*paths.topics.tolist(), *paths.members.tolist()]
        self.via: list[int] = [*paths.via_topic.tolist(), *paths.via_member.tolist()]
        self.entering = paths.entering.tolist()
        self.leaving = paths.leaving.tolist()
        self.is_used = (counts > 0).tolist()
        self.links: list[list[int]] = [[] for _ in self.price]
        for arc, (topic, member) in enumerate(zip(self.tail, self.head, strict=True)):
            self.links[topic].append(arc)
            self.links[member].append(arc)
        self.nodes = self._breadth_first_order()
        self.position = [0] * len(self.nodes)
        for position, node in enumerate(self.nodes):
            self.position[node] = position
        self.active = set(range(len(self.nodes)))
        self.is_forward = False

    def _breadth_first_order(self) -> list[int]:
        """Order the nodes of each component by breadth-first search from one of its ends.

        A first search finds the ends.
        """
        ordered = self._reached_from(range(len(self.price)))
        return self._reached_from(reversed(ordered))

    def _reached_from(self, starts: Iterable[int]) -> list[int]:
        seen = [False] * len(self.price)
        ordered: list[int] = []
        for start in starts:
            if seen[start]:
                continue
            seen[start] = True
            ordered.append(start)
            at = len(ordered) - 1
            while at < len(ordered):
                node = ordered[at]
                ends = self.head if node < self.topics else self.tail
                for arc in self.links[node]:
                    if not seen[ends[arc]]:
                        seen[ends[arc]] = True
                        ordered.append(ends[arc])
                at += 1
        return ordered

    def run(self) -> bool:
        """Relax the active nodes in order. Return whether any price fell."""
        sign = 1 if self.is_forward else -1
        ahead = [sign * self.position[node] for node in self.active]
        heapify(ahead)
        waiting = set(ahead)
        behind: set[int] = set()
        while ahead:
            at = heappop(ahead)
            waiting.discard(at)
            for fallen in self._relax(self.nodes[sign * at]):
                position = sign * self.position[fallen]
                if position < at:
                    behind.add(fallen)
                elif position not in waiting:
                    waiting.add(position)
                    heappush(ahead, position)
        self.active = behind
        self.is_forward = not self.is_forward
        return bool(behind)

    def _relax(self, node: int) -> Iterator[int]:
        """Lower the prices of a node's neighbours, and yield the changed neighbours."""
        price = self.price
        own = price[node]
        for arc in self.links[node]:
            if node >= self.topics:
                end, offer = self.tail[arc], own + self.entering[arc]
            elif self.is_used[arc]:
                end, offer = self.head[arc], own - self.leaving[arc]
            else:
                continue
            if offer < price[end]:
                price[end] = offer
                self.via[end] = arc
                yield end

    def store(self, paths: _ShortestPaths) -> None:
        """Copy the prices and paths of the sweeps to a `_ShortestPaths` object."""
        paths.topics[:] = self.price[: self.topics]
        paths.members[:] = self.price[self.topics :]
        paths.via_topic[:] = self.via[: self.topics]
        paths.via_member[:] = self.via[self.topics :]
