"""Shortest paths in the residual network, which give node prices or a negative cycle."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.solver.problem import Ints
from kassay.solver.subscription_network import SubscriptionNetwork

_INFINITY = np.int64(2**62)


class Step(NamedTuple):
    """A transfer of one partition of a topic between members, as indices in the network."""

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
        half = self.scale // 2
        for cost in costs.tolist():
            squared = (cost + half) // self.scale
            yield squared, cost - squared * self.scale


class _ShortestPaths:
    """Bellman-Ford towards the sink, one vectorised pass over the arcs per round."""

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
            self.members[loads >= network.capacity] = _INFINITY
        self.last_cost = (2 * loads - 1) * self.scale
        self.topics = np.full(network.topics, _INFINITY)
        # The arc that last lowered the cost of each node; -1 for paths directly to the sink.
        self.via_topic = np.full(network.topics, -1, dtype=np.int64)
        self.via_member = np.full(network.members, -1, dtype=np.int64)

    def relax(self) -> bool:
        """Relax every arc once, and return whether a cost fell."""
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
        """Return the member that gains most if its last partition moves to another member."""
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
        """Return a cycle among the shortest paths, if there is one."""
        for member in np.flatnonzero(self.via_member >= 0).tolist():
            chain = self.chain_from(member)
            if chain and chain[0].giver == chain[-1].taker:
                return chain
        return None


def node_prices(network: SubscriptionNetwork, counts: Ints) -> NodePrices:
    """Find node prices, or a chain that shows that the counts are not optimal.

    After k rounds all chains of k transfers are known, so the first overpriced member gives
    a shortest chain that lowers the imbalance. Closed chains, which lower movement alone,
    are searched when the number of rounds is a power of two.
    """
    paths = _ShortestPaths(network, counts)
    rounds = 0
    chain: list[Step] | None = None
    while paths.relax():
        rounds += 1
        member = paths.overpriced_member()
        if member is not None:
            chain = paths.chain_from(member)
        elif rounds & (rounds - 1) == 0:
            chain = paths.cycle()
        if chain:
            break
    return NodePrices(paths.members, paths.topics, paths.scale, tuple(chain) if chain else None)
