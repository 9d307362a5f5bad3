"""Minimum cost flow from topics through members to sinks."""

from dataclasses import dataclass

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.solver.problem import Ints
from kassay.solver.subscription_network import SubscriptionNetwork


@dataclass(frozen=True, slots=True)
class SinkArcs:
    """Arcs from members to sinks, as columns: member, sink, cost and capacity."""

    member: Ints
    sink: Ints
    cost: Ints
    capacity: Ints


def min_cost_counts(
    network: SubscriptionNetwork,
    arcs: Ints,
    *,
    move_cost: int,
    sink_arcs: SinkArcs,
    demand: Ints,
) -> Ints:
    """Return the number of partitions per arc in a minimum cost flow.

    A partition costs ``move_cost`` unless the member owns one more of the topic. ``demand`` is
    the flow that must end at each member, followed by each sink.
    """
    # Imported here: commands that need no flow start faster.
    from ortools.graph.python import min_cost_flow  # noqa: PLC0415

    owning = arcs[network.owned[arcs] > 0]
    member = network.topics + network.head
    sink = network.topics + network.members + sink_arcs.sink
    flow = min_cost_flow.SimpleMinCostFlow()
    ids = flow.add_arcs_with_capacity_and_unit_cost(
        np.concatenate(
            [network.tail[arcs], network.tail[owning], network.topics + sink_arcs.member]
        ).astype(np.int32),
        np.concatenate([member[arcs], member[owning], sink]).astype(np.int32),
        np.concatenate(
            [network.supply[network.tail[arcs]], network.owned[owning], sink_arcs.capacity]
        ),
        np.concatenate(
            [np.full(len(arcs), move_cost), np.zeros(len(owning), int), sink_arcs.cost]
        ).astype(np.int64),
    )
    supplies = np.concatenate([network.supply, -demand])
    flow.set_nodes_supplies(np.arange(len(supplies), dtype=np.int32), supplies)
    if flow.solve() != flow.OPTIMAL:
        raise InternalError("OR-Tools found no minimum cost flow")
    flows = np.asarray(flow.flows(ids), dtype=np.int64)
    counts = np.zeros(len(network.tail), dtype=np.int64)
    counts[arcs] = flows[: len(arcs)]
    counts[owning] += flows[len(arcs) : len(arcs) + len(owning)]
    return counts
