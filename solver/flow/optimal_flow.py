"""Optimal placement for equal weights by one minimum cost flow, and the structure of its loads.

A minimum cost flow gives members few topics with many partitions each. If a member then leaves,
its partitions have few consumers with room, and others must move. The counts of received
partitions per topic and member are therefore made as even as the loads permit: proportional
fitting of the counts [1]_, and one maximum flow that rounds them.

References
----------
.. [1] W. E. Deming, F. F. Stephan. "On a least squares adjustment of a sampled frequency table
   when the expected marginal totals are known". Annals of Mathematical Statistics 11(4), 1940.
.. [2] A. Frank, K. Murota. "Decreasing minimization on M-convex sets: background and
   structures". Mathematical Programming 195, 2022.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.errors import InternalError
from kassay.solver.flow.convex_flow import ConvexFlow, maximum_flow
from kassay.solver.network.level_network import SQUARES_AND_MOVES, LevelNetwork, level_network
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.objective import Movement
from kassay.solver.problem import Ints, Placement, Problem

# Cost scaling is slow if one partition moves along thousands of members. Few cycles of negative
# cost are found fast, so that they are tried first if a topic has few consumers.
_MAX_CYCLES = 4
_MAX_ARCS_PER_NODE = 4
_MAX_ITERATIONS = 30
# The fitting ends if the loads of members differ by less than this share of all partitions.
_PRECISION = 0.002
_SMALLEST = 1e-200


@dataclass(frozen=True, slots=True)
class OptimalFlow:
    """Optimal placement with the node prices that prove it optimal."""

    placement: Placement
    prices: tuple[int, ...]


def flow_work(problem: Problem) -> float:
    """Estimate the work of one network flow from the size of the network."""
    sizes = np.array([len(consumers) for consumers in problem.consumer_sets], dtype=np.int64)
    placed = problem.consumer_set_of_topic[problem.consumer_set_of_topic >= 0]
    nodes = len(placed) + problem.member_count
    # Seconds of a processor of 2020, per arc, node and partition.
    return 8e-7 * int(sizes[placed].sum()) + 2.5e-5 * nodes + 1e-6 * problem.partition_count


def solve_flow(problem: Problem, levels: int = 2) -> OptimalFlow:
    """Find the placement with the fewest moves among those with optimal loads.

    Weights must be equal: only counts are used. The prices are computed independently of the
    flow and prove the result, or only its loads with one level.
    """
    network = build_network(problem)
    arcs = level_network(problem, SQUARES_AND_MOVES, network)
    counts = _optimal_counts(arcs)
    prices = arcs.prices(SQUARES_AND_MOVES[:levels], arcs.flow_of(counts))
    if prices is None:
        raise InternalError("the prices do not prove that the flow is optimal")
    return OptimalFlow(network.place(counts), prices)


def optimal_counts(network: SubscriptionNetwork) -> Ints:
    """Return counts per arc with optimal loads and, among those, the fewest moves.

    Optimal loads are least majorised. Partitions that do not stay at their owner are spread over
    topics. There must be an assignment within the capacities of the network.
    """
    return _optimal_counts(level_network(network.problem, SQUARES_AND_MOVES, network))


def _optimal_counts(arcs: LevelNetwork) -> Ints:
    network = arcs.network
    expected = np.zeros_like(arcs.high)
    expected[arcs.members] = _expected_loads(network)
    flow = _flow_by_cycles(arcs)
    if flow is None:
        flow = _even_flow(arcs, expected[arcs.members])
        if flow is not None and not network.owned.any():
            return arcs.counts(flow)  # spread already
    if flow is None:
        flow = ConvexFlow(arcs).cheapest(arcs.weighted(SQUARES_AND_MOVES), expected)
    if flow is None:
        raise InternalError("no flow meets the capacities of the members")
    return spread_received_partitions(network, arcs.counts(flow))


def _even_flow(arcs: LevelNetwork, expected: Ints) -> Ints | None:
    """Return the flow with the fewest moves if all loads differ by at most one.

    Only moves have costs then, so that it is found faster. Return None if such loads are unlikely
    or not possible.
    """
    network = arcs.network
    mean, more = divmod(int(network.supply.sum()), max(network.members, 1))
    if network.capacity is not None or int(np.abs(expected - mean).max(initial=0)) > 1:
        return None
    if not network.owned.any():
        demand = np.full(network.members, mean)
        demand[np.argsort(-expected, kind="stable")[:more]] += 1
        counts = _ReceivedPartitions.within(network, network.supply, demand).counts()
        return None if counts is None else arcs.flow_of(counts)
    even = ConvexFlow(arcs)
    even.low[arcs.members] = mean
    even.high[arcs.members] = np.minimum(network.max_counts, mean + (more > 0))
    if (even.high < even.low).any():
        return None
    return even.cheapest(((Movement(), 1),), even.low)


def _flow_by_cycles(arcs: LevelNetwork) -> Ints | None:
    """Improve the flow of the owners by few cycles of the residual network.

    Return None if the owners have no flow, or if more cycles are necessary.
    """
    network = arcs.network
    is_sparse = len(network.tail) <= _MAX_ARCS_PER_NODE * (network.topics + network.members)
    flow = arcs.flow_of(network.owned)
    if not is_sparse or (network.owned.sum() < network.supply.sum()) or (flow > arcs.high).any():
        return None
    costs = arcs.weighted(SQUARES_AND_MOVES)
    for _ in range(_MAX_CYCLES):
        _, cycle = arcs.paths(costs, flow)
        if not len(cycle):
            return flow
        flow[cycle[cycle >= 0]] += 1
        flow[~cycle[cycle < 0]] -= 1
    return None


def _expected_loads(network: SubscriptionNetwork) -> Ints:
    """Return the approximate optimal loads, from the most even loads of divisible partitions."""
    mean = network.supply.sum() / max(network.members, 1)
    share = np.ones(network.members)
    loads: NDArray[np.float64] = np.zeros(network.members)
    for _ in range(_MAX_ITERATIONS):
        of_topic = np.bincount(network.tail, share[network.head], network.topics)
        part = share[network.head] * _ratio(network.supply, of_topic)[network.tail]
        before, loads = loads, np.bincount(network.head, part, network.members).astype(np.float64)
        if float(np.abs(loads - before).max(initial=0)) < 0.5:
            break
        # Members with a high load get smaller shares. The limits only prevent an overflow.
        share = np.clip(share * mean / np.maximum(loads, _SMALLEST), 1e-60, 1e60)
    return np.rint(loads).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LevelSet:
    """Members whose optimal loads differ by at most one, or that are full.

    All least majorised loads share one structure [2]_: each level set receives a fixed number of
    partitions.
    """

    members: Ints
    high: int  # the greater of the two loads
    at_high: int  # number of members with this load
    arcs: Ints  # of these members, from the topics that only they and earlier level sets consume


def level_sets(network: SubscriptionNetwork, counts: Ints) -> tuple[LevelSet, ...]:
    """Return the level sets of optimal counts per arc, by descending load.

    A level set consists of the members with the greatest load, and of those that can receive their
    partitions by chains of transfers.
    """
    loads = network.loads(counts)
    search = _LevelSearch(network, counts)
    highs: list[int] = []
    for first in np.argsort(-loads, kind="stable").tolist():
        if search.level_of_member[first] < 0:
            if not highs or int(loads[first]) < highs[-1]:
                highs.append(int(loads[first]))
            search.add(first, len(highs) - 1)
    of_member, of_topic = np.array(search.level_of_member), np.array(search.level_of_topic)
    of_arc = of_topic[network.tail]
    inside = of_arc == of_member[network.head]
    return tuple(
        LevelSet(
            np.flatnonzero(of_member == level),
            high,
            int(np.count_nonzero(loads[of_member == level] == high)),
            np.flatnonzero(inside & (of_arc == level)),
        )
        for level, high in enumerate(highs)
    )


class _LevelSearch:
    """Breadth-first search for members that can receive partitions by chains of transfers."""

    def __init__(self, network: SubscriptionNetwork, counts: Ints) -> None:
        self.given: list[list[int]] = [[] for _ in range(network.members)]  # topics
        self.consumers: list[list[int]] = [[] for _ in range(network.topics)]
        columns = zip(network.tail.tolist(), network.head.tolist(), counts.tolist(), strict=True)
        for topic, member, count in columns:
            self.consumers[topic].append(member)
            if count:
                self.given[member].append(topic)
        self.level_of_member = [-1] * network.members
        self.level_of_topic = [-1] * network.topics

    def add(self, first: int, level: int) -> None:
        """Add a member, and all members and topics that are reached from it, to a level set."""
        self.level_of_member[first] = level
        queue = deque([first])
        while queue:
            for topic in self.given[queue.popleft()]:
                if self.level_of_topic[topic] >= 0:
                    continue
                self.level_of_topic[topic] = level
                for member in self.consumers[topic]:
                    if self.level_of_member[member] < 0:
                        self.level_of_member[member] = level
                        queue.append(member)


def is_feasible(network: SubscriptionNetwork) -> bool:
    """Return whether the capacities of the network permit an assignment."""
    used = np.flatnonzero(network.supply)
    if not np.isin(used, network.tail).all():
        return False
    if network.capacity is None:
        return True
    most = network.supply[network.tail]
    return (
        _bipartite_flow(network.tail, network.head, most, network.supply, network.capacity)
        is not None
    )


def spread_received_partitions(network: SubscriptionNetwork, counts: Ints) -> Ints:
    """Spread the partitions that members receive evenly over topics and members.

    These partitions do not stay at their owners. The loads and the number of partitions that stay
    do not change.
    """
    kept = np.minimum(counts, network.owned)
    placed = counts - kept
    if int(placed.max(initial=0)) <= 1:
        return counts
    supply = np.bincount(network.tail, placed, network.topics).astype(np.int64)
    # No optimal loads have partitions of a topic at members with much more than another consumer.
    loads = network.loads(counts)
    lowest = np.full(network.topics, network.problem.partition_count)
    np.minimum.at(lowest, network.tail, loads[network.head])
    open_ = (loads[network.head] <= lowest[network.tail] + 1) | (placed > 0)
    received = _ReceivedPartitions.within(network, supply, network.loads(placed), open_).counts()
    return counts if received is None else kept + received


@dataclass(frozen=True, slots=True)
class _ReceivedPartitions:
    """Arcs of the network, with the partitions to place per topic and per member."""

    arcs: Ints
    arc_count: int  # of the network
    tail: Ints
    head: Ints
    supply: Ints  # per topic
    demand: Ints  # per member

    @classmethod
    def within(
        cls,
        network: SubscriptionNetwork,
        supply: Ints,
        demand: Ints,
        open_: NDArray[np.bool_] | bool = True,
    ) -> "_ReceivedPartitions":
        arcs = np.flatnonzero((supply[network.tail] > 0) & (demand[network.head] > 0) & open_)
        return cls(arcs, len(network.tail), network.tail[arcs], network.head[arcs], supply, demand)

    def counts(self) -> Ints | None:
        """Return even counts per arc of the network, or None if the totals do not permit any.

        Fitted fractional counts are rounded.
        """
        least = np.floor(self._fitted() + 1e-9).astype(np.int64)
        supply = self.supply - np.bincount(self.tail, weights=least, minlength=len(self.supply))
        demand = self.demand - np.bincount(self.head, weights=least, minlength=len(self.demand))
        highest = int(self.supply.max(initial=0))
        capacity = 1
        while True:
            most = np.full(len(self.arcs), capacity)
            rest = _bipartite_flow(
                self.tail, self.head, most, supply.astype(np.int64), demand.astype(np.int64)
            )
            if rest is not None:
                counts = np.zeros(self.arc_count, dtype=np.int64)
                counts[self.arcs] = least + rest
                return counts
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


def _bipartite_flow(
    tail: Ints, head: Ints, capacity: Ints, supply: Ints, demand: Ints
) -> Ints | None:
    """Return a flow per arc that sends all supply of the topics, within the demand of the members.

    Return None if there is none.
    """
    topics, members = np.flatnonzero(supply), np.flatnonzero(demand)
    first = len(supply)
    source, sink = first + len(demand), first + len(demand) + 1
    flow = maximum_flow(
        np.concatenate([tail, np.full(len(topics), source), first + members]),
        np.concatenate([first + head, topics, np.full(len(members), sink)]),
        np.concatenate([capacity, supply[topics], demand[members]]),
        source=source,
        sink=sink,
    )[: len(tail)]
    return flow if int(flow.sum()) == int(supply.sum()) else None


def _ratio(target: Ints, total: NDArray[Any]) -> NDArray[np.float64]:
    ratio: NDArray[np.float64] = target / np.maximum(total, _SMALLEST)
    return ratio
