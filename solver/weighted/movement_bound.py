"""Lower bound on movement under maximum loads, by Lagrangian prices of partitions.

Column generation finds prices by weight. Then subgradient steps change the price of each
partition (Held and Karp, 1971). The integer knapsacks of
`kassay.solver.weighted.knapsack_subproblems` prove the bound.
"""

from collections.abc import Callable, Sequence

import numpy as np

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Ints, Problem
from kassay.solver.weighted.column_generation import ColumnGeneration, MovementPrices
from kassay.solver.weighted.knapsack_subproblems import SCALE, MemberExchange

_COARSE = 400
_FINE = 2000
_MAX_CELLS = 200_000_000
_ROUNDS = 60


def exchange_bound(
    problem: Problem,
    max_loads: Sequence[int],
    costs: Ints,
    *,
    incumbent: int,
    may_continue: Callable[[], bool],
    rounds: int = _ROUNDS,
) -> int:
    """Bound the cost of moves from below. Stop when the bound reaches the incumbent's cost."""
    cells = problem.partition_count * problem.member_count
    if not cells or cells * _COARSE > _MAX_CELLS or int(costs.max(initial=0)) > 2**20:
        return 0
    enough = (incumbent - 1) * SCALE
    search = ColumnGeneration(MemberExchange(problem, max_loads, costs, _COARSE))
    search.raise_bound(enough, may_continue)
    coarse = search.best
    if coarse.bound <= enough and may_continue():
        grid = max(_COARSE, min(_FINE, _MAX_CELLS // cells))
        search.refine(MemberExchange(problem, max_loads, costs, grid))
        search.raise_bound(enough, may_continue)
    start = max(search.best, coarse, key=lambda prices: prices.bound)
    best = _subgradient(search.exchange, start, incumbent, may_continue, rounds)
    return -(-best // SCALE)


def _subgradient(
    exchange: MemberExchange,
    start: MovementPrices,
    incumbent: int,
    may_continue: Callable[[], bool],
    rounds: int,
) -> int:
    """Change prices by subgradient steps, and return the best bound, times `SCALE`."""
    unowned = (exchange.problem.owner == NO_OWNER).astype(np.int64)
    best, best_price = start.bound, start.prices / SCALE
    price = best_price
    momentum, length, failures = np.zeros(exchange.problem.partition_count), 1.0, 0
    for _ in range(rounds):
        if best > (incumbent - 1) * SCALE or not may_continue():
            break
        knapsacks = exchange.solve(np.rint(price * SCALE).astype(np.int64))
        if knapsacks.bound > best:
            best, best_price, failures = knapsacks.bound, price, 0
        else:
            failures += 1
        pattern = exchange.patterns(knapsacks, knapsacks.net.argmin(axis=1))
        surplus = unowned - pattern.sum(axis=0, dtype=np.int64)
        if not surplus.any():
            break
        if failures >= 8:
            price, length, failures = best_price, length * 0.7, 0
            momentum = np.zeros(exchange.problem.partition_count)
        momentum = surplus + 0.3 * momentum
        step = length * max(incumbent - knapsacks.bound / SCALE, 0.1) / float(momentum @ momentum)
        price = np.maximum(price + step * momentum, 0)
    return best
