"""Spread received partitions of each topic over many members, at equal loads and moves.

A minimum cost flow gives members few topics with many partitions each. If a member then leaves,
its partitions have few consumers with room, and others must move. The counts of received
partitions per topic and member are therefore made as even as the loads permit: proportional
fitting of the counts [1]_, and one maximum flow that rounds them.

References
----------
.. [1] W. E. Deming, F. F. Stephan. "On a least squares adjustment of a sampled frequency table
   when the expected marginal totals are known". Annals of Mathematical Statistics 11(4), 1940.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kassay.solver.flow.maximum_flow import maximum_flow
from kassay.solver.problem import Ints
from kassay.solver.subscription_network import SubscriptionNetwork

_MAX_ITERATIONS = 30
# The fitting ends if the loads of members differ by less than this share of all partitions.
_PRECISION = 0.002
_SMALLEST = 1e-300


def spread_received_partitions(network: SubscriptionNetwork, counts: Ints, arcs: Ints) -> Ints:
    """Spread the partitions that members receive evenly over topics and members.

    These partitions do not stay at their owners. The loads and the number of partitions that stay
    do not change.

    Parameters
    ----------
    arcs
        Ascending arcs that may receive partitions; others keep their counts.
    """
    kept = np.minimum(counts, network.owned)
    placed = counts - kept
    if int(placed.max(initial=0)) <= 1:
        return counts
    table = _Table.of(network, placed, arcs)
    rounded = table.rounded()
    if rounded is None:
        return counts
    spread = kept.copy()
    spread[table.arcs] += rounded
    outside = np.ones(len(counts), dtype=np.bool_)
    outside[table.arcs] = False
    spread[outside] = counts[outside]
    return spread


@dataclass(frozen=True, slots=True)
class _Table:
    """Arcs of the network, with the partitions to place per topic and per member."""

    arcs: Ints
    tail: Ints
    head: Ints
    supply: Ints  # per topic
    demand: Ints  # per member

    @classmethod
    def of(cls, network: SubscriptionNetwork, placed: Ints, arcs: Ints) -> "_Table":
        inside = np.zeros(len(placed), dtype=np.int64)
        inside[arcs] = placed[arcs]
        supply = np.bincount(network.tail, weights=inside, minlength=network.topics)
        demand = network.loads(inside)
        tail, head = network.tail[arcs], network.head[arcs]
        used = (supply[tail] > 0) & (demand[head] > 0)
        return cls(arcs[used], tail[used], head[used], supply.astype(np.int64), demand)

    def rounded(self) -> Ints | None:
        """Round the fitted counts to integers. Return None if the totals would change."""
        least = np.floor(self._fitted() + 1e-9).astype(np.int64)
        supply = self.supply - np.bincount(self.tail, weights=least, minlength=len(self.supply))
        demand = self.demand - np.bincount(self.head, weights=least, minlength=len(self.demand))
        highest = int(self.supply.max(initial=0))
        capacity = 1
        while True:
            rest = self._rest(supply.astype(np.int64), demand.astype(np.int64), capacity)
            if rest is not None:
                return least + rest
            if capacity >= highest:
                return None
            capacity *= 4

    def _fitted(self) -> NDArray[np.float64]:
        """Compute even fractional counts per arc within the totals of topics and members."""
        topics, members = len(self.supply), len(self.demand)
        count = np.ones(len(self.arcs))
        most = _PRECISION * float(self.demand.sum())
        for _ in range(_MAX_ITERATIONS):
            count *= _ratio(self.supply, np.bincount(self.tail, count, topics))[self.tail]
            loads = np.bincount(self.head, count, members)
            count *= _ratio(self.demand, loads)[self.head]
            if float(np.abs(loads - self.demand).sum()) < most:
                break
        ratio = _ratio(self.supply, np.bincount(self.tail, count, topics))
        result: NDArray[np.float64] = count * np.minimum(ratio, 1)[self.tail]
        return result

    def _rest(self, supply: Ints, demand: Ints, capacity: int) -> Ints | None:
        """Find integer counts per arc, at most ``capacity`` each, with the given totals.

        Return None if there are none.
        """
        topics, members = np.flatnonzero(supply), np.flatnonzero(demand)
        first = len(supply)
        source, sink = first + len(demand), first + len(demand) + 1
        flow = maximum_flow(
            np.concatenate([self.tail, np.full(len(topics), source), first + members]),
            np.concatenate([first + self.head, topics, np.full(len(members), sink)]),
            np.concatenate([np.full(len(self.tail), capacity), supply[topics], demand[members]]),
            source=source,
            sink=sink,
        )
        return None if flow.total < int(supply.sum()) else flow.flows[: len(self.tail)]


def _ratio(target: Ints, total: NDArray[Any]) -> NDArray[np.float64]:
    ratio: NDArray[np.float64] = target / np.maximum(total, _SMALLEST)
    return ratio
