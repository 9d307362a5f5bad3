"""Optimal assignment for equal weights by network flows, with prices that prove it optimal."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.solver.certificate.certificate import PriceTable
from kassay.solver.evidence.price_search import price_counts
from kassay.solver.flow.maximum_flow import MAX_SMALL_ARCS
from kassay.solver.flow.min_cost_flow import SinkArcs, min_cost_counts
from kassay.solver.flow.optimal_loads_by_cuts import LevelSet, level_sets
from kassay.solver.flow.primal_dual import few_chains_counts
from kassay.solver.flow.spread_received_partitions import spread_received_partitions
from kassay.solver.limits import FlowClock
from kassay.solver.problem import Ints, Placement, Problem
from kassay.solver.subscription_network import SubscriptionNetwork, build_network

# Long chains occur in sparse networks; OR-Tools solves small networks fast in any case.
_MIN_NODES = 500
# A flow of a large network takes at most this many times as long as building its problem.
_TIMES_BUILDING = 5
_MAX_SLOWDOWN = 10


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
