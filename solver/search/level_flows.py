"""Minimise or bound the levels one after the other by network flows, for equal weights.

The levels are separable convex costs in the network of
`kassay.solver.network.level_cost_network`. After each level, only the flows that are optimal for
this level remain, by complementary slackness.

A constraint on single members or partitions changes the network. A limit on moves, and a tolerance
of the sum of squares, are found on the convex hull of both values. All other constraints are
ignored here: the bounds remain valid, and the caller checks the placements.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile

import numpy as np

from kassay.reference.model.errors import InternalError
from kassay.reference.model.load_metrics import Measure
from kassay.solver import objective
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.counting_bounds import level_bound, load_window
from kassay.solver.evaluation import level_value, load_units, violated
from kassay.solver.network import optimal_flow
from kassay.solver.network.level_cost_network import (
    LevelNetwork,
    WeightedLevels,
    level_network,
    placement_prices,
)
from kassay.solver.network.optimal_flow import ConvexHull, fewest_moves_point
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.problem import Ints, Placement, Problem
from kassay.solver.search_interface import KnownLevels, LexicographicResult, ProvenBound, Request
from kassay.solver.solution import UsedMethod


def solve_levels_by_flow(
    problem: Problem,
    levels: Sequence[objective.Level],
    constraints: Sequence[Constraint],
    may_start: Callable[[], bool] = lambda: True,
) -> KnownLevels:
    """Find placements and bounds for the first levels of a problem with equal weights.

    ``may_start`` counts the work of a flow, and returns whether it may start.
    """
    if not may_start():
        return KnownLevels()
    network = build_network(problem, constraints)
    if problem.copies is None and is_infeasible(problem, constraints):
        return KnownLevels(conflict=find_conflict_by_flow(problem, constraints, may_start))
    search = _LevelFlows(
        problem, levels, constraints, level_network(problem, levels, network), may_start
    )
    search.run()
    return search.found


@dataclass
class _LevelFlows:
    """Search that minimises the levels one after the other by network flows."""

    problem: Problem
    levels: Sequence[objective.Level]
    constraints: Sequence[Constraint]
    arcs: LevelNetwork
    may_start: Callable[[], bool]
    found: KnownLevels = field(default_factory=KnownLevels)
    limits: optimal_flow.ConvexFlow = field(init=False)
    flow: Ints = field(init=False)
    evened: Sequence[objective.Level] = ()
    """First levels that one flow minimises together, with the squared loads for any imbalance."""

    def __post_init__(self) -> None:
        self.limits = optimal_flow.ConvexFlow(self.arcs)

    @property
    def _network(self) -> SubscriptionNetwork:
        return self.arcs.network

    @property
    def _counts(self) -> Ints:
        return self.arcs.counts(self.flow)

    @property
    def _has_even_loads(self) -> bool:
        """Return whether each assignment with minimum sum of squares minimises all measures."""
        has_hosts = any(isinstance(level, objective.HostImbalance) for level in self.levels)
        is_plain = self.problem.copies is None and self.problem.group.has_equal_speeds
        return is_plain and not has_hosts

    def run(self) -> None:
        if self.problem.copies is None:
            self.flow = self.arcs.flow_of(self._balanced)
        else:
            flow = self.limits.cheapest((), np.zeros_like(self.arcs.high))
            if flow is None:
                return
            self.flow = flow
        self.found.placements.append(self._network.place(self._counts))
        self.found.is_complete = all(map(self._solve, range(len(self.levels))))
        if self.problem.copies is None:
            counts = optimal_flow.spread_received_partitions(self._network, self._counts)
            self.found.placements.append(self._network.place(counts))
            self._add_prices()

    def _add_prices(self) -> None:
        bounded = next(
            (index for index in range(len(self.levels)) if index not in self.found.bounds),
            len(self.levels),
        )
        valid = self._valid_placements()
        for count in range(bounded if valid else 0, 0, -1):
            levels = self.levels[:count]
            values = [[level_value(self.problem, level, one) for level in levels] for one in valid]
            best = min(range(len(valid)), key=values.__getitem__)
            prices = placement_prices(self.problem, levels, valid[best])
            if prices is not None:
                self.found.node_prices = prices
                for index, value in enumerate(values[best]):
                    self.found.bounds[index] = ProvenBound(value, Origin.NODE_PRICES)
                return

    def _valid_placements(self) -> list[Placement]:
        return [
            placement
            for placement in self.found.placements
            if not any(violated(self.problem, self.constraints, placement))
        ]

    def _solve(self, index: int) -> bool:
        """Minimise one level; return whether flows remain exact for later levels."""
        level = self.levels[index]
        if index == 0 and isinstance(level, objective.TopicSpread) and self._may_spread_evenly:
            limit = self._spread_evenly()
        else:
            limit = self._minimise(level, is_first=index == 0)
        if limit is None:
            return False
        placement = self._network.place(self._counts)
        value = level_value(self.problem, level, placement)
        self.found.placements.append(placement)
        self.found.bounds[index] = ProvenBound(value, Origin.FLOW)
        is_valid = not any(violated(self.problem, self.constraints, placement))
        if is_valid and limit == level.tolerance.limit(value):
            return True
        if index == 0 and self._has_even_loads and len(self.levels) > 1 and self.may_start():
            self._bound_first_levels(level)
        return False

    def _minimise(self, level: objective.Level, *, is_first: bool) -> int | None:
        """Minimise one level, and restrict later flows to a limit on this level.

        Return the limit. It may be below the limit of the tolerance, or below the minimum, if the
        kept flows are only some of those within the tolerance. Return None if flows cannot minimise
        the level.
        """
        costs = level
        is_exact = True
        if isinstance(level, objective.Imbalance | objective.HostImbalance):
            if level.measure is Measure.MAKESPAN:
                return self._minimise_makespan(level, is_first=is_first)
            is_exact = level.measure in (Measure.SUM_OF_SQUARES, Measure.LEXIMAX)
            if level.measure is not Measure.SUM_OF_SQUARES:
                if not self._has_even_loads:
                    return None
                costs = objective.Imbalance()
        elif not _is_cost_of_arcs(level):
            return None
        if not self.arcs.fits(costs):
            return None
        is_minimal = is_first and isinstance(costs, objective.Imbalance) and self._has_even_loads
        if not is_minimal and level not in self._minimised:
            if not self.may_start():
                return None
            self._take_cheapest(self._with_few_moves(costs))
        if len(self._minimised) < len(self.levels):
            self.limits.keep_optimal(costs, self.flow)
        return self._value(level) - int(not is_exact)

    @property
    def _may_spread_evenly(self) -> bool:
        is_free = not self.constraints and self.problem.copies is None
        return is_free and self._has_even_loads and self._network.capacity is None

    def _spread_evenly(self) -> int | None:
        """Spread each topic evenly, and minimise the next levels by one flow.

        Even shares need no search. Within them, the minimum sum of squared loads minimises all
        measures of the loads, as without limits: the loads are those of an integral polymatroid.
        """
        if not self.may_start():
            return None
        sums, later = self.arcs.sums, list[objective.Level]()
        self.limits.low[sums], self.limits.high[sums] = self.arcs.even_shares()
        for level in self.levels[1:]:
            costs = objective.Imbalance() if isinstance(level, objective.Imbalance) else level
            if not objective.are_arc_costs(costs) or not self.arcs.fits(*later, costs):
                break
            later.append(costs)
        self.evened = self.levels[: len(later) + 1]
        self._take_cheapest(self.arcs.weighted(later))
        return self._value(self.levels[0])

    def _take_cheapest(self, costs: WeightedLevels) -> None:
        flow = self.limits.cheapest(costs, self.flow)
        if flow is None:
            raise InternalError(
                "internal error: no flow within limits; report a bug with this group document"
            )
        self.flow = flow

    @property
    def _minimised(self) -> Sequence[objective.Level]:
        return [*takewhile(objective.are_arc_costs, self.evened)]

    def _with_few_moves(self, level: objective.Level) -> WeightedLevels:
        """Return costs that combine a level with moves as a secondary objective."""
        levels = level, objective.Movement()
        if isinstance(level, objective.Movement) or not self.arcs.fits(*levels):
            return [(level, 1)]
        return self.arcs.weighted(levels)

    def _value(self, level: objective.Level) -> int:
        return level_value(self.problem, level, self._network.place(self._counts))

    def _minimise_makespan(
        self, level: objective.Imbalance | objective.HostImbalance, *, is_first: bool
    ) -> int | None:
        """Find the minimum makespan by bisection over the possible loads."""
        part, units = self.arcs.part_of(level), load_units(self.problem, level)
        weight = int(self.problem.weight[0])
        factors = [factor * weight for factor in units.factors]
        most = self._value(level)
        least = min(most, level_bound(self.problem, level))
        if (is_first or level in self.evened) and self._has_even_loads:
            least = most
        loads = {
            factor * load
            for factor in dict.fromkeys(factors)
            for load in range(-(-least // factor), most // factor + 1)
        }
        values = sorted({most} | loads)
        first, last = 0, len(values) - 1
        while first < last:
            middle = (first + last) // 2
            if not self.may_start():
                return None
            if self._limit_loads(part, factors, values[middle]):
                last = middle
            else:
                first = middle + 1
        limit = level.tolerance.limit(values[last])
        high = self.limits.high
        high[part] = np.minimum(high[part], self._max_counts(factors, limit))
        return limit

    def _max_counts(self, factors: Iterable[int], limit: int) -> Ints:
        top = int(self._network.supply.sum())
        return np.array([min(top, limit // factor) for factor in factors], dtype=np.int64)

    def _limit_loads(self, part: slice, factors: Sequence[int], limit: int) -> bool:
        """Find a flow within a maximum relative load, and return whether the flow exists."""
        within = optimal_flow.ConvexFlow(self.arcs)
        within.low, within.high = self.limits.low, self.limits.high.copy()
        within.high[part] = np.minimum(within.high[part], self._max_counts(factors, limit))
        if (within.high < within.low).any():
            return False
        flow = within.cheapest((), self.flow)
        if flow is not None:
            self.flow = flow
        return flow is not None

    @cached_property
    def _balanced(self) -> Ints:
        return optimal_flow.optimal_counts(self._network)

    @cached_property
    def _hull(self) -> ConvexHull:
        return ConvexHull.of(self._network, self._balanced)

    def _bound_first_levels(self, first: objective.Level) -> None:
        """Bound the first two levels within the limit on moves and the tolerance."""
        match first, self.levels[1]:
            case objective.Imbalance(), second:
                if self._network.min_movement(self._balanced) > self._max_moves:
                    self._imbalance_within_moves(first)
                limit = self._limit(first)
                if limit is not None and isinstance(second, objective.Movement):
                    self._moves_within(limit, first, second)
            case objective.Movement(cost=cost), objective.Imbalance(measure=Measure.SUM_OF_SQUARES):
                limit = self._limit(first)
                if limit is not None:
                    moves = limit if cost is objective.MovementCost.COUNT else limit // self._weight
                    self._squares_within_moves(min(moves, self._max_moves), index=1)
            case _:
                pass

    @property
    def _weight(self) -> int:
        return int(self.problem.weight[0])

    @property
    def _max_moves(self) -> int:
        limits = [rule.limit for rule in self.constraints if isinstance(rule, MaxMoves)]
        return min(limits, default=self.problem.partition_count)

    def _limit(self, level: objective.Level) -> int | None:
        """Return the limit of the first level for later levels; None without a placement."""
        values = [level_value(self.problem, level, one) for one in self._valid_placements()]
        return level.tolerance.limit(min(values)) if values else None

    def _squares_within_moves(self, moves: int, *, index: int) -> None:
        found = self._hull.within_moves(moves, self.may_start)
        if found is not None:
            self.found.placements.append(self._network.place(found.point.counts))
            self.found.bounds[index] = ProvenBound(found.bound * self._weight**2, Origin.FLOW)

    def _imbalance_within_moves(self, first: objective.Imbalance) -> None:
        bound = self.found.bounds[0]
        self._squares_within_moves(self._max_moves, index=0)
        if first.measure is not Measure.SUM_OF_SQUARES:
            self.found.bounds[0] = bound
        if first.measure is Measure.MAKESPAN:
            self._makespan_within_moves()

    def _makespan_within_moves(self) -> None:
        network = self._network
        high, low = (int(network.loads(end.counts).max(initial=0)) for end in self._hull.ends)
        while low < high and self.may_start():
            middle = (low + high) // 2
            point = fewest_moves_point(_with_max_load(network, middle), self._balanced)
            if point.moves <= self._max_moves:
                high = middle
                self.found.placements.append(network.place(point.counts))
            else:
                low = middle + 1
        self.found.bounds[0] = ProvenBound(low * self._weight, Origin.FLOW)

    def _moves_within(
        self, limit: int, first: objective.Imbalance, second: objective.Movement
    ) -> None:
        if not isinstance(second.cost, objective.MovementCost) or first.measure is Measure.LEXIMAX:
            return
        if first.measure is Measure.SUM_OF_SQUARES:
            found = self._hull.within_squares(limit // self._weight**2, self.may_start)
            if found is None:
                return
            point, moves = found
        else:
            high = limit
            if first.measure is not Measure.MAKESPAN:
                members, total = self.problem.member_count, self.problem.total
                high = load_window(first.measure, total, members, limit)[1]
            within = _with_max_load(self._network, high // self._weight)
            point = fewest_moves_point(within, self._balanced)
            moves = point.moves
        self.found.placements.append(self._network.place(point.counts))
        unit = 1 if second.cost is objective.MovementCost.COUNT else self._weight
        self.found.bounds[1] = ProvenBound(moves * unit, Origin.FLOW)


def _is_cost_of_arcs(level: objective.Level) -> bool:
    if isinstance(level, objective.Movement):
        return isinstance(level.cost, objective.MovementCost)
    return isinstance(level, objective.TopicSpread | objective.FlowLevel)


def _with_max_load(network: SubscriptionNetwork, high: int) -> SubscriptionNetwork:
    most = min(high, network.problem.partition_count)
    capacity = np.full(network.members, most, dtype=np.int64)
    if network.capacity is not None:
        capacity = np.minimum(capacity, network.capacity)
    return replace(network, capacity=capacity)


def is_infeasible(problem: Problem, constraints: Sequence[Constraint]) -> bool:
    """Return whether network flows prove that no assignment meets the constraints."""
    network = build_network(problem, constraints)
    if not optimal_flow.is_feasible(network):
        return True
    limits = [rule.limit for rule in constraints if isinstance(rule, MaxMoves)]
    if not limits:
        return False
    return fewest_moves_point(network, network.owned).moves > min(limits)


def find_conflict_by_flow(
    problem: Problem,
    constraints: Sequence[Constraint],
    may_continue: Callable[[], bool] = lambda: True,
) -> tuple[Constraint, ...]:
    """Reduce infeasible constraints to a small infeasible subset, by network flows.

    The result is minimal unless ``may_continue`` ends the search.
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


