"""Least majorised loads, by minimum cuts of the subscription network.

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
from numpy.typing import NDArray

from kassay.reference.model.errors import InternalError
from kassay.solver.problem import Ints
from kassay.solver.subscription_network import SubscriptionNetwork

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LevelSet:
    """Members with loads that differ by at most one, and the topics of this level set."""

    topics: Ints
    members: Ints
    high: int  # the greater of the two loads
    at_high: int  # members with this load; the others have one less


@dataclass(frozen=True, slots=True)
class _Part:
    """Part of the network still to be split: masks of members and topics."""

    topics: Mask
    members: Mask


def level_sets(network: SubscriptionNetwork) -> tuple[LevelSet, ...]:
    """Split the network into level sets by descending load; the last may have no topics."""
    sets: list[LevelSet] = []
    waiting = [_Part(np.ones(network.topics, np.bool_), np.ones(network.members, np.bool_))]
    while waiting:
        part = waiting.pop()
        if not part.topics.any():
            members = np.flatnonzero(part.members)
            if len(members):
                sets.append(LevelSet(np.zeros(0, np.int64), members, 0, len(members)))
            continue
        tight, parts = _split(network, part)
        sets.extend(tight)
        waiting.extend(parts)
    return tuple(sorted(sets, key=lambda level: (-level.high, level.members.tolist())))


def _split(network: SubscriptionNetwork, part: _Part) -> tuple[list[LevelSet], list[_Part]]:
    """Split a part of the network at its mean load, or return it as a level set."""
    total = int(network.supply[part.topics].sum())
    high = -(-total // int(part.members.sum()))
    above = _min_cut(network, part, capacity=high)
    if above is not None:
        return [], [above, _without(part, above)]
    tight = _min_cut(network, part, capacity=high - 1)
    if tight is None:
        raise InternalError(f"{total} partitions fit below the mean load {high}")
    supply = int(network.supply[tight.topics].sum())
    level = LevelSet(
        topics=np.flatnonzero(tight.topics),
        members=np.flatnonzero(tight.members),
        high=high,
        at_high=supply - (high - 1) * int(tight.members.sum()),
    )
    return [level], [_without(part, tight)]


def _min_cut(network: SubscriptionNetwork, part: _Part, *, capacity: int) -> _Part | None:
    """Return topics with more partitions than their consumers can receive, or None.

    It is the source side of a minimum cut, with at most ``capacity`` partitions per member.
    """
    # Imported here: commands that need no flow start faster.
    from ortools.graph.python import max_flow  # noqa: PLC0415

    arcs = np.flatnonzero(part.topics[network.tail] & part.members[network.head])
    source = network.topics + network.members
    sink = source + 1
    topics, members = np.flatnonzero(part.topics), np.flatnonzero(part.members)
    flow = max_flow.SimpleMaxFlow()
    flow.add_arcs_with_capacity(
        np.concatenate(
            [np.full(len(topics), source), network.tail[arcs], network.topics + members]
        ).astype(np.int32),
        np.concatenate(
            [topics, network.topics + network.head[arcs], np.full(len(members), sink)]
        ).astype(np.int32),
        np.concatenate(
            [
                network.supply[topics],
                network.supply[network.tail[arcs]],
                np.full(len(members), capacity, dtype=np.int64),
            ]
        ),
    )
    if flow.solve(source, sink) != flow.OPTIMAL:
        raise InternalError("OR-Tools found no maximum flow")
    if flow.optimal_flow() == int(network.supply[topics].sum()):
        return None
    side = np.zeros(sink + 1, dtype=np.bool_)
    side[np.asarray(flow.get_source_side_min_cut(), dtype=np.int64)] = True
    return _Part(side[: network.topics] & part.topics, side[network.topics : source] & part.members)


def _without(part: _Part, other: _Part) -> _Part:
    return _Part(part.topics & ~other.topics, part.members & ~other.members)
