"""Optimal loads for equal weights, by minimum cuts of the subscription network.

All least majorised load vectors share one structure [1]_: members form level sets, each
set receives a fixed number of partitions, and within a set loads differ by at most one.
One maximum flow finds loads that differ by at most one, or a minimum cut. Each minimum cut splits
the network into two independent parts.

References
----------
.. [1] A. Frank, K. Murota. "Decreasing minimization on M-convex sets: background and
   structures". Mathematical Programming 195, 2022.
"""

from dataclasses import dataclass

import numpy as np

from kassay.solver.constraints import mean_load
from kassay.solver.flow.max_and_min_cost_flows import MaximumFlow, maximum_flow
from kassay.solver.limits import FlowClock
from kassay.solver.problem import Ints
from kassay.solver.subscription_network import SubscriptionNetwork


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
