"""Knapsack subproblems of the column generation, one per member.

A member pays the price of each partition that it gives away, and earns the price minus the
cost of the move for each partition that it receives. For any prices, the sum of the members'
minimum payments bounds the cost of all moves: the prices of moved partitions cancel out. Each
member solves a knapsack over whole partitions, hence the bound is stronger than a linear
relaxation. Prices are integers, so the bound is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds import owned_partitions
from kassay.solver.problem import Ints, Problem

# Prices and bounds are integers, in units of 1 / SCALE.
SCALE = 2**16
INFEASIBLE = 2**55

Pattern = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Knapsacks:
    """Solved knapsacks of all members."""

    net: Ints  # minimum payment per member and amount given away, or INFEASIBLE
    bound: int  # on the cost of all moves, times SCALE
    giving: NDArray[np.bool_]  # decisions of the dynamic programs
    receiving: NDArray[np.bool_]
    received: tuple[int, ...]  # partitions in the order of `receiving`


@dataclass
class MemberExchange:
    """Knapsacks of all members, solved together on a grid of weights.

    Weights are rounded up for given and down for received partitions, so the bound stays valid.
    """

    problem: Problem
    max_loads: Sequence[int]
    costs: Ints
    grid: int  # units in the greatest maximum load
    free_capacity: Ints = field(init=False)
    give_weight: Ints = field(init=False)
    receive_weight: Ints = field(init=False)
    width: int = field(init=False)
    move_cost: Ints = field(init=False)
    may_receive: NDArray[np.bool_] = field(init=False)
    owned: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Convert weights and capacities to the grid."""
        problem = self.problem
        grain = max(1, max(self.max_loads, default=0) // self.grid)
        weight = problem.weight.astype(np.int64)
        lists = owned_partitions(problem)
        loads = np.array([int(weight[partitions].sum()) for partitions in lists], dtype=np.int64)
        self.free_capacity = (np.array(self.max_loads, dtype=np.int64) - loads) // grain
        self.give_weight, self.receive_weight = -(-weight // grain), weight // grain
        self.width = (
            max(self.max_loads, default=0) // grain + 2 - min(int(self.free_capacity.min()), 0)
        )
        self.move_cost = np.where(problem.owner == NO_OWNER, 0, self.costs)
        self.may_receive = problem.may_consume[problem.consumer_set]
        owned = np.flatnonzero(problem.owner != NO_OWNER)
        self.may_receive[owned, problem.owner[owned]] = False
        self.owned = np.full((max(map(len, lists), default=0), problem.member_count), NO_OWNER)
        for member, partitions in enumerate(lists):
            self.owned[: len(partitions), member] = partitions

    def solve(self, price: Ints) -> Knapsacks:
        """Solve all knapsacks at integer prices of at least 0, times `SCALE`."""
        price_paid, giving = self._give_tables(price)
        price_earned, receiving, received = self._receive_tables(price)
        space = self.free_capacity[:, None] + np.arange(self.width)
        gain = np.take_along_axis(price_earned, space.clip(0, self.width - 1), axis=1)
        net = np.where((space >= 0) & (price_paid < INFEASIBLE), price_paid - gain, INFEASIBLE)
        unowned = self.problem.owner == NO_OWNER
        bound = int(net.min(axis=1).sum()) + int(price[unowned].sum())
        return Knapsacks(net, bound, giving, receiving, received)

    def patterns(self, knapsacks: Knapsacks, amount: Ints) -> Pattern:
        """Return exchange patterns: per member and partition -1 if given, 1 if received, else 0."""
        members = np.arange(self.problem.member_count)
        pattern = np.zeros((self.problem.member_count, self.problem.partition_count), dtype=np.int8)
        left = (self.free_capacity + amount).clip(0, self.width - 1)
        for at in range(len(knapsacks.received) - 1, -1, -1):
            partition = knapsacks.received[at]
            took = knapsacks.receiving[at, members, left]
            pattern[took, partition] = 1
            left = left - np.where(took, self.receive_weight[partition], 0)
        for at in range(len(self.owned) - 1, -1, -1):
            partitions = self.owned[at]
            gave = knapsacks.giving[at, members, amount]
            pattern[members[gave], partitions[gave]] = -1
            amount = np.maximum(amount - np.where(gave, self.give_weight[partitions], 0), 0)
        return pattern

    def is_feasible(self, member: int, pattern: Pattern) -> bool:
        """Return whether a pattern is within the free capacity of a member on the grid."""
        more = int(self.receive_weight[pattern > 0].sum())
        return more - int(self.give_weight[pattern < 0].sum()) <= int(self.free_capacity[member])

    def _give_tables(self, price: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return per member and amount the minimum price of giving away, and the decisions."""
        amounts = np.arange(self.width)
        price_paid = np.full((self.problem.member_count, self.width), INFEASIBLE, dtype=np.int64)
        price_paid[:, 0] = 0
        chosen = np.zeros((len(self.owned), *price_paid.shape), dtype=np.bool_)
        for at, partitions in enumerate(self.owned):
            exists = (partitions != NO_OWNER)[:, None]
            before = np.maximum(amounts - self.give_weight[partitions][:, None], 0)
            cost = np.take_along_axis(price_paid, before, axis=1) + price[partitions][:, None]
            chosen[at] = exists & (cost < price_paid)
            price_paid = np.where(chosen[at], cost, price_paid)
        return price_paid, chosen

    def _receive_tables(self, price: Ints) -> tuple[Ints, NDArray[np.bool_], tuple[int, ...]]:
        """Return the maximum gain of receiving per member and capacity, and the decisions."""
        move_cost = self.move_cost * SCALE
        price_earned = np.zeros((self.problem.member_count, self.width), dtype=np.int64)
        worth = np.flatnonzero((price > move_cost) & (self.receive_weight < self.width)).tolist()
        chosen = np.zeros((len(worth), *price_earned.shape), dtype=np.bool_)
        for at, partition in enumerate(worth):
            size = int(self.receive_weight[partition])
            gain_with = price_earned[:, : self.width - size] + (
                price[partition] - move_cost[partition]
            )
            better = (gain_with > price_earned[:, size:]) & self.may_receive[partition][:, None]
            chosen[at, :, size:] = better
            price_earned[:, size:] = np.where(better, gain_with, price_earned[:, size:])
        return price_earned, chosen, tuple(worth)
