"""Knapsacks of what each member sheds and takes, at prices for handing partitions over.

Who sheds a row pays its price; who takes it earns the price less the cost of the move.
For any prices, what all members pay at least, each for itself, bounds the cost of all
moves: prices of rows that change hands cancel out. Each member solves a knapsack over
what it may shed and take, in whole partitions, which is what makes the bound stronger
than a linear relaxation. Prices are integers, so the bound is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds import owned_rows
from kassay.solver.problem import Problem
from kassay.solver.weighted.subset_enumeration import Ints

# Prices and bounds are integers, in this fraction of a cost.
SCALE = 2**16
NEVER = 2**55

Patterns = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Knapsacks:
    """What shedding each amount pays each member, the best taking subtracted.

    Parameters
    ----------
    net
        Least payment of each member for each amount shed; `NEVER` where it cannot be.
    bound
        What all of this proves of the cost of all moves, times `SCALE`.
    """

    net: Ints
    bound: int
    shedding: NDArray[np.bool_]
    taking: NDArray[np.bool_]
    taken: tuple[int, ...]


@dataclass
class MemberExchange:
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
    grid
        Units of weight in a ceiling: more round less, but cost time.
    """

    problem: Problem
    ceilings: Sequence[int]
    costs: Ints
    grid: int
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
        grain = max(1, max(self.ceilings, default=0) // self.grid)
        weight = problem.weight.astype(np.int64)
        lists = owned_rows(problem)
        loads = np.array([int(weight[rows].sum()) for rows in lists], dtype=np.int64)
        self.room = (np.array(self.ceilings, dtype=np.int64) - loads) // grain
        self.shed, self.take = -(-weight // grain), weight // grain
        self.width = max(self.ceilings, default=0) // grain + 2 - min(int(self.room.min()), 0)
        self.fee = np.where(problem.owner == NO_OWNER, 0, self.costs)
        table = np.zeros((len(problem.sets), problem.width), dtype=np.bool_)
        for index, consumers in enumerate(problem.sets):
            table[index, consumers] = True
        self.may = table[problem.set_of_row]
        owned = np.flatnonzero(problem.owner != NO_OWNER)
        self.may[owned, problem.owner[owned]] = False
        self.own = np.full((max(map(len, lists), default=0), problem.width), NO_OWNER)
        for position, rows in enumerate(lists):
            self.own[: len(rows), position] = rows

    def solve(self, price: Ints) -> Knapsacks:
        """Solve all knapsacks at integer prices, which are 0 or more and times `SCALE`."""
        paid, shedding = self._shed_tables(price)
        earned, taking, taken = self._take_tables(price)
        space = self.room[:, None] + np.arange(self.width)
        gain = np.take_along_axis(earned, space.clip(0, self.width - 1), axis=1)
        net = np.where((space >= 0) & (paid < NEVER), paid - gain, NEVER)
        orphans = self.problem.owner == NO_OWNER
        bound = int(net.min(axis=1).sum()) + int(price[orphans].sum())
        return Knapsacks(net, bound, shedding, taking, taken)

    def patterns(self, solved: Knapsacks, amount: Ints) -> Patterns:
        """Say for each member and row whether it sheds it (-1) or takes it (1), at an amount."""
        members = np.arange(self.problem.width)
        pattern = np.zeros((self.problem.width, self.problem.size), dtype=np.int8)
        left = (self.room + amount).clip(0, self.width - 1)
        for at in range(len(solved.taken) - 1, -1, -1):
            row = solved.taken[at]
            took = solved.taking[at, members, left]
            pattern[took, row] = 1
            left = left - np.where(took, self.take[row], 0)
        for at in range(len(self.own) - 1, -1, -1):
            rows = self.own[at]
            gave = solved.shedding[at, members, amount]
            pattern[members[gave], rows[gave]] = -1
            amount = np.maximum(amount - np.where(gave, self.shed[rows], 0), 0)
        return pattern

    def holds(self, member: int, pattern: Patterns) -> bool:
        """Say whether a member could have a pattern, as far as the grid tells."""
        more = int(self.take[pattern > 0].sum())
        return more - int(self.shed[pattern < 0].sum()) <= int(self.room[member])

    def _shed_tables(self, price: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Tabulate what it costs each member at least to shed each amount, and how."""
        amounts = np.arange(self.width)
        paid = np.full((self.problem.width, self.width), NEVER, dtype=np.int64)
        paid[:, 0] = 0
        chosen = np.zeros((len(self.own), *paid.shape), dtype=np.bool_)
        for at, rows in enumerate(self.own):
            exists = (rows != NO_OWNER)[:, None]
            before = np.maximum(amounts - self.shed[rows][:, None], 0)
            cost = np.take_along_axis(paid, before, axis=1) + price[rows][:, None]
            chosen[at] = exists & (cost < paid)
            paid = np.where(chosen[at], cost, paid)
        return paid, chosen

    def _take_tables(self, price: Ints) -> tuple[Ints, NDArray[np.bool_], tuple[int, ...]]:
        """Tabulate what each member earns at most by taking into each space, and how."""
        fee = self.fee * SCALE
        earned = np.zeros((self.problem.width, self.width), dtype=np.int64)
        worth = np.flatnonzero((price > fee) & (self.take < self.width)).tolist()
        chosen = np.zeros((len(worth), *earned.shape), dtype=np.bool_)
        for at, row in enumerate(worth):
            size = int(self.take[row])
            with_it = earned[:, : self.width - size] + (price[row] - fee[row])
            better = (with_it > earned[:, size:]) & self.may[row][:, None]
            chosen[at, :, size:] = better
            earned[:, size:] = np.where(better, with_it, earned[:, size:])
        return earned, chosen, tuple(worth)
