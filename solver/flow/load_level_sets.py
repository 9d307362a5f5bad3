"""Optimal loads for equal weights, by minimum cuts of the subscription network.

All least majorised load vectors share one structure [1]_: members form level sets, each
set receives a fixed number of partitions, and within a set loads differ by at most one.
Each minimum cut splits the network into two independent parts.

References
----------
.. [1] A. Frank, K. Murota. "Decreasing minimization on M-convex sets: background and
   structures". Mathematical Programming 195, 2022.
"""

from dataclasses import dataclass

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.solver.flow.maximum_flow import maximum_flow
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
        if not len(part.topics):
            if len(part.members):
                sets.append(LevelSet(part.topics, part.members, 0, len(part.members)))
            continue
        tight, parts = _split(network, part)
        sets.extend(tight)
        waiting.extend(parts)
    return tuple(sorted(sets, key=lambda level: (-level.high, level.members.tolist())))


def is_feasible(network: SubscriptionNetwork) -> bool:
    """Return whether the capacities of the network permit an assignment."""
    used = np.flatnonzero(network.supply)
    if not np.isin(used, network.tail).all():
        return False
    return network.capacity is None or _min_cut(network, _whole(network), network.capacity) is None


def _whole(network: SubscriptionNetwork) -> _Part:
    return _Part(
        np.flatnonzero(network.supply),
        np.arange(network.members),
        np.flatnonzero(network.supply[network.tail]),
    )


def _split(network: SubscriptionNetwork, part: _Part) -> tuple[list[LevelSet], list[_Part]]:
    """Split a part of the network by a minimum cut at its mean load.

    Return the finished level sets and the remaining parts.
    """
    limits = None if network.capacity is None else network.capacity[part.members]
    total = int(network.supply[part.topics].sum())
    high = _mean_load(total, len(part.members), limits)
    above = _min_cut(network, part, _limited(high, limits))
    if above is not None:
        return [], [above, _without(network, part, above)]
    lower = _limited(high - 1, limits)
    tight = _min_cut(network, part, lower)
    if tight is None:
        raise InternalError(
            f"a flow assigns {total} partitions with loads below the minimum load limit {high}"
        )
    supply = int(network.supply[tight.topics].sum())
    if network.capacity is None:
        least = (high - 1) * len(tight.members)
    else:
        least = int(np.minimum(network.capacity[tight.members], high - 1).sum())
    level = LevelSet(tight.topics, tight.members, high, at_high=supply - least)
    return [level], [_without(network, part, tight)]


def _mean_load(total: int, members: int, limits: Ints | None) -> int:
    """Return the smallest load limit with room for all partitions; ignore subscriptions."""
    if limits is None:
        return -(-total // members)
    low, high = 0, total
    while low < high:
        middle = (low + high) // 2
        if int(np.minimum(limits, middle).sum()) >= total:
            high = middle
        else:
            low = middle + 1
    return low


def _limited(load: int, limits: Ints | None) -> Ints | int:
    return load if limits is None else np.minimum(limits, load)


def _min_cut(network: SubscriptionNetwork, part: _Part, capacity: Ints | int) -> _Part | None:
    """Find topics with more partitions than their consumers can receive, by a minimum cut.

    The result is the source side of the cut, with at most ``capacity`` partitions per member. It
    is None if there are no such topics.
    """
    if isinstance(capacity, int) and not capacity:
        # No flow: the source side contains all topics and their consumers.
        is_consumer = np.zeros(network.members, dtype=np.bool_)
        is_consumer[network.head[part.arcs]] = True
        return _Part(part.topics, part.members[is_consumer[part.members]], part.arcs)
    topics, members = len(part.topics), len(part.members)
    source, sink = topics + members, topics + members + 1
    supply = network.supply[part.topics]
    tail = _positions(part.topics, network.topics)[network.tail[part.arcs]]
    head = _positions(part.members, network.members)[network.head[part.arcs]]
    flow = maximum_flow(
        np.concatenate([np.full(topics, source), tail, topics + np.arange(members)]),
        np.concatenate([np.arange(topics), topics + head, np.full(members, sink)]),
        np.concatenate([supply, supply[tail], np.broadcast_to(capacity, members)]),
        source=source,
        sink=sink,
    )
    if flow.total == int(supply.sum()):
        return None
    side = flow.source_side
    inside = part.arcs[side[tail]]
    return _Part(part.topics[side[:topics]], part.members[side[topics:source]], inside)


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
