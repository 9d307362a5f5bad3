"""Compute a lower bound on moves within maximum loads by column generation; derive placements.

Column generation finds prices by weight, then prices of single partitions. The integer knapsacks
of `kassay.solver.weighted.bounds.knapsack_subproblems` prove the bound. An integer program over the
patterns that column generation found gives placements (restricted master heuristic: Joncour et
al., "Column generation based primal heuristics", 2010).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.bounds.counting import owned_partitions
from kassay.solver.evaluation import moves_cost
from kassay.solver.limits import SearchBudget, limited_steps
from kassay.solver.problem import Ints, Placement, Problem
from kassay.solver.weighted.bounds.knapsack_subproblems import (
    SCALE,
    ExchangePattern,
    MemberExchange,
)
from kassay.solver.weighted.bounds.movement_prices import ColumnGeneration

_GRID = 2000
_MAX_CELLS = 200_000_000
_MIN_GRID = 400
_MAX_GIVEN_CELLS = 50_000_000  # entries of the knapsacks of given partitions
_MAX_PRICED = 4_000  # partitions with single prices; the linear program cannot be interrupted
_WORK_PER_STEP, _WORK_PER_CELL = 5e-3, 6e-9  # of the linear program and of the knapsacks
_ROUNDS = 60  # of column generation between two integer programs
_NODES, _WORK_PER_PATTERN = 200, 5e-4  # of an integer program


@dataclass(frozen=True, slots=True)
class PricedMoves:
    """Lower bound on the cost of moves, the prices that prove it, and the best placement."""

    bound: int
    placement: Placement
    prices: Ints  # per partition, times `SCALE`
    grid: int  # units in the greatest maximum load


@dataclass(frozen=True, slots=True)
class PricedExchanges:
    """Prices of partitions, and the lower bound on the cost of moves that they prove."""

    exchange: MemberExchange
    prices: Ints  # times `SCALE`
    bound: int

    def possible_moves(self, cost: int) -> NDArray[np.bool_]:
        """Return, per partition and member, whether the move may occur within a total cost."""
        most = cost * SCALE
        return self.exchange.bounds_of_moves(self.prices, most) <= most


def price_by_weight(
    problem: Problem,
    max_loads: Sequence[int],
    costs: Ints,
    *,
    incumbent: int,
    may_continue: Callable[[], bool],
) -> PricedExchanges | None:
    """Find prices per weight, which need less time than prices per partition.

    Stop when the bound reaches the cost of the incumbent. Return None if the knapsacks are too
    large.
    """
    search = _column_generation(problem, max_loads, costs)
    if search is None:
        return None
    search.raise_bound((incumbent - 1) * SCALE, may_continue)
    best = search.best
    return PricedExchanges(search.exchange, best.prices, -(-best.bound // SCALE))


def price_and_branch(
    problem: Problem,
    max_loads: Sequence[int],
    costs: Ints,
    *,
    start: Placement,
    may_continue: Callable[[], bool],
    budget: SearchBudget,
) -> PricedMoves:
    """Find a lower bound on the cost of moves, and a better placement, by column generation.

    Exchange patterns are combined to better placements. Stop when the cost of the placement is
    the bound. The budget counts the integer programs.
    """
    search = _column_generation(problem, max_loads, costs)
    if search is None:
        return PricedMoves(0, start, np.zeros(problem.partition_count, dtype=np.int64), 1)
    exchange = search.exchange
    best, cost = start, moves_cost(problem, costs, start)
    search.add(exchange.pattern_of(best, member) for member in range(problem.member_count))
    search.raise_bound((cost - 1) * SCALE, may_continue)
    has_converged = problem.partition_count > _MAX_PRICED
    search.price_partitions()
    while not has_converged and search.best.bound <= (cost - 1) * SCALE and may_continue():
        has_converged = search.raise_bound((cost - 1) * SCALE, limited_steps(_ROUNDS, may_continue))
        found = select_patterns(exchange, search.patterns_below(cost - 1), best, budget)
        if found is not None:
            best, cost = found, moves_cost(problem, costs, found)
            search.add(exchange.pattern_of(best, member) for member in range(problem.member_count))
    bound = -(-search.best.bound // SCALE)
    return PricedMoves(bound, best, search.best.prices, exchange.grid)


def price_step(problem: Problem) -> float:
    """Return the work of one step of the column generation, which fills a knapsack per member."""
    cells = problem.partition_count * problem.member_count
    return _WORK_PER_STEP + _WORK_PER_CELL * cells * min(_GRID, _MAX_CELLS // max(cells, 1))


def _column_generation(
    problem: Problem, max_loads: Sequence[int], costs: Ints
) -> ColumnGeneration | None:
    """Create the column generation, or return None if the knapsacks are too large."""
    partitions, cells = problem.partition_count, problem.partition_count * problem.member_count
    if not cells or cells * _MIN_GRID > _MAX_CELLS or int(costs.max(initial=0)) > 2**20:
        return None
    grid = max(_MIN_GRID, min(_GRID, _MAX_CELLS // cells))
    # The knapsacks of given partitions are wider by the greatest overload of a member.
    most, overload = max(max_loads), _greatest_overload(problem, max_loads)
    grid = min(grid, _MAX_GIVEN_CELLS * most // (partitions * max(most + overload, 1)))
    if not most or grid < min(_MIN_GRID, most):
        return None
    return ColumnGeneration(MemberExchange(problem, max_loads, costs, grid))


def _greatest_overload(problem: Problem, max_loads: Sequence[int]) -> int:
    loads: list[int] = [sum(problem.weight[own].tolist()) for own in owned_partitions(problem)]
    return max(0, *(load - limit for load, limit in zip(loads, max_loads, strict=True)))


def select_patterns(
    exchange: MemberExchange,
    patterns: Sequence[ExchangePattern],
    incumbent: Placement,
    budget: SearchBudget,
) -> Placement | None:
    """Combine exchange patterns to a placement that is cheaper than the incumbent.

    Return None if no such placement is found.
    """
    problem, costs = exchange.problem, exchange.costs
    patterns = [pattern for pattern in patterns if exchange.is_feasible(pattern)]
    if {pattern.member for pattern in patterns} != set(range(problem.member_count)):
        return None
    count = len(patterns)
    unowned = problem.owner == NO_OWNER
    fees = exchange.fees(patterns)
    once = exchange.choices(patterns, count)
    most = moves_cost(problem, costs, incumbent) - 1
    result = milp(
        fees,
        integrality=np.ones(count),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(exchange.matrix(patterns).T, unowned.astype(np.float64), np.inf),
            LinearConstraint(once, 1, 1),
            LinearConstraint(fees[None, :], 0, most),
        ],
        options={"node_limit": _NODES, "time_limit": budget.seconds},
    )
    budget.spend(_WORK_PER_PATTERN * count)
    if result.x is None:
        return None
    return _placement(exchange, [patterns[at] for at in np.flatnonzero(result.x > 0.5).tolist()])


def _placement(exchange: MemberExchange, chosen: Sequence[ExchangePattern]) -> Placement | None:
    """Build the placement of the chosen patterns; return None if a partition gets no member.

    A partition moves if its owner gives it away, to one of the members that receive it.
    """
    owner = exchange.problem.owner
    placement = owner.copy()
    leaves = owner == NO_OWNER
    for pattern in chosen:
        leaves[list(pattern.given)] = True
    for pattern in chosen:
        received = np.array(pattern.received, dtype=np.int64)
        placement[received[leaves[received]]] = pattern.member
    lost = leaves & (placement == owner)
    return None if lost.any() else placement
