"""Optimal assignment for equal weights by network flows, with prices that prove it optimal.

A minimum cost flow gives members few topics with many partitions each. If a member then leaves,
its partitions have few consumers with room, and others must move. The counts of received
partitions per topic and member are therefore made as even as the loads permit: proportional
fitting of the counts [1]_, and one maximum flow that rounds them.

References
----------
.. [1] W. E. Deming, F. F. Stephan. "On a least squares adjustment of a sampled frequency table
   when the expected marginal totals are known". Annals of Mathematical Statistics 11(4), 1940.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.errors import InternalError
from kassay.solver.flow.min_cost_flow import SinkArcs, min_cost_counts
from kassay.solver.flow.optimal_loads_by_cuts import (
    MAX_SMALL_ARCS,
    LevelSet,
    level_sets,
    maximum_flow,
)
from kassay.solver.flow.primal_dual import few_chains_counts
from kassay.solver.limits import FlowClock
from kassay.solver.network.residual_network import PriceTable, price_counts
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.problem import Ints, Placement, Problem

# Long chains occur in sparse networks; OR-Tools solves small networks fast in any case.
_MIN_NODES = 500
# A flow of a large network takes at most this many times as long as building its problem.
_TIMES_BUILDING = 5
_MAX_SLOWDOWN = 10
_MAX_ITERATIONS = 30
# The fitting ends if the loads of members differ by less than this share of all partitions.
_PRECISION = 0.002
_SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class OptimalFlow:
    """Optimal placement with the node prices that prove it optimal."""

    placement: Placement
    prices: PriceTable


def expected_seconds(problem: Problem, seconds_to_build: float = 0.0) -> float:
    """Estimate the run time of one network flow in seconds, from the size of the network.

    The estimate is for a processor of 2020. It is greater if the problem took long to build, as
    on a slow or busy machine.
    """
    sizes = np.array([len(consumers) for consumers in problem.consumer_sets], dtype=np.int64)
    placed = problem.consumer_set_of_topic[problem.consumer_set_of_topic >= 0]
    arcs = int(sizes[placed].sum())
    nodes = len(placed) + problem.member_count
    seconds = 8e-7 * arcs + 2.5e-5 * nodes + 1e-6 * problem.partition_count
    return max(seconds, min(_TIMES_BUILDING * seconds_to_build, _MAX_SLOWDOWN * seconds))


def solve_flow(problem: Problem, clock: FlowClock) -> OptimalFlow | None:
    """Find the placement with the fewest moves among those with optimal loads.

    Weights must be equal: only counts are used. The prices are computed independently of the
    flows and prove the result. The result is None if there is too little time.
    """
    network = build_network(problem)
    counts = optimal_counts(network, clock) if clock.may_start() else None
    if counts is None:
        return None
    prices = price_counts(network, counts, moved=network.min_movement(counts))
    if prices is None:
        raise InternalError("the prices do not prove that the flow is optimal")
    return OptimalFlow(network.place(counts), prices)


def optimal_counts(
    network: SubscriptionNetwork,
    clock: FlowClock | None = None,
    *,
    levels: Sequence[LevelSet] | None = None,
) -> Ints | None:
    """Return counts per arc with optimal loads and, among those, the fewest moves.

    Optimal loads are least majorised. Partitions that do not stay at their owner are spread over
    topics. There must be an assignment within the capacities of the network. The result is None
    if there is too little time. ``levels`` are the `level_sets` of the network, if they are known.
    """
    levels = level_sets(network, clock) if levels is None else levels
    if levels is None:
        return None
    arcs = np.sort(np.concatenate([network.tail[:0], *(level.arcs for level in levels)]))
    return spread_received_partitions(network, _fewest_moves(network, levels, arcs), arcs)


def _fewest_moves(network: SubscriptionNetwork, levels: Sequence[LevelSet], arcs: Ints) -> Ints:
    """Minimise moves within the level sets; return counts per arc."""
    if not network.owned[arcs].any():
        counts = np.zeros(len(network.tail), dtype=np.int64)
        for level in levels:
            counts[level.arcs] = level.counts
        return counts
    nodes = network.topics + network.members
    arc_count = len(network.tail)
    is_sparse = nodes >= _MIN_NODES and arc_count <= 4 * nodes
    found: Ints | None = None
    if network.capacity is None and (is_sparse or arc_count <= MAX_SMALL_ARCS):
        found = few_chains_counts(network, levels)
    return _min_cost_counts(network, levels, arcs) if found is None else found


def _min_cost_counts(network: SubscriptionNetwork, levels: Sequence[LevelSet], arcs: Ints) -> Ints:
    """Minimise moves within the level sets by one minimum cost flow; return counts per arc.

    All members receive the lower load of their level set; ``at_high`` of them, one more.
    """
    level_of_member = np.full(network.members, -1, dtype=np.int64)
    for index, level in enumerate(levels):
        level_of_member[level.members] = index
    with_topics = np.array([len(level.topics) > 0 for level in levels], dtype=np.bool_)
    members = np.flatnonzero(with_topics[level_of_member])
    demand = np.zeros(network.members + len(levels), dtype=np.int64)
    low = np.array([level.high - 1 for level in levels], dtype=np.int64)[level_of_member[members]]
    if network.capacity is not None:
        full = network.capacity[members] <= low
        low = np.minimum(low, network.capacity[members])
    demand[members] = low
    demand[network.members :] = [level.at_high if len(level.topics) else 0 for level in levels]
    rising = members if network.capacity is None else members[~full]
    sinks = SinkArcs(
        member=rising,
        sink=level_of_member[rising],
        cost=np.zeros(len(rising), dtype=np.int64),
        capacity=np.ones(len(rising), dtype=np.int64),
    )
    return min_cost_counts(network, arcs, move_cost=1, sink_arcs=sinks, demand=demand)


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
    table = _ReceivedPartitions.of(network, placed, arcs)
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
class _ReceivedPartitions:
    """Arcs of the network, with the partitions to place per topic and per member."""

    arcs: Ints
    tail: Ints
    head: Ints
    supply: Ints  # per topic
    demand: Ints  # per member

    @classmethod
    def of(cls, network: SubscriptionNetwork, placed: Ints, arcs: Ints) -> "_ReceivedPartitions":
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
