"""Solve or bound the first levels by network flows, for equal weights and any constraints.

A constraint on single members or partitions changes the network. A limit on moves, and a
tolerance of imbalance, are found on the convex hull of both values. All other constraints are
ignored here: the bounds remain valid, and the caller checks the placements.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.reference.model.metrics import LoadUnits, Measure
from kassay.solver import objective
from kassay.solver.bounds.counting import level_bound, load_window
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.evaluation import level_value, load_units, violated
from kassay.solver.flow.convex_hull import BoundedPoint, HullSearch
from kassay.solver.flow.min_cost_flow import CostedArcs, LoadPieces, LoadWindows, fewest_moves_point
from kassay.solver.flow.optimal_flow import optimal_counts, solve_flow, spread_received_partitions
from kassay.solver.flow.optimal_loads_by_cuts import is_feasible
from kassay.solver.incumbent_pool import FlowLevels
from kassay.solver.limits import FlowClock
from kassay.solver.network.level_network import LevelNetwork, level_network
from kassay.solver.network.subscription_network import (
    SubscriptionNetwork,
    build_network,
    prices_prove,
)
from kassay.solver.number_ranges import Arithmetic
from kassay.solver.objective import Imbalance, Level, Movement, MovementCost
from kassay.solver.problem import Ints, Placement, Problem

_STRICT = (Measure.SUM_OF_SQUARES, Measure.LEXIMAX)


def solve_levels_by_flow(
    problem: Problem,
    levels: Sequence[Level],
    constraints: Sequence[Constraint],
    clock: FlowClock,
) -> FlowLevels:
    """Find placements and bounds for the first levels of a problem with equal weights."""
    search = _LevelFlows(problem, levels, constraints, clock)
    if not search.run():
        search.found.conflict = find_conflict_by_flow(problem, constraints, clock.may_start)
    return search.found


@dataclass
class _LevelFlows:
    """Network flow searches for the first two levels of one problem."""

    problem: Problem
    levels: Sequence[Level]
    constraints: Sequence[Constraint]
    clock: FlowClock
    found: FlowLevels = field(default_factory=FlowLevels)

    def run(self) -> bool:
        """Find placements and bounds, first without and then with the constraints.

        Return whether the constraints can be met, as far as flows can decide.
        """
        plain = solve_flow(self.problem, self.clock)
        if plain is None:
            return True
        self.found.placements.append(plain.placement)
        if not any(violated(self.problem, self.constraints, plain.placement)):
            network = build_network(self.problem)
            if prices_prove(self.problem.group, self.levels[:2]):
                self.found.prices = plain.prices
        else:
            network = build_network(self.problem, self.constraints)
            if self.clock.may_start() and not is_feasible(network):
                return False
        balanced = self._balanced(network, plain.placement)
        if balanced is None:
            # The optimum without constraints is a lower bound on the imbalance.
            if isinstance(self.levels[0], Imbalance):
                self._bound(0, level_value(self.problem, self.levels[0], plain.placement))
            return True
        match self.levels:
            case [Imbalance() as first, *_]:
                return self._imbalance_first(network, first, balanced)
            case [Movement(cost=MovementCost()) as first, *_]:
                return self._movement_first(network, first, balanced)
            case _:
                return True

    def _balanced(self, network: SubscriptionNetwork, plain: Placement) -> Ints | None:
        """Return counts per arc with optimal loads and fewest moves, or None if time is over."""
        if not any(violated(self.problem, self.constraints, plain)):
            return network.counts(plain)
        counts = optimal_counts(network, self.clock) if self.clock.may_start() else None
        if counts is None:
            return None
        self.found.placements.append(network.place(counts))
        return counts

    @property
    def _max_moves(self) -> int:
        limits = [rule.limit for rule in self.constraints if isinstance(rule, MaxMoves)]
        return min(limits, default=self.problem.partition_count)

    def _imbalance_first(
        self, network: SubscriptionNetwork, first: Imbalance, balanced: Ints
    ) -> bool:
        """Bound the imbalance, then the moves of placements within the imbalance limit.

        Return False if the limit on moves is too low.
        """
        search = None
        optimum = network.place(balanced)
        # Optimal loads minimise every measure.
        self._bound(0, level_value(self.problem, first, optimum))
        if network.min_movement(balanced) > self._max_moves:
            if not self.clock.may_start():
                return True
            search = HullSearch.of(network, balanced)
            if not self._imbalance_within_moves(search, first):
                return False
        limit = self._limit(first)
        if limit is not None and self._is_movement(1):
            self._moves_within(limit, network, first, balanced, search)
        return True

    def _moves_within(
        self,
        limit: int,
        network: SubscriptionNetwork,
        first: Imbalance,
        balanced: Ints,
        search: HullSearch | None,
    ) -> None:
        """Minimise moves within a limit on the imbalance."""
        optimum = network.place(balanced)
        if first.measure in _STRICT and limit == level_value(self.problem, first, optimum):
            self._bound_moves(1, network.min_movement(balanced))
        elif not self.clock.may_start():
            return
        elif first.measure is Measure.SUM_OF_SQUARES:
            search = search or HullSearch.of(network, balanced)
            squares = limit // int(self.problem.weight[0]) ** 2
            found = search.within_squares(squares, self.clock.may_start)
            if found is not None:
                self._add(1, network, found)
        elif first.measure is not Measure.LEXIMAX:
            members, total = self.problem.member_count, self.problem.total
            high = limit
            if first.measure is not Measure.MAKESPAN:
                high = load_window(first.measure, total, members, limit)[1]
            self._within_load(network, high // int(self.problem.weight[0]), balanced)

    def _imbalance_within_moves(self, search: HullSearch, first: Imbalance) -> bool:
        """Minimise the imbalance within the limit on moves.

        Return False if the limit is too low.
        """
        found = search.within_moves(self._max_moves, self.clock.may_start)
        if found is None:
            return False
        self.found.placements.append(search.network.place(found.point.counts))
        if first.measure is Measure.SUM_OF_SQUARES:
            self._bound(0, found.bound * int(self.problem.weight[0]) ** 2)
        elif first.measure is Measure.MAKESPAN:
            self._lower_makespan(search)
        return True

    def _lower_makespan(self, search: HullSearch) -> None:
        """Find the minimum makespan within the limit on moves, by bisection."""
        network = search.network
        low = int(network.loads(search.ends[1].counts).max(initial=0))
        high = int(network.loads(search.ends[0].counts).max(initial=0))
        while low < high and self.clock.may_start():
            middle = (low + high) // 2
            limited = _with_max_load(network, middle)
            point = fewest_moves_point(limited, search.windows)
            if point.moves <= self._max_moves:
                high = middle
                self.found.placements.append(network.place(point.counts))
            else:
                low = middle + 1
        self._bound(0, low * int(self.problem.weight[0]))

    def _within_load(self, network: SubscriptionNetwork, high: int, balanced: Ints) -> None:
        """Minimise moves within a maximum load per member, which relaxes an imbalance limit."""
        limited = _with_max_load(network, high)
        loads = network.loads(balanced)
        kept = np.minimum(network.loads(network.owned), limited.max_counts)
        windows = LoadWindows.around(loads, np.maximum(loads, kept))
        point = fewest_moves_point(limited, windows)
        self._add(1, network, BoundedPoint(point, point.moves))

    def _movement_first(
        self, network: SubscriptionNetwork, first: Movement, balanced: Ints
    ) -> bool:
        """Bound the moves, then the imbalance of placements with this number of moves.

        Return False if the limit on moves is too low.
        """
        if not self.clock.may_start():
            return True
        search = HullSearch.of(network, balanced)
        fewest = search.ends[0]
        if fewest.moves > self._max_moves:
            return False
        self._add(0, network, BoundedPoint(fewest, fewest.moves))
        limit = self._limit(first)
        if limit is None or len(self.levels) < 2 or not isinstance(self.levels[1], Imbalance):
            return True
        unit = int(self.problem.weight[0])
        moves = limit if first.cost is MovementCost.COUNT else limit // unit
        if moves <= fewest.moves:
            # Among the flows with the fewest moves, the least sum of squares has optimal loads.
            placement = network.place(fewest.counts)
            self._bound(1, level_value(self.problem, self.levels[1], placement))
        elif self.levels[1].measure is Measure.SUM_OF_SQUARES:
            found = search.within_moves(min(moves, self._max_moves), self.clock.may_start)
            if found is not None:
                self.found.placements.append(network.place(found.point.counts))
                self._bound(1, found.bound * unit**2)
        return True

    def _is_movement(self, index: int) -> bool:
        level = self.levels[index] if index < len(self.levels) else None
        return isinstance(level, Movement) and isinstance(level.cost, MovementCost)

    def _limit(self, level: Level) -> int | None:
        """Return the maximum value of the first level while later levels are minimised.

        Return None if no placement is known that meets all constraints.
        """
        values = [
            level_value(self.problem, level, placement)
            for placement in self.found.placements
            if not any(violated(self.problem, self.constraints, placement))
        ]
        return level.tolerance.limit(min(values)) if values else None

    def _add(self, index: int, network: SubscriptionNetwork, found: BoundedPoint) -> None:
        """Record a found placement, and its bound on moves as a bound of a level."""
        self.found.placements.append(network.place(found.point.counts))
        self._bound_moves(index, found.bound)

    def _bound_moves(self, index: int, moves: int) -> None:
        level = self.levels[index]
        is_count = isinstance(level, Movement) and level.cost is MovementCost.COUNT
        self._bound(index, moves if is_count else moves * int(self.problem.weight[0]))

    def _bound(self, index: int, bound: int) -> None:
        origin = Origin.PRICES if self.found.prices is not None else Origin.FLOW
        known = self.found.bounds.get(index, (bound, origin))[0]
        self.found.bounds[index] = max(bound, known), origin


def _with_max_load(network: SubscriptionNetwork, high: int) -> SubscriptionNetwork:
    most = min(high, network.problem.partition_count)
    capacity = np.full(network.members, most, dtype=np.int64)
    if network.capacity is not None:
        capacity = np.minimum(capacity, network.capacity)
    return replace(network, capacity=capacity)


def is_infeasible(problem: Problem, constraints: Sequence[Constraint]) -> bool:
    """Return whether flows prove that no assignment meets the constraints.

    With different weights, there must be no capacities.
    """
    network = build_network(problem, constraints)
    if not is_feasible(network):
        return True
    limits = [rule.limit for rule in constraints if isinstance(rule, MaxMoves)]
    if not limits:
        return False
    kept = np.minimum(network.loads(network.owned), network.max_counts)
    return fewest_moves_point(network, LoadWindows.around(kept)).moves > min(limits)


def find_conflict_by_flow(
    problem: Problem, constraints: Sequence[Constraint], may_continue: Callable[[], bool]
) -> tuple[Constraint, ...]:
    """Reduce infeasible constraints to a small infeasible subset, by network flows.

    Parts of the constraints are left out, and stay out if the others are still infeasible. The
    parts shrink to single constraints. The result is minimal if time allows.
    """
    kept = tuple(constraints)
    size = (len(kept) + 1) // 2
    while size and may_continue():
        start = 0
        while start < len(kept) and may_continue():
            others = kept[:start] + kept[start + size :]
            if is_infeasible(problem, others):
                kept = others
            else:
                start += size
        size = 0 if size == 1 else (size + 1) // 2
    return kept


def solve_ordered_levels(
    problem: Problem,
    levels: Sequence[objective.Level],
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
    if problem.copies is None and not is_feasible(network):
        found.conflict = find_conflict_by_flow(problem, constraints, clock.may_start)
        return found
    has_copies = problem.copies is not None
    counts = None if has_copies else optimal_counts(network, clock)
    search = _OrderedFlows(problem, level_network(problem, levels, network), clock)
    if (counts is None and not has_copies) or not search.start(counts):
        return found
    found.placements.append(network.place(search.counts))
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
    if not has_copies:
        counts = spread_received_partitions(network, search.counts, np.arange(len(network.tail)))
        found.placements.append(network.place(counts))
    return found


@dataclass(slots=True)
class _OrderedFlows:
    """Network whose capacities permit only flows that are optimal for the finished levels.

    ``low`` and ``high`` are the limits of the arcs of the network.
    """

    problem: Problem
    arcs: LevelNetwork
    clock: FlowClock
    low: Ints = field(init=False)
    high: Ints = field(init=False)
    flow: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.low, self.high = np.zeros_like(self.arcs.high), self.arcs.high.copy()

    @property
    def counts(self) -> Ints:
        """Number of partitions per subscription."""
        return self.arcs.counts(self.flow)

    def start(self, counts: Ints | None) -> bool:
        """Set the flow to counts per subscription, by default to any flow.

        Return whether there is a flow.
        """
        if counts is not None:
            self.flow = self.arcs.flow_of(counts)
            return True
        flow = self._min_cost_flow(np.zeros_like(self.high))
        if flow is not None:
            self.flow = flow
        return flow is not None

    def minimise(self, level: objective.Level) -> int | None:
        """Minimise one level, and keep only the flows within a limit of this level.

        Return this limit, or None if flows cannot minimise the level within the time limit.
        """
        match level:
            case (
                objective.Movement(cost=objective.MovementCost())
                | objective.Slots()
                | objective.MissingTagValues()
                | objective.StandbyMoves()
            ):
                return self._minimise_sum(level)
            case objective.TopicSpread() | objective.StatefulImbalance():
                part = self.arcs.part_of(level)
                return self._minimise_squares(level, [1] * (part.stop - part.start))
            case objective.IdleMembers() | objective.MembersPerPartition():
                return self._minimise_pieces(level)
            case objective.Imbalance() | objective.HostImbalance():
                units = load_units(self.problem, level)
                if level.measure is Measure.MAKESPAN:
                    return self._minimise_makespan(level, units)
                if level.measure is Measure.SUM_OF_SQUARES:
                    return self._minimise_squares(level, units.factors)
        return None

    def _value(self, level: objective.Level) -> int:
        return level_value(self.problem, level, self.arcs.network.place(self.counts))

    def _minimise_makespan(self, level: objective.Level, units: LoadUnits) -> int | None:
        """Find the minimum makespan by bisection over the values that one load can have."""
        part = self.arcs.part_of(level)
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
        top = int(self.arcs.network.supply.sum())
        return np.array([min(top, limit // factor) for factor in factors], dtype=np.int64)

    def _limit_loads(self, part: slice, factors: Sequence[int], limit: int) -> bool:
        """Find a flow within a maximum relative load, and return whether it exists."""
        high = self.high.copy()
        high[part] = np.minimum(high[part], self._max_counts(factors, limit))
        if (high < self.low).any():
            return False
        flow = self._min_cost_flow(np.zeros_like(high), high)
        if flow is not None:
            self.flow = flow
        return flow is not None

    def _min_cost_flow(self, cost: Ints, high: Ints | None = None) -> Ints | None:
        """Return a flow with minimum cost within the limits, or None if there is no flow."""
        arcs = self.arcs
        room = (self.high if high is None else high) - self.low
        flow = CostedArcs(arcs.tail, arcs.head, room, cost).min_cost_flow(self._supply())
        return None if flow is None else self.low + flow

    def _minimise_squares(self, level: objective.Level, factors: Sequence[int]) -> int | None:
        """Minimise the sum of load times relative load, with one arc per unit of load.

        Only the units of load in a window around the current load have arcs of their own. The
        windows are widened until they contain the optimum.
        """
        part, top = self.arcs.part_of(level), int(self.arcs.network.supply.sum())
        # OR-Tools multiplies the costs by the number of nodes.
        most = max(factors, default=1) * (2 * top + 1)
        if not Arithmetic.INT64.represents(most * (self.arcs.sink + 1)):
            return None
        windows, factor = LoadWindows.around(self.flow[part]), np.array(factors, dtype=np.int64)
        while self.clock.may_start():
            pieces = LoadPieces.of(self.low[part], self.high[part], windows, factor)
            arcs, pieces, flows = self._flow_of_pieces(part, pieces)
            loads = self.low[part] + pieces.sums(flows[len(flows) - len(pieces.unit) :])
            reached = LoadWindows(windows.low + 1, windows.high - 1)
            below = (loads < reached.low) & (windows.low > self.low[part])
            above = (loads > reached.high) & (windows.high < self.high[part])
            if not (below | above).any():
                self._keep_pieces(part, arcs, pieces, flows)
                return self._value(level)
            windows = reached.widened(loads)
            windows = LoadWindows(np.maximum(windows.low - 1, 0), windows.high + 1)
        return None

    def _minimise_pieces(self, level: objective.Level) -> int | None:
        """Minimise a level with few different costs per arc."""
        if not self.clock.may_start():
            return None
        part = self.arcs.part_of(level)
        low, high = self.low[part], self.high[part]
        arcs = np.arange(len(low))
        if isinstance(level, objective.MembersPerPartition):
            step = self.arcs.network.partitions[self.arcs.tail[part]]
            ends = -(-high // step)
        else:
            step, ends = np.ones_like(low), np.minimum(high, 2)
        unit = np.repeat(arcs, ends)
        index = np.arange(len(unit)) - np.repeat(np.cumsum(ends) - ends, ends)
        start = np.clip(index * step[unit], low[unit], high[unit])
        stop = np.clip((index + 1) * step[unit], low[unit], high[unit])
        stop = np.where(index == ends[unit] - 1, high[unit], stop)
        cost = np.zeros_like(unit)
        for number in range(int(ends.max(initial=0))):
            costs = self.arcs.unit_cost(level, number * step + 1)
            cost = np.where(index == number, costs[unit], cost)
        pieces = LoadPieces(unit, stop - start, cost, len(low))
        self._keep_pieces(part, *self._flow_of_pieces(part, pieces))
        return self._value(level)

    def _flow_of_pieces(
        self, part: slice, pieces: LoadPieces
    ) -> tuple[CostedArcs, LoadPieces, Ints]:
        """Return the arcs with the pieces of a part, the pieces, and a flow of minimum cost."""
        pieces = pieces.without_empty()
        arcs = self._arcs_with(part, pieces)
        flows = arcs.min_cost_flow(self._supply())
        if flows is None:
            raise InternalError("no flow has the loads of a known placement")
        return arcs, pieces, flows

    def _keep_pieces(self, part: slice, arcs: CostedArcs, pieces: LoadPieces, flows: Ints) -> None:
        """Set the flow, and keep only flows that are optimal for the costs of the pieces."""
        others = len(flows) - len(pieces.unit)
        loads = self.low[part] + pieces.sums(flows[others:])
        outside = np.ones(len(self.high), dtype=np.bool_)
        outside[part] = False
        self.flow[outside] = self.low[outside] + flows[:others]
        self.flow[part] = loads
        reduced = arcs.reduced_costs(flows, self.arcs.sink + 1)
        low, high = self.low[part].copy(), self.low[part].copy()
        low += pieces.sums(np.where(reduced[others:] < 0, pieces.capacity, 0))
        high += pieces.sums(np.where(reduced[others:] <= 0, pieces.capacity, 0))
        self._keep_optimal(np.flatnonzero(outside), reduced[:others])
        self.low[part], self.high[part] = low, high

    def _minimise_sum(self, level: objective.Level) -> int | None:
        """Minimise a level with one cost per arc."""
        arcs, part = self.arcs, self.arcs.part_of(level)
        cost = np.zeros_like(self.high)
        cost[part] = arcs.unit_cost(level, np.ones_like(cost[part]))
        flow = self._min_cost_flow(cost) if self.clock.may_start() else None
        if flow is None:
            return None
        self.flow = flow
        costed = CostedArcs(arcs.tail, arcs.head, self.high - self.low, cost)
        reduced = costed.reduced_costs(flow - self.low, arcs.sink + 1)
        self._keep_optimal(np.arange(len(cost)), reduced)
        return self._value(level)

    def _supply(self) -> Ints:
        """Return the supply of each node after the minimum flows of all arcs."""
        supply = self.arcs.supply
        np.subtract.at(supply, self.arcs.tail, self.low)
        np.add.at(supply, self.arcs.head, self.low)
        return supply

    def _arcs_with(self, part: slice, pieces: LoadPieces) -> CostedArcs:
        """Return the arcs without those of a part, followed by the pieces of this part."""
        outside = np.ones(len(self.high), dtype=np.bool_)
        outside[part] = False
        others = int(outside.sum())
        return CostedArcs(
            np.concatenate([self.arcs.tail[outside], self.arcs.tail[part][pieces.unit]]),
            np.concatenate([self.arcs.head[outside], self.arcs.head[part][pieces.unit]]),
            np.concatenate([(self.high - self.low)[outside], pieces.capacity]),
            np.concatenate([np.zeros(others, dtype=np.int64), pieces.cost]),
        )

    def _keep_optimal(self, arcs: Ints, reduced: Ints) -> None:
        """Restrict arcs to the flows that are optimal for their reduced costs."""
        low, high = self.low[arcs], self.high[arcs]
        self.low[arcs] = np.where(reduced < 0, high, low)
        self.high[arcs] = np.where(reduced > 0, low, high)
