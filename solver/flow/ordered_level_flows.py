"""Minimise levels about hosts, members and moves in their order, by minimum cost flows.

With equal weights, the squared loads of hosts and members of any speed, and the moves, are
separable convex costs in one network: from topics through members and hosts to a sink. After each
level, only the flows that are optimal for this level remain, by complementary slackness: an arc
with a positive reduced cost stays empty, and an arc with a negative reduced cost stays full.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.reference.model.load_units import LoadUnits
from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.level_bounds import level_bound
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value, load_units, violated
from kassay.solver.flow.flow_levels import find_conflict_by_flow
from kassay.solver.flow.network_flows import CostedArcs
from kassay.solver.flow.optimal_flow import optimal_counts, spread_received_partitions
from kassay.solver.flow.optimal_loads_by_cuts import is_feasible
from kassay.solver.flow.priced_flow import LoadPieces, LoadWindows
from kassay.solver.incumbent_pool import FlowLevels
from kassay.solver.limits import FlowClock
from kassay.solver.number_ranges import Arithmetic
from kassay.solver.objective import HostImbalance, Imbalance, Level, Movement, MovementCost
from kassay.solver.problem import Ints, Problem
from kassay.solver.subscription_network import SubscriptionNetwork, build_network


def solve_ordered_levels(
    problem: Problem,
    levels: Sequence[Level],
    constraints: Sequence[Constraint],
    clock: FlowClock,
) -> FlowLevels:
    """Find placements and bounds for the first levels of a problem with equal weights.

    The levels may be about hosts and about members of different speed. A constraint on several
    members or on the moves is ignored: levels after a placement that violates it have no bound.
    """
    network, found = build_network(problem, constraints), FlowLevels()
    if not clock.may_start():
        return found
    if not is_feasible(network):
        found.conflict = find_conflict_by_flow(problem, constraints, clock.may_start)
        return found
    counts = optimal_counts(network, clock)
    if counts is None:
        return found
    found.placements.append(network.place(counts))
    has_hosts = any(isinstance(level, HostImbalance) for level in levels)
    search = _OrderedFlows(problem, network, clock, problem.host_units if has_hosts else None)
    search.start(counts)
    for index, level in enumerate(levels):
        limit = search.minimise(level)
        if limit is None:
            break
        placement = network.place(search.counts)
        value = level_value(problem, level, placement)
        found.placements.append(placement)
        found.bounds[index] = value, Origin.FLOW
        if any(violated(problem, constraints, placement)) or limit < level.tolerance.limit(value):
            break
    else:
        found.is_complete = True
    counts = spread_received_partitions(network, search.counts, np.arange(len(network.tail)))
    found.placements.append(network.place(counts))
    return found


@dataclass(slots=True)
class _OrderedFlows:
    """Network whose capacities permit only flows that are optimal for the finished levels.

    The columns describe one arc per subscription for partitions that move or have no owner, one
    per subscription for owned partitions, one per member, and one per host.
    """

    problem: Problem
    network: SubscriptionNetwork
    clock: FlowClock
    hosts: LoadUnits | None
    tail: Ints = field(init=False)
    head: Ints = field(init=False)
    low: Ints = field(init=False)
    high: Ints = field(init=False)
    flow: Ints = field(init=False)

    def __post_init__(self) -> None:
        network = self.network
        host = np.zeros(network.members, dtype=np.int64)
        if self.hosts is not None:
            host = np.array(self.hosts.unit_of, dtype=np.int64)
        count = 1 if self.hosts is None else len(self.hosts.names)
        member = network.topics + np.arange(network.members)
        first_host = network.topics + network.members
        hosts, total = first_host + np.arange(count), int(network.supply.sum())
        sink = np.full(count, first_host + count)
        subscriber = network.topics + network.head
        self.tail = np.concatenate([network.tail, network.tail, member, hosts])
        self.head = np.concatenate([subscriber, subscriber, first_host + host, sink])
        self.high = np.concatenate(
            [network.supply[network.tail], network.owned, network.max_counts, np.full(count, total)]
        )
        self.low = np.zeros(len(self.tail), dtype=np.int64)

    @property
    def _members(self) -> slice:
        first = 2 * len(self.network.tail)
        return slice(first, first + self.network.members)

    @property
    def _hosts(self) -> slice:
        return slice(self._members.stop, len(self.tail))

    @property
    def counts(self) -> Ints:
        """Number of partitions per subscription."""
        arcs = len(self.network.tail)
        return self.flow[:arcs] + self.flow[arcs : 2 * arcs]

    def start(self, counts: Ints) -> None:
        """Set the flow to partition counts per subscription."""
        kept, loads = np.minimum(counts, self.network.owned), self.network.loads(counts)
        hosts = np.bincount(
            self.head[self._members] - self.tail[self._hosts][0],
            weights=loads,
            minlength=len(self.tail) - self._hosts.start,
        )
        self.flow = np.concatenate([counts - kept, kept, loads, hosts.astype(np.int64)])

    def minimise(self, level: Level) -> int | None:
        """Minimise one level, and keep only the flows within a limit of this level.

        Return this limit, or None if flows cannot minimise the level within the time limit.
        """
        match level:
            case Movement(cost=MovementCost()):
                return self._minimise_moves(level)
            case Imbalance() | HostImbalance():
                units = load_units(self.problem, level)
                part = self._hosts if isinstance(level, HostImbalance) else self._members
                if level.measure is Measure.MAKESPAN:
                    return self._minimise_makespan(level, units, part)
                if level.measure is Measure.SUM_OF_SQUARES:
                    return self._minimise_squares(level, units, part)
        return None

    def _value(self, level: Level) -> int:
        return level_value(self.problem, level, self.network.place(self.counts))

    def _minimise_makespan(self, level: Level, units: LoadUnits, part: slice) -> int | None:
        """Find the minimum makespan by bisection over the values that one load can have."""
        weight = int(self.problem.weight[0])
        factors = [factor * weight for factor in units.factors]
        most = self._value(level)
        least = min(most, level_bound(self.problem, level))
        values = sorted(
            {most}
            | {
                factor * load
                for factor in set(factors)
                for load in range(-(-least // factor), most // factor + 1)
            }
        )
        first, last = 0, len(values) - 1
        while first < last:
            middle = (first + last) // 2
            if not self.clock.may_start():
                return None
            if self._limit_loads(part, factors, values[middle]):
                last = middle
            else:
                first = middle + 1
        limit = level.tolerance.limit(values[last])
        self.high[part] = np.minimum(self.high[part], self._max_counts(factors, limit))
        return limit

    def _max_counts(self, factors: Iterable[int], limit: int) -> Ints:
        top = int(self.network.supply.sum())
        return np.array([min(top, limit // factor) for factor in factors], dtype=np.int64)

    def _limit_loads(self, part: slice, factors: Sequence[int], limit: int) -> bool:
        """Find a flow within a maximum relative load, and return whether it exists."""
        high = self.high.copy()
        high[part] = np.minimum(high[part], self._max_counts(factors, limit))
        if (high < self.low).any():
            return False
        arcs = CostedArcs(self.tail, self.head, high - self.low, np.zeros_like(high))
        flows = arcs.min_cost_flow(self._supply())
        if flows is None:
            return False
        self.flow = self.low + flows
        return True

    def _minimise_squares(self, level: Level, units: LoadUnits, part: slice) -> int | None:
        """Minimise the sum of load times relative load, with one arc per unit of load.

        Only the units of load in a window around the current load have arcs of their own. The
        windows are widened until they contain the optimum.
        """
        top, nodes = int(self.network.supply.sum()), int(self.head.max()) + 1
        # OR-Tools multiplies the costs by the number of nodes.
        if not Arithmetic.INT64.represents(max(units.factors) * (2 * top + 1) * nodes):
            return None
        factors = np.array(units.factors, dtype=np.int64)
        windows = LoadWindows.around(self.flow[part])
        while self.clock.may_start():
            pieces = LoadPieces.of(self.low[part], self.high[part], windows, factors)
            pieces = pieces.without_empty()
            arcs = self._arcs_with(part, pieces)
            flows = arcs.min_cost_flow(self._supply())
            if flows is None:
                raise InternalError("no flow has the loads of a known placement")
            others = len(flows) - len(pieces.unit)
            loads = self.low[part] + pieces.sums(flows[others:])
            reached = LoadWindows(windows.low + 1, windows.high - 1)
            below = (loads < reached.low) & (windows.low > self.low[part])
            above = (loads > reached.high) & (windows.high < self.high[part])
            if not (below | above).any():
                break
            windows = reached.widened(loads)
            windows = LoadWindows(np.maximum(windows.low - 1, 0), windows.high + 1)
        else:
            return None
        outside = np.ones(len(self.tail), dtype=np.bool_)
        outside[part] = False
        self.flow[outside] = self.low[outside] + flows[:others]
        self.flow[part] = loads
        reduced = arcs.reduced_costs(flows, nodes)
        low, high = self.low[part].copy(), self.low[part].copy()
        low += pieces.sums(np.where(reduced[others:] < 0, pieces.capacity, 0))
        high += pieces.sums(np.where(reduced[others:] <= 0, pieces.capacity, 0))
        self._keep_optimal(np.flatnonzero(outside), reduced[:others])
        self.low[part], self.high[part] = low, high
        return self._value(level)

    def _minimise_moves(self, level: Level) -> int | None:
        cost = np.zeros(len(self.tail), dtype=np.int64)
        cost[: len(self.network.tail)] = 1
        arcs = CostedArcs(self.tail, self.head, self.high - self.low, cost)
        flows = arcs.min_cost_flow(self._supply()) if self.clock.may_start() else None
        if flows is None:
            return None
        self.flow = self.low + flows
        reduced = arcs.reduced_costs(flows, int(self.head.max()) + 1)
        self._keep_optimal(np.arange(len(self.tail)), reduced)
        return self._value(level)

    def _supply(self) -> Ints:
        """Return the supply of each node after the minimum flows of all arcs."""
        supply = np.zeros(int(self.head.max()) + 1, dtype=np.int64)
        supply[: self.network.topics] = self.network.supply
        supply[-1] = -int(self.network.supply.sum())
        np.subtract.at(supply, self.tail, self.low)
        np.add.at(supply, self.head, self.low)
        return supply

    def _arcs_with(self, part: slice, pieces: LoadPieces) -> CostedArcs:
        """Return the arcs without those of a part, followed by the pieces of this part."""
        outside = np.ones(len(self.tail), dtype=np.bool_)
        outside[part] = False
        others = int(outside.sum())
        return CostedArcs(
            np.concatenate([self.tail[outside], self.tail[part][pieces.unit]]),
            np.concatenate([self.head[outside], self.head[part][pieces.unit]]),
            np.concatenate([(self.high - self.low)[outside], pieces.capacity]),
            np.concatenate([np.zeros(others, dtype=np.int64), pieces.cost]),
        )

    def _keep_optimal(self, arcs: Ints, reduced: Ints) -> None:
        """Restrict arcs to the flows that are optimal for their reduced costs."""
        low, high = self.low[arcs], self.high[arcs]
        self.low[arcs] = np.where(reduced < 0, high, low)
        self.high[arcs] = np.where(reduced > 0, low, high)
