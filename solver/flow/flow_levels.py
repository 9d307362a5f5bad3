"""Solve or bound the first levels by network flows, for equal weights and any constraints.

A constraint on single members or partitions changes the network. A limit on moves, and a
tolerance of imbalance, are found on the convex hull of both values. All other constraints are
ignored here: the bounds remain valid, and the caller checks the placements.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.level_bounds import load_window
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.evaluation import level_value, violated
from kassay.solver.flow.hull_search import BoundedPoint, HullSearch
from kassay.solver.flow.optimal_flow import optimal_counts, solve_flow
from kassay.solver.flow.optimal_loads_by_cuts import is_feasible
from kassay.solver.flow.priced_flow import LoadWindows, fewest_moves_point
from kassay.solver.incumbent_pool import FlowLevels
from kassay.solver.limits import FlowClock
from kassay.solver.objective import Imbalance, Level, Movement, MovementCost
from kassay.solver.problem import Ints, Placement, Problem
from kassay.solver.subscription_network import SubscriptionNetwork, build_network, prices_prove

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
