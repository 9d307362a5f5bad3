"""From counts back to partitions."""

import numpy as np

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.flow.network import Counts, Network, topic_of_row
from kassay.solver.problem import Placement


def place_partitions(network: Network, counts: Counts) -> Placement:
    """Choose partitions for the counts of each arc.

    An owner keeps the lowest numbers of what it owns, as many as its count allows; the
    other partitions of a topic go out in ascending order to members in group order.
    """
    problem = network.problem
    topic = topic_of_row(problem)
    kept = np.minimum(counts, network.owned)
    stays = np.zeros(problem.size, dtype=np.bool_)
    rows = np.flatnonzero(problem.owner != NO_OWNER)
    arcs = network.arc_of(topic[rows], problem.owner[rows].astype(np.int64))
    order = np.argsort(arcs, kind="stable")
    first = np.searchsorted(arcs[order], arcs[order])
    rank = np.arange(len(order)) - first
    stays[rows[order]] = rank < kept[arcs[order]]
    placement = np.where(stays, problem.owner, np.int32(NO_OWNER)).astype(np.int32)
    placement[~stays] = np.repeat(network.head, counts - kept)
    return placement
