"""The method as a whole."""

from dataclasses import dataclass

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.solver.certificate.certificate import PriceTable
from kassay.solver.certificate.check import price_counts
from kassay.solver.flow.kept_partitions import keep_most
from kassay.solver.flow.load_levels import level_sets
from kassay.solver.flow.network import Counts, Network, build_network
from kassay.solver.flow.placing import place_partitions
from kassay.solver.improvement.residual_network import Arcs
from kassay.solver.problem import Placement, Problem


@dataclass(frozen=True, slots=True)
class Flow:
    """An optimal placement and its proof."""

    placement: Placement
    prices: PriceTable


def solve_flow(problem: Problem) -> Flow:
    """Place every row with the least majorised loads and, among those, the least movement.

    Equal weights are taken for granted: only counts are looked at. The answer is priced
    before it is returned, so it does not rest on the flow algorithms being right.

    Raises
    ------
    SolverError
        If no prices prove the answer; never for a legal problem.

    Examples
    --------
    >>> from kassay.reference.model.group import Group, Member, Topic
    >>> from kassay.solver.problem import build_problem
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=3),),
    ...     members=(
    ...         Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1), ("t", 2)]),
    ...         Member(id="b", subscription=("t",)),
    ...     ),
    ... )
    >>> solve_flow(build_problem(group)).placement.tolist()
    [0, 0, 1]
    """
    network = build_network(problem)
    counts = keep_most(network, level_sets(network))
    arcs = _arcs(network, counts)
    prices = price_counts(arcs, moved=arcs.least_movement)
    if prices is None:
        raise InternalError("the flow's answer can be improved")
    return Flow(place_partitions(network, counts), prices)


def _arcs(network: Network, counts: Counts) -> Arcs:
    group = network.problem.group
    loads = np.bincount(network.head, weights=counts, minlength=network.members)
    return Arcs(
        topic_names=tuple(
            topic.name
            for topic, consumers in zip(group.topics, network.problem.set_of_topic, strict=True)
            if consumers >= 0
        ),
        member_ids=tuple(group.members[index].id for index in network.problem.members),
        tail=network.tail,
        head=network.head,
        count=counts,
        owned=network.owned,
        loads=loads.astype(np.int64),
    )
