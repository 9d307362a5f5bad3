"""Flow network with convex arc costs that represent the levels of the objective.

Copies flow from the topics of a subscription network through their members and hosts to a sink.
Without a level about hosts, they flow from the members to the sink.
Each level is a sum of convex costs of arcs: the squared loads of members, hosts, and topics at a
member, also of stateful partitions only, the moves, the standbys, the members without a partition,
and the members per partition. Optional copies flow from their topic to the sink.

Levels in lexicographic order are one cost: the cost of a level is multiplied by a weight above the
effect of all later levels on a cycle. A flow has minimum cost if and only if the nodes have prices
with complementary slackness [1]_: the price of a node is the minimum cost of one more unit there.

References
----------
.. [1] R. K. Ahuja, T. L. Magnanti, J. B. Orlin. "Network Flows". Prentice Hall, 1993,
   chapters 9 and 14.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import LoadUnits
from kassay.solver import objective
from kassay.solver.evaluation import level_value, pair_costs
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.objective import has_arc_costs, is_optimal_by_squares_and_moves
from kassay.solver.problem import Arithmetic, Ints, Placement, Problem, Weights, exact_column

WeightedLevels = Sequence[tuple[objective.Level, int]]
"""Levels with the factors of their values in a weighted sum."""


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """Distance of each node to the sink, or the arcs of a cycle with negative cost."""

    distance: Weights  # final only without a cycle
    cycle: tuple[int, ...]


def shortest_paths(tail: Ints, head: Ints, cost: Weights, *, sink: int) -> ShortestPaths:
    """Compute distances to the sink (Bellman-Ford algorithm), or find a negative cycle.

    The sink is the last node. Nodes without a path to it have distances that are greater than all
    others, and valid prices. Each round relaxes the arcs into the nodes whose distance fell in the
    round before. A cycle through the sink is found in as many rounds as it has arcs; other cycles
    are searched when the number of rounds is a power of two.
    """
    order = np.argsort(head, kind="stable")
    tail, head, cost = tail[order], head[order], cost[order]
    starts = np.searchsorted(head, np.arange(sink + 2))
    degrees = np.diff(starts)
    # Farther than any path, so that the nodes without a path get consistent distances.
    far = (sink + 2) * int(np.abs(cost).max(initial=0)) + 1
    distance = np.full(sink + 1, far, dtype=cost.dtype)
    distance[sink] = 0
    via = np.full(sink + 1, -1, dtype=np.int64)  # arc that last lowered the distance
    fallen, rounds = np.flatnonzero(degrees), 0
    while len(fallen):
        # Arcs into the fallen nodes: consecutive numbers from the start of each node.
        count = degrees[fallen]
        arcs = np.repeat(starts[fallen] - np.cumsum(count) + count, count)
        arcs += np.arange(len(arcs))
        offers = distance[head[arcs]] + cost[arcs]
        falls = (offers < distance[tail[arcs]]).astype(np.bool_)
        arcs, offers = arcs[falls], offers[falls]
        np.minimum.at(distance, tail[arcs], offers)
        arcs = arcs[(offers == distance[tail[arcs]]).astype(np.bool_)][::-1]
        via[tail[arcs]] = arcs
        is_fallen = np.zeros(sink + 1, dtype=np.bool_)
        is_fallen[tail[arcs]] = True
        fallen, rounds = np.flatnonzero(is_fallen), rounds + 1
        if rounds & (rounds - 1) == 0 or distance[sink] < 0:
            cycle = _cycle(head, via, sink)
            if cycle:
                return ShortestPaths(distance, tuple(order[cycle].tolist()))
    return ShortestPaths(distance, ())


def _cycle(head: Ints, via: Ints, sink: int) -> list[int]:
    """Return the arcs of a cycle with negative cost, or an empty list if none exists."""
    nodes = sink + 1
    step = np.append(np.where(via >= 0, head[via], nodes), nodes)
    reached = step
    # The number of steps doubles, until it exceeds the length of any path.
    for _ in range(nodes.bit_length()):
        reached = reached[reached]
    endless = np.flatnonzero(reached != nodes)
    if not len(endless):
        return []
    start = sink if reached[sink] != nodes else int(endless[0])
    arcs: list[int] = []
    position = {start: 0}
    while True:
        arcs.append(int(via[start]))
        start = int(head[arcs[-1]])
        if start in position:
            return arcs[position[start] :]
        position[start] = len(arcs)


class LevelNetwork:
    """Flow network from topics through members and hosts to a sink.

    The parts of the arcs are: partitions that move or have no owner, owned partitions, members,
    hosts (None if they have no costs), topics at a member (for topic spreads), stateful partitions
    at a member, copies without a member. With ``has_speeds``, loads are relative to the speeds.
    """

    def __init__(
        self,
        network: SubscriptionNetwork,
        *,
        hosts: LoadUnits | None,
        has_sums: bool,
        has_stateful_sums: bool = False,
        has_speeds: bool = True,
    ) -> None:
        self.network = network
        self.has_speeds = has_speeds
        members = network.members
        count = 0 if hosts is None else len(hosts.names)
        self._host_of = np.array([] if hosts is None else hosts.unit_of, dtype=np.int64)
        first_host = network.topics + members
        first_sum = first_host + count
        member = np.arange(members)
        receiver = network.topics + network.head
        pairs, self._sum_of = np.zeros(0, dtype=np.int64), receiver
        if has_sums:
            pairs, first, self._sum_of = np.unique(
                self._pairs(), return_index=True, return_inverse=True
            )
        first_stateful = first_sum + len(pairs)
        self._stateful = network.is_stateful[network.tail] & has_stateful_sums
        receiver = np.where(self._stateful, first_stateful + network.head, receiver)
        after_sum = receiver[first] if has_sums else receiver[:0]
        if has_sums:
            receiver = first_sum + self._sum_of
        stateful = member if has_stateful_sums else member[:0]
        self.sink = first_stateful + len(stateful)
        after_member = first_host + self._host_of
        if hosts is None:
            after_member = np.full(members, self.sink)
        self._unused_topics = np.flatnonzero(network.optional)
        total = int(network.supply.sum())
        free = network.partitions[network.tail]
        if network.problem.copies is not None:
            # A member that holds a partition holds all partitions of its class.
            free = free - network.owned
        owned = np.flatnonzero(network.owned)
        self.network_arc = np.concatenate([np.arange(len(network.tail)), owned])
        parts = [
            (network.tail, receiver, free),
            (network.tail[owned], receiver[owned], network.owned[owned]),
            (network.topics + member, after_member, network.max_counts),
            (first_host + np.arange(count), np.full(count, self.sink), np.full(count, total)),
            (first_sum + np.arange(len(pairs)), after_sum, np.full(len(pairs), total)),
            (first_stateful + stateful, network.topics + stateful, np.full(len(stateful), total)),
            (
                self._unused_topics,
                np.full(len(self._unused_topics), self.sink),
                network.optional[self._unused_topics],
            ),
        ]
        ends = np.cumsum([0, *(len(part[0]) for part in parts)]).tolist()
        self.moved, self.kept, self.members, self.hosts, *others = map(slice, ends[:-1], ends[1:])
        self.sums, self.stateful, self.unused = others
        self.tail, self.head, self.high = (
            np.concatenate([part[column] for part in parts]).astype(np.int64) for column in range(3)
        )

    def _pairs(self) -> Ints:
        """Return one integer per arc, which identifies its pair of topic and member."""
        names = {name: at for at, name in enumerate(dict.fromkeys(self.network.topic_names))}
        topic = np.array([names[name] for name in self.network.topic_names], dtype=np.int64)
        return topic[self.network.tail] * max(self.network.members, 1) + self.network.head

    @property
    def supply(self) -> Ints:
        """Return the supply of each node; the supply of the sink is negative."""
        supply = np.zeros(self.sink + 1, dtype=np.int64)
        supply[: self.network.topics] = self.network.supply
        supply[-1] = -int(self.network.supply.sum())
        return supply

    def counts(self, flow: Ints) -> Ints:
        """Return the number of partitions per pair of topic and member in a flow."""
        counts = flow[self.moved].copy()
        counts[self.network_arc[self.kept]] += flow[self.kept]
        return counts

    def flow_of(self, counts: Ints) -> Ints:
        """Convert numbers of partitions per pair of topic and member to a flow."""
        network = self.network
        flow = np.zeros(len(self.tail), dtype=np.int64)
        kept = np.minimum(counts, network.owned)
        flow[self.kept] = kept[self.network_arc[self.kept]]
        flow[self.moved] = counts - kept
        flow[self.members] = network.loads(counts)
        if len(self._host_of):
            np.add.at(flow, self.hosts.start + self._host_of, flow[self.members])
        if self.sums.stop > self.sums.start:
            np.add.at(flow, self.sums.start + self._sum_of, counts)
        if self.stateful.stop > self.stateful.start:
            heads = network.head[self._stateful]
            np.add.at(flow, self.stateful.start + heads, counts[self._stateful])
        if len(self._unused_topics):
            placed = np.bincount(network.tail, counts, network.topics).astype(np.int64)
            flow[self.unused] = (network.supply - placed)[self._unused_topics]
        return flow

    def even_shares(self) -> tuple[Ints, Ints]:
        """Return the minimum and maximum count per topic and member in an even topic spread."""
        network = self.network
        consumers = np.bincount(network.tail, minlength=network.topics)
        least, more = np.divmod(network.supply, np.maximum(consumers, 1))
        most = least + (more > 0)
        return least[network.tail], most[network.tail]

    def part_of(self, level: objective.Level) -> slice:
        """Return the slice of the arcs that have the costs of a level."""
        part = self.members
        match level:
            case objective.Movement():
                part = self.moved
            case objective.HostImbalance():
                part = self.hosts
            case objective.TopicSpread():
                part = self.sums
            case objective.StatefulImbalance():
                part = self.stateful
            case objective.MissingTagValues() | objective.StandbyMoves():
                part = slice(self.moved.start, self.kept.stop)
            case objective.MembersPerPartition():
                part = self.unused
        return part

    def unit_cost(self, level: objective.Level, place: Ints, unit: Ints) -> Weights:
        """Return the costs of units of flow on the arcs of one level.

        ``place`` is the index of an arc in the part of the level. Units of an arc are numbered from
        1. The costs of an arc do not fall with the number.
        """
        match level:
            case (
                objective.Imbalance()
                | objective.HostImbalance()
                | objective.TopicSpread()
                | objective.StatefulImbalance()
            ):
                cost = self._factors(level)[place] * (2 * unit - 1)
            case objective.MembersPerPartition():
                topics = self._unused_topics[place]
                used = self.network.supply[topics] - unit
                cost = -(2 * (used // self.network.partitions[topics]) + 1)
            case objective.IdleMembers():
                cost = -(unit == 1).astype(np.int64)
            case objective.Slots():
                cost = np.ones_like(unit)
            case objective.Movement():
                owned = np.bincount(
                    self.network.tail, self.network.owned, minlength=self.network.topics
                )
                cost = (owned[self.network.tail[place]] > 0).astype(np.int64)
            case objective.MissingTagValues() | objective.StandbyMoves():
                cost = self._pair_costs(level)[self.network_arc[place]]
            case _:
                raise InternalError(
                    f"internal error: level {level.name!r} has no arc costs; report this message"
                )
        return cost

    def _pair_costs(self, level: objective.FlowLevel) -> Ints:
        """Return the standby costs per pair of topic and member with the active task."""
        if self.network.problem.copies is None:
            return np.zeros(len(self.network.tail), dtype=np.int64)
        return pair_costs(self.network.problem, level)[self.network.tail, self.network.head]

    def _factors(self, level: objective.Level) -> Weights:
        """Return the factors that adjust squared loads for different speeds."""
        problem, part = self.network.problem, self.part_of(level)
        factors = (1,) * (part.stop - part.start)
        if isinstance(level, objective.Imbalance) and self.has_speeds:
            factors = problem.member_units.factors
        elif isinstance(level, objective.HostImbalance):
            factors = problem.host_units.factors
        most = max(factors, default=1) * (2 * int(self.network.supply.sum()) + 3)
        return exact_column(np.array(factors, dtype=object), most)

    def greatest_unit_cost(self, level: objective.Level) -> int:
        """Return the maximum absolute cost of one unit of flow for a level."""
        most = int(self.high[self.part_of(level)].max(initial=0))
        match level:
            case objective.Movement() | objective.Slots() | objective.IdleMembers():
                return 1
            case objective.MissingTagValues() | objective.StandbyMoves():
                return int(self._pair_costs(level).max(initial=0))
            case objective.MembersPerPartition():
                return 2 * int(self.network.supply.max(initial=0)) + 1
            case _:
                return int(self._factors(level).max(initial=1)) * (2 * most + 1)

    def weighted(self, levels: Sequence[objective.Level]) -> WeightedLevels:
        """Return weights that combine the levels into one lexicographic cost.

        A cycle has at most as many arcs as nodes, so that a cycle that is worse on a level and
        better on later ones has positive cost.
        """
        weights, later = [], 0
        for level in reversed(levels):
            weights.append(later + 1)
            later += weights[-1] * self.greatest_unit_cost(level) * (self.sink + 1)
        return tuple(zip(levels, reversed(weights), strict=True))

    def fits(self, *levels: objective.Level) -> bool:
        """Return whether the weighted costs of the levels fit into 64 bits."""
        return self._fit(self.weighted(levels))

    def _fit(self, costs: WeightedLevels) -> bool:
        # Differences of distances must fit, with the distances of nodes without a path.
        most = sum(weight * self.greatest_unit_cost(level) for level, weight in costs)
        return Arithmetic.INT64.represents(4 * most * (self.sink + 2))

    def unit_costs(self, costs: WeightedLevels, arc: Ints, unit: Ints) -> Weights:
        """Return the weighted costs of units of flow on arcs."""
        dtype = np.int64 if self._fit(costs) else np.object_
        total: Weights = np.zeros(len(arc), dtype=dtype)
        for level, weight in costs:
            part = self.part_of(level)
            inside = np.flatnonzero((arc >= part.start) & (arc < part.stop))
            cost = self.unit_cost(level, arc[inside] - part.start, unit[inside])
            total[inside] += cost.astype(total.dtype) * weight
        return total

    def paths(
        self, costs: WeightedLevels, flow: Ints, limits: tuple[Ints, Ints] | None = None
    ) -> tuple[ShortestPaths, Ints]:
        """Return shortest paths of the residual network, and the arcs of a negative cycle.

        The number of a reversed arc ``i`` is ``~i``. ``limits`` are the minimum and the maximum
        flow of the arcs.
        """
        low, high = (0, self.high) if limits is None else limits
        forward, backward = np.flatnonzero(flow < high), np.flatnonzero(flow > low)
        found = shortest_paths(
            np.concatenate([self.tail[forward], self.head[backward]]),
            np.concatenate([self.head[forward], self.tail[backward]]),
            np.concatenate(
                [
                    self.unit_costs(costs, forward, flow[forward] + 1),
                    -self.unit_costs(costs, backward, flow[backward]),
                ]
            ),
            sink=self.sink,
        )
        return found, np.concatenate([forward, ~backward])[list(found.cycle)]

    def prices(self, levels: Sequence[objective.Level], flow: Ints) -> tuple[int, ...] | None:
        """Return node prices (dual values) that prove a flow optimal; None if it is not optimal."""
        found, _ = self.paths(self.weighted(levels), flow)
        return None if found.cycle else tuple(map(int, found.distance.tolist()))

    def price_errors(
        self, levels: Sequence[objective.Level], flow: Ints, prices: Sequence[int]
    ) -> Iterator[str]:
        """Yield a message per arc that violates complementary slackness."""
        costs = self.weighted(levels)
        arcs = np.arange(len(flow))
        more, last = (self.unit_costs(costs, arcs, unit).tolist() for unit in (flow + 1, flow))
        columns = (self.tail, self.head, flow, self.high)
        for arc, (tail, head, used, high) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            difference = prices[tail] - prices[head]
            if used < high and difference > more[arc]:
                yield f"{self._arc_name(arc)}: price difference {difference} > cost {more[arc]}"
            if used > 0 and difference < last[arc]:
                yield (
                    f"{self._arc_name(arc)}: price difference {difference} < cost {last[arc]} of "
                    "the last unit"
                )

    def _arc_name(self, arc: int) -> str:
        """Describe an arc by its topic and member, by its member only, or by its nodes."""
        network = self.network
        if arc < self.members.start:
            at = self.network_arc[arc]
            topic = network.topic_names[network.tail[at]]
            return f"topic {topic!r} at member {network.member_ids[network.head[at]]!r}"
        if arc < self.members.stop:
            return f"member {network.member_ids[arc - self.members.start]!r}"
        return f"arc {self.tail[arc]} to {self.head[arc]}"


def level_network(
    problem: Problem, levels: Sequence[objective.Level], network: SubscriptionNetwork | None = None
) -> LevelNetwork:
    """Build the network with arc costs for the given levels."""
    has_hosts = any(isinstance(level, objective.HostImbalance) for level in levels)
    return LevelNetwork(
        build_network(problem) if network is None else network,
        hosts=problem.host_units if has_hosts else None,
        has_sums=any(isinstance(level, objective.TopicSpread) for level in levels),
        has_stateful_sums=any(isinstance(level, objective.StatefulImbalance) for level in levels),
    )


SQUARES_AND_MOVES: tuple[objective.Level, ...] = (objective.Imbalance(), objective.Movement())
"""Levels of the optimum of equal weights. Loads with the minimum sum of squares minimise all
measures of imbalance."""


def priced_levels(
    group: Group, levels: Sequence[objective.Level]
) -> Sequence[objective.Level] | None:
    """Return the levels to price so that prices prove ``levels`` optimal; None if impossible."""
    if has_arc_costs(group, levels):
        return levels
    is_proven = is_optimal_by_squares_and_moves(group, levels)
    return SQUARES_AND_MOVES[: len(levels)] if is_proven else None


def placement_flow(
    problem: Problem, levels: Sequence[objective.Level], placement: Placement
) -> tuple[LevelNetwork, Ints, str | None]:
    """Return the network and flow of a placement, and an error if the flow has a lower value.

    The flow of a placement has the fewest moves, and the most equal members per partition, of all
    placements with its counts.
    """
    arcs = level_network(problem, levels)
    counts = arcs.network.counts(placement)
    best = arcs.network.place(counts)
    for level in levels:
        value, least = (level_value(problem, level, one) for one in (placement, best))
        if value > least:
            error = f"{level.name} is {value}, but the minimum with these counts is {least}"
            return arcs, arcs.flow_of(counts), error
    return arcs, arcs.flow_of(counts), None


def placement_prices(
    problem: Problem, levels: Sequence[objective.Level], placement: Placement
) -> tuple[int, ...] | None:
    """Return node prices that prove a placement optimal on levels; None if there are none."""
    priced = priced_levels(problem.group, levels)
    if priced is None:
        return None
    arcs, flow, error = placement_flow(problem, priced, placement)
    return arcs.prices(priced, flow) if error is None else None
