"""Among the least majorised loads, the counts that keep the most partitions with their owners."""

from collections.abc import Sequence

import numpy as np
from ortools.graph.python import min_cost_flow

from kassay.reference.model.errors import InternalError
from kassay.solver.flow.load_levels import LevelSet
from kassay.solver.flow.network import Counts, Network


def keep_most(network: Network, levels: Sequence[LevelSet]) -> Counts:
    """Return, for each arc, how many partitions of the topic the member gets.

    One min-cost flow over all level sets at once. An arc inside a level set costs
    nothing up to what the member owns of the topic, and one a partition beyond; each
    member takes the lower load of its set, and ``at_high`` of them one more.
    """
    level_of_topic = np.full(network.topics, -1, dtype=np.int64)
    level_of_member = np.full(network.members, -1, dtype=np.int64)
    for index, level in enumerate(levels):
        level_of_topic[level.topics] = index
        level_of_member[level.members] = index
    arcs = np.flatnonzero(level_of_topic[network.tail] == level_of_member[network.head])
    owning = arcs[network.owned[arcs] > 0]
    fed = np.flatnonzero([len(levels[index].topics) > 0 for index in level_of_member.tolist()])
    low = np.array([level.high - 1 for level in levels], dtype=np.int64)
    first_sink = network.topics + network.members
    flow = min_cost_flow.SimpleMinCostFlow()
    ids = flow.add_arcs_with_capacity_and_unit_cost(
        np.concatenate([network.tail[arcs], network.tail[owning], network.topics + fed]).astype(
            np.int32
        ),
        np.concatenate(
            [
                network.topics + network.head[arcs],
                network.topics + network.head[owning],
                first_sink + level_of_member[fed],
            ]
        ).astype(np.int32),
        np.concatenate(
            [network.supply[network.tail[arcs]], network.owned[owning], np.ones(len(fed), np.int64)]
        ),
        np.concatenate([np.ones(len(arcs), np.int64), np.zeros(len(owning) + len(fed), np.int64)]),
    )
    supplies = np.zeros(first_sink + len(levels), dtype=np.int64)
    supplies[: network.topics] = network.supply
    supplies[network.topics + fed] = -low[level_of_member[fed]]
    for index, level in enumerate(levels):
        supplies[first_sink + index] = -level.at_high if len(level.topics) else 0
    flow.set_nodes_supplies(np.arange(len(supplies), dtype=np.int32), supplies)
    if flow.solve() != flow.OPTIMAL:
        raise InternalError("the least movement was not found on the best loads")
    flows = np.asarray(flow.flows(ids), dtype=np.int64)
    counts = np.zeros(len(network.tail), dtype=np.int64)
    counts[arcs] = flows[: len(arcs)]
    counts[owning] += flows[len(arcs) : len(arcs) + len(owning)]
    return counts