def solve_by_arc_costs(
    request: Request, may_start: Callable[[], bool]
) -> LexicographicResult | None:
    """Minimise all levels by flows with convex arc costs.

    Return None if flows cannot minimise a level, or if the optimum violates a constraint. A group
    with copies has no other method: levels without a result have the bound 0.
    """
    problem, levels = request.problem, request.levels
    flows = solve_levels_by_flow(problem, levels, (), may_start)
    if not flows.placements or not (flows.is_complete or problem.group.has_copies):
        if problem.group.has_copies:
            return LexicographicResult(None, method=UsedMethod.FLOW)
        return None
    values = {
        tuple(level_value(problem, level, placement) for level in levels): placement
        for placement in reversed(flows.placements)
    }
    best = min(values)
    if any(violated(problem, request.rules, values[best])):
        return None
    prices = None
    if flows.is_complete:
        priced = [one.origin is Origin.NODE_PRICES for one in flows.bounds.values()].count(True)
        prices = flows.node_prices
        if priced < len(levels):
            prices = placement_prices(problem, levels, values[best])
        if prices is None:
            raise InternalError(
                "internal error: a flow is not optimal; report a bug with this group document"
            )
    claims = [
        LevelClaim(level, value, value, Origin.NODE_PRICES)
        if prices is not None
        else LevelClaim(level, value, *flows.bounds.get(index, (0, Origin.COUNTING)))
        for index, (level, value) in enumerate(zip(levels, best, strict=True))
    ]
    return LexicographicResult(
        values[best], tuple(claims), node_prices=prices or (), method=UsedMethod.FLOW
    )
