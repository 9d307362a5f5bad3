"""A bound on movement under a ceiling of load, from prices for handing partitions over.

Who sheds a row pays its price; who takes it earns the price less the cost of the move.
For any prices, what all members pay at least, each for itself, bounds the cost of all
moves: prices of rows that change hands cancel out. Each member solves a knapsack over
what it may shed and take, in whole partitions, which is what makes the bound stronger
than a linear relaxation. Prices are raised where more is shed than taken (Held and Karp's
subgradient method, 1971) and are integers, so the bound is exact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reference.ownership import NOBODY
from solver.bounds import owned_rows
from solver.problem import Problem
from solver.weighted.columns import Ints

_SCALE = 2**16
# Units of weight in a ceiling: more round less, but cost rounds, which matter more.
_GRID = 400
_NEVER = 2**55
_MOST_CELLS = 200_000_000
_MOST_ROUNDS = 1000


@dataclass
class Exchange:
    """The knapsacks of all members, solved together on a grid of weights.

    Rounding favours the members: shed weights are rounded up, taken ones down.

    Parameters
    ----------
    problem
        What is moved; its weights fit 64 bits.
    ceilings
        The most load of each member.
    costs
        What moving each row costs.
    """

    problem: Problem
    ceilings: Sequence[int]
    costs: Ints
    room: Ints = field(init=False)
    shed: Ints = field(init=False)
    take: Ints = field(init=False)
    width: int = field(init=False)
    fee: Ints = field(init=False)
    may: NDArray[np.bool_] = field(init=False)
    own: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Lay out weights, rooms and who owns what, on the grid."""
        problem = self.problem
        grain = max(1, max(self.ceilings, default=0) // _GRID)
        weight = problem.weight.astype(np.int64)
        lists = owned_rows(problem)
        loads = np.array([int(weight[rows].sum()) for rows in lists], dtype=np.int64)
        self.room = (np.array(self.ceilings, dtype=np.int64) - loads) // grain
        self.shed, self.take = -(-weight // grain), weight // grain
        self.width = max(self.ceilings, default=0) // grain + 2 - min(int(self.room.min()), 0)
        self.fee = np.where(problem.owner == NOBODY, 0, self.costs) * _SCALE
        table = np.zeros((len(problem.sets), problem.width), dtype=np.bool_)
        for index, consumers in enumerate(problem.sets):
            table[index, consumers] = True
        self.may = table[problem.set_of_row]
        owned = np.flatnonzero(problem.owner != NOBODY)
        self.may[owned, problem.owner[owned]] = False
        self.own = np.full((max(map(len, lists), default=0), problem.width), NOBODY)
        for position, rows in enumerate(lists):
            self.own[: len(rows), position] = rows

    def value(self, price: Ints) -> tuple[int, Ints]:
        """Return the bound that prices give, times a scale, and where to move them."""
        members = np.arange(self.problem.width)
        paid, shedding = self._shed_tables(price)
        earned, taking, taken = self._take_tables(price)
        space = self.room[:, None] + np.arange(self.width)
        gain = np.take_along_axis(earned, space.clip(0, self.width - 1), axis=1)
        net = np.where(space >= 0, paid - gain, _NEVER)
        amount = net.argmin(axis=1)
        orphans = self.problem.owner == NOBODY
        bound = int(net[members, amount].sum()) + int(price[orphans].sum())
        surplus = orphans.astype(np.int64)
        left = (self.room + amount).clip(0, self.width - 1)
        for at in range(len(taken) - 1, -1, -1):
            took = taking[at, members, left]
            surplus[taken[at]] -= int(took.sum())
            left = left - np.where(took, self.take[taken[at]], 0)
        for at in range(len(self.own) - 1, -1, -1):
            rows = self.own[at]
            gave = shedding[at, members, amount]
            surplus[rows[gave]] += 1
            amount = np.maximum(amount - np.where(gave, self.shed[rows], 0), 0)
        return bound, surplus

    def _shed_tables(self, price: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Tabulate what it costs each member at least to shed each amount, and how."""
        amounts = np.arange(self.width)
        paid = np.full((self.problem.width, self.width), _NEVER, dtype=np.int64)
        paid[:, 0] = 0
        chosen = np.zeros((len(self.own), *paid.shape), dtype=np.bool_)
        for at, rows in enumerate(self.own):
            exists = (rows != NOBODY)[:, None]
            before = np.maximum(amounts - self.shed[rows][:, None], 0)
            cost = np.take_along_axis(paid, before, axis=1) + price[rows][:, None]
            chosen[at] = exists & (cost < paid)
            paid = np.where(chosen[at], cost, paid)
        return paid, chosen

    def _take_tables(self, price: Ints) -> tuple[Ints, NDArray[np.bool_], list[int]]:
        """Tabulate what each member earns at most by taking into each space, and how."""
        earned = np.zeros((self.problem.width, self.width), dtype=np.int64)
        worth = np.flatnonzero((price > self.fee) & (self.take < self.width)).tolist()
        chosen = np.zeros((len(worth), *earned.shape), dtype=np.bool_)
        for at, row in enumerate(worth):
            size = int(self.take[row])
            with_it = earned[:, : self.width - size] + (price[row] - self.fee[row])
            better = (with_it > earned[:, size:]) & self.may[row][:, None]
            chosen[at, :, size:] = better
            earned[:, size:] = np.where(better, with_it, earned[:, size:])
        return earned, chosen, worth


def exchange_bound(
    problem: Problem,
    ceilings: Sequence[int],
    costs: Ints,
    *,
    incumbent: int,
    go_on: Callable[[], bool],
    rounds: int = _MOST_ROUNDS,
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
        Cost of the best plan known; it sets the length of steps.
    go_on
        Whether there is time for another round.
    rounds
        The most rounds.
    """
    if problem.size * problem.width * _GRID > _MOST_CELLS or int(costs.max(initial=0)) > 2**20:
        return 0
    exchange = Exchange(problem, ceilings, costs)
    weight = problem.weight / max(*ceilings, 1)
    price = np.where(problem.owner == NOBODY, 0.0, costs * (1 + 0.3 * (weight - 0.1)))
    best, best_price = 0, price
    momentum, length, failures = np.zeros(problem.size), 1.0, 0
    for _ in range(rounds):
        if not go_on() or best > (incumbent - 1) * _SCALE:
            break
        value, surplus = exchange.value(np.rint(price * _SCALE).astype(np.int64))
        if value > best:
            best, best_price, failures = value, price, 0
        else:
            failures += 1
        if not surplus.any():
            break
        if failures >= 8:
            price, length, failures = best_price, length * 0.7, 0
            momentum = np.zeros(problem.size)
        momentum = surplus + 0.3 * momentum
        step = length * max(incumbent - value / _SCALE, 0.1) / float(momentum @ momentum)
        price = np.maximum(price + step * momentum, 0)
    return -(-best // _SCALE)
