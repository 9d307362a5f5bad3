"""Optimal loads for equal weights, by minimum cuts of the subscription network.

All least majorised load vectors share one structure [1]_: members form level sets, each
set receives a fixed number of partitions, and within a set loads differ by at most one.
One maximum flow finds loads that differ by at most one, or a minimum cut. Each minimum cut splits
the network into two independent parts. Maximum flows of small networks are found by augmenting
paths [2]_, because loading OR-Tools takes a tenth of a second.

References
----------
.. [1] A. Frank, K. Murota. "Decreasing minimization on M-convex sets: background and
   structures". Mathematical Programming 195, 2022.
.. [2] J. Edmonds, R. M. Karp. "Theoretical improvements in algorithmic efficiency for network
   flow problems". Journal of the ACM 19(2), 1972.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.errors import InternalError
from kassay.solver.constraints import mean_load
from kassay.solver.limits import FlowClock
from kassay.solver.network.subscription_network import SubscriptionNetwork
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


@dataclass(frozen=True, slots=True)
class LevelSet:
    """Members with optimal loads that differ by at most one, and the topics of these members.

    Members with a capacity below ``high`` are full.
    """

    topics: Ints
    members: Ints
    high: int  # the greater of the two loads
    at_high: int  # members with this load; the others have one less, or are full
    arcs: Ints  # between these topics and members
    counts: Ints  # partitions per arc, in one assignment with these loads


@dataclass(frozen=True, slots=True)
class _Part:
    """Part of the subscription network that is not split yet: topics, members and arcs.

    All columns are ascending.
    """

    topics: Ints
    members: Ints
    arcs: Ints


def level_sets(
    network: SubscriptionNetwork, clock: FlowClock | None = None
) -> tuple[LevelSet, ...] | None:
    """Split the network into sets of members with nearly equal loads, by descending load.

    The last level set may have no topics. There must be an assignment within the capacities of
    the network: see `is_feasible`. The result is None if there is too little time.
    """
    sets: list[LevelSet] = []
    waiting = [_whole(network)]
    while waiting:
        if clock is not None and clock.is_over():
            return None
        part = waiting.pop()
        if len(part.topics):
            found = _level_or_cut(network, part)
            if isinstance(found, LevelSet):
                sets.append(found)
            else:
                waiting += [found, _without(network, part, found)]
        elif len(part.members):
            level = LevelSet(part.topics, part.members, 0, len(part.members), part.arcs, part.arcs)
            sets.append(level)
    return tuple(sorted(sets, key=lambda level: (-level.high, level.members.tolist())))


def is_feasible(network: SubscriptionNetwork) -> bool:
    """Return whether the capacities of the network permit an assignment."""
    used = np.flatnonzero(network.supply)
    if not np.isin(used, network.tail).all():
        return False
    if network.capacity is None:
        return True
    flow = _flow(network, _whole(network), network.capacity, used[:0], 0)
    return flow.total == int(network.supply.sum())


def _whole(network: SubscriptionNetwork) -> _Part:
    return _Part(
        np.flatnonzero(network.supply),
        np.arange(network.members),
        np.flatnonzero(network.supply[network.tail]),
    )


def _level_or_cut(network: SubscriptionNetwork, part: _Part) -> LevelSet | _Part:
    """Find an assignment of a part by one maximum flow, with loads that differ by at most one.

    Otherwise, return the source side of a minimum cut: its members have higher loads.
    """
    limits = None if network.capacity is None else network.capacity[part.members]
    total = int(network.supply[part.topics].sum())
    high = mean_load(total, len(part.members) if limits is None else limits)
    most = _limited(high, len(part.members), limits)
    low = _limited(high - 1, len(part.members), limits)
    at_high = total - int(low.sum())
    flow = _flow(network, part, low, np.flatnonzero(most > low), at_high)
    if flow.total == total:
        counts = flow.flows[: len(part.arcs)]
        return LevelSet(part.topics, part.members, high, at_high, part.arcs, counts)
    return _source_side(network, part, flow)


def _limited(load: int, members: int, limits: Ints | None) -> Ints:
    return np.full(members, load) if limits is None else np.minimum(limits, load)


def _flow(
    network: SubscriptionNetwork, part: _Part, capacity: Ints, rising: Ints, extra: int
) -> MaximumFlow:
    """Send the partitions of a part to its members by a maximum flow.

    ``extra`` of the ``rising`` members may receive one partition more than their capacity. They
    send it through one shared node, so that the node limits the number of these members::

        source -> topics -> members -> sink
                            rising members -> shared node -> sink
    """
    topic = np.arange(len(part.topics))
    member = len(topic) + np.arange(len(part.members))
    shared = len(topic) + len(member)
    source, sink = shared + 1, shared + 2
    if extra == len(rising):  # each may, so the shared node is not needed
        capacity = capacity.copy()
        capacity[rising] += 1
        rising = rising[:0]
    supply = network.supply[part.topics]
    from_topic = topic[_positions(part.topics, network.topics)[network.tail[part.arcs]]]
    to_member = member[_positions(part.members, network.members)[network.head[part.arcs]]]
    # The flows of the subscriptions come first: the callers read them.
    is_rising = np.ones(len(rising), dtype=np.int64)
    to_shared, to_sink = shared * is_rising, np.full(len(member), sink)
    return maximum_flow(
        np.concatenate([from_topic, np.full(len(topic), source), member, member[rising], [shared]]),
        np.concatenate([to_member, topic, to_sink, to_shared, [sink]]),
        np.concatenate([supply[from_topic], supply, capacity, is_rising, [extra]]),
        source=source,
        sink=sink,
    )


def _source_side(network: SubscriptionNetwork, part: _Part, flow: MaximumFlow) -> _Part:
    """Return the topics with more partitions than their consumers can receive, and the consumers.

    They are the source side of the minimum cut.
    """
    topics, members = len(part.topics), len(part.members)
    chosen = part.topics[flow.source_side[:topics]]
    inside = np.zeros(network.topics, dtype=np.bool_)
    inside[chosen] = True
    return _Part(
        chosen,
        part.members[flow.source_side[topics : topics + members]],
        part.arcs[inside[network.tail[part.arcs]]],
    )


def _positions(nodes: Ints, count: int) -> Ints:
    """Return the position of each node in a list of nodes; other nodes have any position."""
    positions = np.zeros(count, dtype=np.int64)
    positions[nodes] = np.arange(len(nodes))
    return positions


def _without(network: SubscriptionNetwork, part: _Part, other: _Part) -> _Part:
    """Return a part of the network without the topics and members of another part.

    Topics of the other part have no consumers outside it.
    """
    members = np.setdiff1d(part.members, other.members, assume_unique=True)
    outside = np.zeros(network.members, dtype=np.bool_)
    outside[members] = True
    return _Part(
        np.setdiff1d(part.topics, other.topics, assume_unique=True),
        members,
        part.arcs[outside[network.head[part.arcs]]],
    )


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
    """Compute a maximum flow by shortest augmenting paths [2]_.

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
