"""Network whose convex arc costs are the levels of the objective, and prices of its nodes.

Copies flow from the topics of a subscription network through their members and hosts to a sink.
Each level is a sum of convex costs of arcs: the squared loads of members, hosts, and topics at a
member, also of stateful partitions only, the moves, the standbys, the members without a partition,
and the members per partition. Optional copies flow from their topic to the sink.

Levels in lexicographic order are one cost: the cost of a level is multiplied by a weight above the
range of all later levels. A flow has minimum cost if and only if the nodes have prices with
complementary slackness [1]_.

References
----------
.. [1] R. K. Ahuja, T. L. Magnanti, J. B. Orlin. "Network Flows". Prentice Hall, 1993,
   chapters 9 and 14.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kassay.reference.model.errors import InternalError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import LoadUnits, Measure
from kassay.solver import objective
from kassay.solver.constraints import Constraint, is_limited
from kassay.solver.evaluation import level_value, pair_costs
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.number_ranges import Arithmetic, Weights, exact_column
from kassay.solver.problem import Ints, Placement, Problem


def has_arc_costs(group: Group, levels: Sequence[objective.Level]) -> bool:
    """Return whether convex costs of arcs express all levels of a group with equal weights."""
    return bool(group.common_weight) and not any(
        level.tolerance or not _has_arc_costs(level) for level in levels
    )


def check_arc_costs(
    group: Group, levels: Sequence[objective.Level], rules: Iterable[Constraint]
) -> None:
    """Raise UsageError if a group or level requires arc costs, and another part has none."""
    names = [level.name for level in levels if isinstance(level, objective.FlowLevel)]
    if not (group.has_copies or names):
        return
    cause = f"the level {names[0]}" if names else "a group with copies of partitions or state"
    if not group.common_weight:
        raise UsageError(f"{cause} requires equal weights")
    for level in levels:
        if level.tolerance:
            raise UsageError(f"{cause} supports no tolerance, got one of the level {level.name}")
        if not _has_arc_costs(level):
            raise UsageError(
                f"{cause} supports only the levels sum_of_squares, host_sum_of_squares, movement "
                f"(without costs), topic_spread, {', '.join(objective.FLOW_LEVELS)}; "
                f"got {level.name}"
            )
    if is_limited(group, rules):
        permitted = "except" if group.has_copies else "and no"
        raise UsageError(f"{cause} supports no constraints {permitted} capacities of the members")


def _has_arc_costs(level: objective.Level) -> bool:
    match level:
        case objective.Imbalance(measure=measure) | objective.HostImbalance(measure=measure):
            return measure is Measure.SUM_OF_SQUARES
        case objective.Movement(cost=cost):
            return cost is objective.MovementCost.COUNT
        case objective.TopicSpread() | objective.FlowLevel():
            return True
        case _:
            return False


class LevelNetwork:
    """Arcs from topics through members and hosts to a sink, in consecutive parts.

    The parts are: partitions that move or have no owner, owned partitions, members, hosts, topics
    at a member, stateful partitions at a member, and unused copies.

    Parameters
    ----------
    hosts
        Hosts of the members; None for one host.
    has_sums
        Whether all partitions of a topic at a member share an arc, the cost of a topic spread.
    has_stateful_sums
        Whether all stateful partitions at a member share an arc.
    """

    def __init__(
        self,
        network: SubscriptionNetwork,
        *,
        hosts: LoadUnits | None,
        has_sums: bool,
        has_stateful_sums: bool = False,
    ) -> None:
        self.network = network
        members = network.members
        self._host_of = np.zeros(members, dtype=np.int64)
        if hosts is not None:
            self._host_of = np.array(hosts.unit_of, dtype=np.int64)
        count = 1 if hosts is None else len(hosts.names)
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
        self._unused_topics = np.flatnonzero(network.optional)
        total = int(network.supply.sum())
        free = network.partitions[network.tail]
        if network.problem.copies is not None:
            # A member that holds a partition holds all partitions of its class.
            free = free - network.owned
        parts = [
            (network.tail, receiver, free),
            (network.tail, receiver, network.owned),
            (network.topics + member, first_host + self._host_of, network.max_counts),
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
        """Return a number per subscription, which identifies its topic and its member."""
        names = {name: at for at, name in enumerate(dict.fromkeys(self.network.topic_names))}
        topic = np.array([names[name] for name in self.network.topic_names], dtype=np.int64)
        return topic[self.network.tail] * max(self.network.members, 1) + self.network.head

    @property
    def supply(self) -> Ints:
        """Supply of each node: the copies of each topic, and their sum at the sink."""
        supply = np.zeros(self.sink + 1, dtype=np.int64)
        supply[: self.network.topics] = self.network.supply
        supply[-1] = -int(self.network.supply.sum())
        return supply

    def counts(self, flow: Ints) -> Ints:
        """Return the number of partitions per subscription in a flow."""
        return flow[self.moved] + flow[self.kept]

    def flow_of(self, counts: Ints) -> Ints:
        """Return the flow with given numbers of partitions per subscription."""
        network = self.network
        flow = np.zeros(len(self.tail), dtype=np.int64)
        flow[self.kept] = np.minimum(counts, network.owned)
        flow[self.moved] = counts - flow[self.kept]
        flow[self.members] = network.loads(counts)
        np.add.at(flow, self.hosts.start + self._host_of, flow[self.members])
        if self.sums.stop > self.sums.start:
            np.add.at(flow, self.sums.start + self._sum_of, counts)
        if self.stateful.stop > self.stateful.start:
            heads = network.head[self._stateful]
            np.add.at(flow, self.stateful.start + heads, counts[self._stateful])
        placed = np.zeros(network.topics, dtype=np.int64)
        np.add.at(placed, network.tail, counts)
        flow[self.unused] = (network.supply - placed)[self._unused_topics]
        return flow

    def part_of(self, level: objective.Level) -> slice:
        """Return the part of the arcs that have the costs of a level."""
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

    def unit_cost(self, level: objective.Level, unit: Ints) -> Weights:
        """Return the cost of a unit of flow on each arc of the level's part.

        ``unit`` is the number of the unit, from 1.
        """
        match level:
            case (
                objective.Imbalance()
                | objective.HostImbalance()
                | objective.TopicSpread()
                | objective.StatefulImbalance()
            ):
                cost = self._factors(level) * (2 * unit - 1)
            case objective.MembersPerPartition():
                partitions = self.network.partitions[self._unused_topics]
                used = self.network.supply[self._unused_topics] - unit
                cost = -(2 * (used // partitions) + 1)
            case objective.IdleMembers():
                cost = -(unit == 1).astype(np.int64)
            case objective.Slots():
                cost = np.ones_like(unit)
            case objective.Movement():
                owned = np.zeros(self.network.topics, dtype=np.int64)
                np.add.at(owned, self.network.tail, self.network.owned)
                cost = (owned[self.network.tail] > 0).astype(np.int64)
            case objective.MissingTagValues() | objective.StandbyMoves():
                cost = np.tile(self._pair_costs(level), 2)
            case _:
                raise InternalError(f"arcs have no cost for the level {level.name!r}")
        return cost

    def _pair_costs(self, level: objective.FlowLevel) -> Ints:
        """Return the costs of the standbys for an active task, per subscription."""
        if self.network.problem.copies is None:
            return np.zeros(len(self.network.tail), dtype=np.int64)
        return pair_costs(self.network.problem, level)[self.network.tail, self.network.head]

    def _greatest_pair_cost(self, level: objective.Level) -> int:
        if isinstance(level, objective.MissingTagValues | objective.StandbyMoves):
            return int(self._pair_costs(level).max(initial=0))
        return 0

    def _factors(self, level: objective.Level) -> Weights:
        """Return the factors of the squares of a level, which differ if the speeds differ."""
        problem = self.network.problem
        match level:
            case objective.Imbalance():
                factors = problem.member_units.factors
            case objective.HostImbalance():
                factors = problem.host_units.factors
            case _:
                part = self.part_of(level)
                return np.ones(part.stop - part.start, dtype=np.int64)
        most = max(factors, default=1) * (2 * int(self.network.supply.sum()) + 3)
        return exact_column(np.array(factors, dtype=object), most)

    def weights(self, levels: Sequence[objective.Level]) -> list[int]:
        """Return weights of the levels, each above the range of all later levels together."""
        problem, total = self.network.problem, int(self.network.supply.sum())
        factors = [1, *problem.member_units.factors, *problem.host_units.factors]
        squares = max(factors) * total * total
        weights, later = [], 0
        for level in reversed(levels):
            weights.append(later + 1)
            match level:
                case objective.Movement() | objective.Slots():
                    most = total
                case objective.IdleMembers():
                    most = self.network.members
                case objective.MissingTagValues() | objective.StandbyMoves():
                    most = total * self._greatest_pair_cost(level)
                case _:
                    most = squares
            later += weights[-1] * most
        return weights[::-1]

    def costs(self, levels: Sequence[objective.Level], flow: Ints) -> tuple[Weights, Weights]:
        """Return, per arc, the weighted cost of the next and of the last unit of a flow."""
        weights, problem = self.weights(levels), self.network.problem
        factor = max([1, *problem.member_units.factors, *problem.host_units.factors])
        total = int(self.network.supply.sum())
        # The greatest cost of a unit: of a squared load, or of the standbys of a task.
        greatest = factor * (2 * total + 3) + max(map(self._greatest_pair_cost, levels), default=0)
        most = sum(weights) * greatest
        is_small = Arithmetic.INT64.represents(most * (self.sink + 2))
        dtype = np.int64 if is_small else np.object_
        both: list[Weights] = []
        for units in (flow + 1, flow):
            costs: Weights = np.zeros(len(flow), dtype=dtype)
            for level, weight in zip(levels, weights, strict=True):
                part = self.part_of(level)
                costs[part] += self.unit_cost(level, units[part]).astype(dtype) * weight
            both.append(costs)
        return both[0], both[1]

    def prices(self, levels: Sequence[objective.Level], flow: Ints) -> list[int] | None:
        """Return the prices of the nodes that prove a flow optimal, or None if it is not.

        The prices are shortest distances in the residual network (Bellman-Ford).
        """
        more, less = self.costs(levels, flow)
        forward, backward = flow < self.high, flow > 0
        tail = np.concatenate([self.tail[forward], self.head[backward]])
        head = np.concatenate([self.head[forward], self.tail[backward]])
        cost = np.concatenate([more[forward], -less[backward]])
        order = np.argsort(head, kind="stable")
        tail, head, cost = tail[order], head[order], cost[order]
        starts = np.flatnonzero(np.diff(head, prepend=-1))
        distance = np.zeros(self.sink + 1, dtype=cost.dtype)
        for _ in range(self.sink + 2 if len(starts) else 0):
            reached = np.minimum.reduceat(distance[tail] + cost, starts)
            shorter = np.minimum(distance[head[starts]], reached)
            if (shorter == distance[head[starts]]).all():
                return [*map(int, distance.tolist())]
            distance[head[starts]] = shorter
        return None if len(starts) else [0] * (self.sink + 1)

    def price_errors(
        self, levels: Sequence[objective.Level], flow: Ints, prices: Sequence[int]
    ) -> Iterator[str]:
        """Yield a message per arc that violates complementary slackness."""
        more, less = self.costs(levels, flow)
        for arc, (tail, head) in enumerate(
            zip(self.tail.tolist(), self.head.tolist(), strict=True)
        ):
            difference = prices[head] - prices[tail]
            if flow[arc] < self.high[arc] and difference > int(more[arc]):
                yield f"arc {tail} to {head}: {difference} is above the cost {more[arc]} of a unit"
            if flow[arc] > 0 and difference < int(less[arc]):
                yield (
                    f"arc {tail} to {head}: {difference} is below the cost {less[arc]} of the last "
                    "unit"
                )


def level_network(
    problem: Problem, levels: Sequence[objective.Level], network: SubscriptionNetwork | None = None
) -> LevelNetwork:
    """Build the network of some levels."""
    has_hosts = any(isinstance(level, objective.HostImbalance) for level in levels)
    return LevelNetwork(
        build_network(problem) if network is None else network,
        hosts=problem.host_units if has_hosts else None,
        has_sums=any(isinstance(level, objective.TopicSpread) for level in levels),
        has_stateful_sums=any(isinstance(level, objective.StatefulImbalance) for level in levels),
    )


def price_flow(
    problem: Problem, levels: Sequence[objective.Level], placement: Placement
) -> tuple[LevelNetwork, Ints, str | None]:
    """Return the network and the flow of a placement, and an error if the flow hides a cost.

    The flow of a placement has the fewest moves, and the most equal members per partition, of all
    placements with its counts.
    """
    arcs = level_network(problem, levels)
    counts = arcs.network.counts(placement)
    best = arcs.network.place(counts)
    for level in levels:
        value, least = (level_value(problem, level, one) for one in (placement, best))
        if value > least:
            return (
                arcs,
                arcs.flow_of(counts),
                f"{level.name} is {value}, but with these counts it can be {least}",
            )
    return arcs, arcs.flow_of(counts), None
