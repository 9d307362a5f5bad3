"""A bound on movement under a ceiling of load, from prices for handing partitions over.

Prices by weight come first: see `box_step_pricing`. Then the price of each row is
raised where more is shed than taken (Held and Karp's subgradient method, 1971). What the
prices prove is told by the knapsacks of `kassay.solver.weighted.exchange_knapsack`, in integers.
"""

from collections.abc import Callable, Sequence

import numpy as np

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Problem
from kassay.solver.weighted.box_step_pricing import BoxPrices, ColumnGeneration
from kassay.solver.weighted.exchange_knapsack import SCALE, MemberExchange
from kassay.solver.weighted.subset_enumeration import Ints

_COARSE = 400
_FINE = 2000
_MOST_CELLS = 200_000_000
_ROUNDS = 60


def exchange_bound(
    problem: Problem,
    ceilings: Sequence[int],
    costs: Ints,
    *,
    incumbent: int,
    go_on: Callable[[], bool],
    rounds: int = _ROUNDS,
) -> int:
    """Bound the cost of moves from below, as well as rounds or time allow.

    Parameters
    ----------
    problem
        What is moved.
    ceilings
        The most load of each member, rows it takes included.
    costs
        What moving each row costs.
    incumbent
        Cost of the best plan known; a bound that meets it is enough.
    go_on
        Whether there is time for another round.
    rounds
        The most rounds of raising the prices of single rows.
    """
    cells = problem.size * problem.width
    if not cells or cells * _COARSE > _MOST_CELLS or int(costs.max(initial=0)) > 2**20:
        return 0
    enough = (incumbent - 1) * SCALE
    search = ColumnGeneration(MemberExchange(problem, ceilings, costs, _COARSE))
    search.climb(enough, go_on)
    coarse = search.best
    if coarse.bound <= enough and go_on():
        grid = max(_COARSE, min(_FINE, _MOST_CELLS // cells))
        search.refine(MemberExchange(problem, ceilings, costs, grid))
        search.climb(enough, go_on)
    start = max(search.best, coarse, key=lambda prices: prices.bound)
    best = _raise(search.exchange, start, incumbent, go_on, rounds)
    return -(-best // SCALE)


def _raise(
    exchange: MemberExchange,
    start: BoxPrices,
    incumbent: int,
    go_on: Callable[[], bool],
    rounds: int,
) -> int:
    """Raise prices of single rows by subgradients; return the best bound, times a scale."""
    orphans = (exchange.problem.owner == NO_OWNER).astype(np.int64)
    best, best_price = start.bound, start.rows / SCALE
    price = best_price
    momentum, length, failures = np.zeros(exchange.problem.size), 1.0, 0
    for _ in range(rounds):
        if best > (incumbent - 1) * SCALE or not go_on():
            break
        solved = exchange.solve(np.rint(price * SCALE).astype(np.int64))
        if solved.bound > best:
            best, best_price, failures = solved.bound, price, 0
        else:
            failures += 1
        pattern = exchange.patterns(solved, solved.net.argmin(axis=1))
        surplus = orphans - pattern.sum(axis=0, dtype=np.int64)
        if not surplus.any():
            break
        if failures >= 8:
            price, length, failures = best_price, length * 0.7, 0
            momentum = np.zeros(exchange.problem.size)
        momentum = surplus + 0.3 * momentum
        step = length * max(incumbent - solved.bound / SCALE, 0.1) / float(momentum @ momentum)
        price = np.maximum(price + step * momentum, 0)
    return best
