"""The least majorised loads, found by cutting the network where a level of load is tight.

Among all assignments the load vectors that are least when sorted in descending order
share one structure [1]_: members fall into sets, each set takes a fixed number of
partitions, and within a set loads differ by at most one. Each cut below splits the
network where a flow with a common capacity gets stuck; the sides never interact again.

References
----------
.. [1] A. Frank, K. Murota. "Decreasing minimization on M-convex sets: background and
   structures". Mathematical Programming 195, 2022.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import max_flow

from kassay.reference.model.errors import InternalError
from kassay.solver.flow.network import Counts, Network

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LevelSet:
    """Members whose loads differ by at most one, and the topics that feed only them.

    Parameters
    ----------
    topics, members
        Positions in the network.
    high
        The greater of the two loads in the set.
    at_high
        How many members have it; the others have one less.
    """

    topics: Counts
    members: Counts
    high: int
    at_high: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the network that has not been cut yet; masks over topics and members."""

    topics: Mask
    members: Mask


def level_sets(network: Network) -> tuple[LevelSet, ...]:
    """Split the network into its level sets, heaviest first.

    Members that can get nothing form a last set of load 0 without topics.
    """
    whole = _Part(np.ones(network.topics, np.bool_), np.ones(network.members, np.bool_))
    found: list[LevelSet] = []
    waiting = [whole]
    while waiting:
        part = waiting.pop()
        if not part.topics.any():
            found.extend(_empty_handed(part))
            continue
        tight, parts = _split(network, part)
        found.extend(tight)
        waiting.extend(parts)
    return tuple(sorted(found, key=lambda level: (-level.high, level.members.tolist())))


def _split(network: Network, part: _Part) -> tuple[list[LevelSet], list[_Part]]:
    """Cut a part at its mean load: two parts, or a level set and what is below it."""
    total = int(network.supply[part.topics].sum())
    high = -(-total // int(part.members.sum()))
    heavy = _stuck(network, part, capacity=high)
    if heavy is not None:
        return [], [heavy, _without(part, heavy)]
    tight = _stuck(network, part, capacity=high - 1)
    if tight is None:
        raise InternalError(f"a flow of {total} fits below its mean load {high}")
    held = int(network.supply[tight.topics].sum())
    level = LevelSet(
        topics=np.flatnonzero(tight.topics),
        members=np.flatnonzero(tight.members),
        high=high,
        at_high=held - (high - 1) * int(tight.members.sum()),
    )
    return [level], [_without(part, tight)]


def _stuck(network: Network, part: _Part, *, capacity: int) -> _Part | None:
    """Return topics that cannot be placed if members take at most ``capacity``, or None.

    With the topics come all their consumers: the source side of the least cut.
    """
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
        raise InternalError("the maximum flow was not found")
    if flow.optimal_flow() == int(network.supply[topics].sum()):
        return None
    side = np.zeros(sink + 1, dtype=np.bool_)
    side[np.asarray(flow.get_source_side_min_cut(), dtype=np.int64)] = True
    return _Part(side[: network.topics] & part.topics, side[network.topics : source] & part.members)


def _without(part: _Part, other: _Part) -> _Part:
    return _Part(part.topics & ~other.topics, part.members & ~other.members)


def _empty_handed(part: _Part) -> Iterator[LevelSet]:
    members = np.flatnonzero(part.members)
    if len(members):
        yield LevelSet(np.zeros(0, np.int64), members, high=0, at_high=len(members))
