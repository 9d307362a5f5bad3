"""Knapsack subproblems of the column generation, one per member.

A member pays the price of each partition that it gives away, and earns the price minus the
cost of the move for each partition that it receives. For any prices, the sum of the members'
minimum payments bounds the cost of all moves: the prices of moved partitions cancel out. Each
member solves a knapsack over whole partitions, hence the bound is stronger than a linear
relaxation. Prices are integers, so the bound is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.counting_bounds import owned_partitions
from kassay.solver.problem import Ints, Placement, Problem

# Prices and bounds are integers, in units of 1 / SCALE.
SCALE = 2**16
INFEASIBLE = 2**55


class ExchangePattern(NamedTuple):
    """Partitions that one member gives away and receives, in ascending order."""

    member: int
    given: tuple[int, ...]
    received: tuple[int, ...]


class _Step(NamedTuple):
    """Stage of the knapsack dynamic program: partitions added, and decisions per capacity."""

    partitions: Ints
    chosen: NDArray[np.bool_]


class _GiveStep(NamedTuple):
    """Stage of given partitions, one per member: decisions per member and amount given away."""

    members: Ints
    chosen: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Knapsacks:
    """Solutions of the knapsack problems of all members."""

    net: Ints  # minimum payment per member and amount given away, or INFEASIBLE
    bound: int  # on the cost of all moves, times SCALE
    giving: Sequence[_GiveStep]  # decisions of the dynamic programs
    receiving: Sequence[Sequence[_Step]]  # per member


@dataclass
class MemberExchange:
    """Knapsack problems of all members, solved together with rounded weights.

    Weights are rounded up for given and down for received partitions, so the bound stays valid.
    """

    problem: Problem
    max_loads: Sequence[int]
    costs: Ints
    grid: int  # units in the greatest maximum load

    def __post_init__(self) -> None:
        """Convert weights and capacities to whole numbers of grid units."""
        problem = self.problem
        grain = max(1, max(self.max_loads, default=0) // self.grid)
        weight = problem.weight.astype(np.int64)
        lists = owned_partitions(problem)
        loads = np.array([int(weight[partitions].sum()) for partitions in lists], dtype=np.int64)
        self.free_capacity = (np.array(self.max_loads, dtype=np.int64) - loads) // grain
        self.give_weight, self.receive_weight = -(-weight // grain), weight // grain
        overload = max(-int(self.free_capacity.min()), 0)
        # A member has at most the greatest maximum load, whatever it gives away.
        self.room = max(self.max_loads, default=0) // grain + 1
        self.width = self.room + 1 + overload
        self.move_cost = np.where(problem.owner == NO_OWNER, 0, self.costs)
        self.may_receive = problem.may_consume[problem.consumer_set]
        owned = np.flatnonzero(problem.owner != NO_OWNER)
        self.may_receive[owned, problem.owner[owned]] = False
        self.owned = np.full((max(map(len, lists), default=0), problem.member_count), NO_OWNER)
        for member, partitions in enumerate(lists):
            self.owned[: len(partitions), member] = partitions

    def solve(self, price: Ints) -> Knapsacks:
        """Solve the knapsacks of all members at prices of at least 0, times `SCALE`."""
        price_paid, giving = self._give_tables(price)
        price_earned, receiving = self._receive_tables(price)
        net = _sum_of_payments(price_paid, self._payments(price_earned))
        unowned = self.problem.owner == NO_OWNER
        bound = int(net.min(axis=1).sum()) + int(price[unowned].sum())
        return Knapsacks(net, bound, giving, receiving)

    def bounds_of_moves(self, price: Ints, most: int) -> Ints:
        """Return a lower bound on the cost of placements that move a partition to a member.

        Rows are partitions, columns members. Bounds are multiplied by `SCALE`. They are at least
        ``most`` + 1 if the partition is too expensive for its owner to give away, or the member may
        not receive it.
        """
        price_paid, _ = self._give_tables(price)
        price_earned, _ = self._receive_tables(price)
        payments = self._payments(price_earned)
        least = _sum_of_payments(price_paid, payments).min(axis=1)
        bound = int(least.sum()) + int(price[self.problem.owner == NO_OWNER].sum())
        given = bound + self._extra_of_given(price, payments, least)
        profit = price - self.move_cost * SCALE
        bounds = np.full(self.may_receive.shape, most + 1, dtype=np.int64)
        columns: dict[int, Ints] = {}
        for partition in np.flatnonzero(given <= most).tolist():
            weight = int(self.receive_weight[partition])
            if weight not in columns:
                payments = self._payments(price_earned, weight)
                columns[weight] = _sum_of_payments(price_paid, payments).min(axis=1) - least
            extra = columns[weight] - profit[partition]
            may_receive = self.may_receive[partition]
            bounds[partition, may_receive] = (given[partition] + extra)[may_receive]
        return bounds

    def _extra_of_given(self, price: Ints, payments: Ints, least: Ints) -> Ints:
        """Return the increase of the owner's payment if it gives a partition away; 0 if unowned."""
        extra = np.zeros(len(price), dtype=np.int64)
        last = np.arange(self.width)
        for member, column in enumerate(self.owned.T):
            own = column[column != NO_OWNER].tolist()
            before = np.full(self.width, INFEASIBLE, dtype=np.int64)
            before[0] = 0
            paid = []  # minimum price per amount that the partitions before give
            for partition in own:
                paid.append(before)
                without = np.maximum(last - self.give_weight[partition], 0)
                before = np.minimum(before, before[without] + price[partition])
            after = payments[member]
            for partition, known in zip(reversed(own), reversed(paid), strict=True):
                amount = np.minimum(last + self.give_weight[partition], self.width - 1)
                chosen = after[amount] + price[partition]
                extra[partition] = int((known + chosen).min()) - int(least[member])
                after = np.minimum(after, chosen)
        return extra

    def pattern(self, knapsacks: Knapsacks, member: int, amount: int) -> ExchangePattern:
        """Return a member's best pattern that gives away a given load, in grid units."""
        left = min(int(self.free_capacity[member]) + amount, self.room - 1)
        received = []
        for partitions, chosen in reversed(knapsacks.receiving[member]):
            at = len(partitions)
            while at and (taken := np.flatnonzero(chosen[:at, left])).size:
                at = int(taken[-1])
                received.append(int(partitions[at]))
                left -= int(self.receive_weight[partitions[at]])
        given = []
        for at in np.flatnonzero(self.owned[:, member] != NO_OWNER)[::-1].tolist():
            step = knapsacks.giving[at]
            if step.chosen[np.searchsorted(step.members, member), amount]:
                partition = int(self.owned[at, member])
                given.append(partition)
                amount = max(amount - int(self.give_weight[partition]), 0)
        return ExchangePattern(member, tuple(sorted(given)), tuple(sorted(received)))

    def pattern_of(self, placement: Placement, member: int) -> ExchangePattern:
        """Return the partitions that a member gives away and receives in a placement."""
        here, owned = placement == member, self.problem.owner == member
        given, received = np.flatnonzero(owned & ~here), np.flatnonzero(here & ~owned)
        return ExchangePattern(member, tuple(given.tolist()), tuple(received.tolist()))

    def choices(self, patterns: Sequence[ExchangePattern], width: int) -> sparse.csr_matrix:
        """Return the matrix of members and columns: 1 if the column is a pattern of the member."""
        members = [pattern.member for pattern in patterns]
        ones, columns = np.ones(len(patterns)), np.arange(len(patterns))
        return sparse.csr_matrix((ones, (members, columns)), (self.problem.member_count, width))

    def matrix(self, patterns: Sequence[ExchangePattern]) -> sparse.csr_matrix:
        """Return the matrix of patterns and partitions: -1 for given, 1 for received partitions."""
        sizes = [len(one.given) + len(one.received) for one in patterns]
        columns = [at for one in patterns for at in (*one.given, *one.received)]
        signs = [
            sign
            for one in patterns
            for sign in (*[-1.0] * len(one.given), *[1.0] * len(one.received))
        ]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return sparse.csr_matrix(
            (signs, columns, starts), (len(patterns), self.problem.partition_count)
        )

    def fees(self, patterns: Sequence[ExchangePattern]) -> NDArray[np.float64]:
        """Return, per pattern, the cost of moving the received partitions to its member."""
        cost = self.move_cost.tolist()
        return np.array([float(sum(cost[at] for at in one.received)) for one in patterns])

    def _give_tables(self, price: Ints) -> tuple[Ints, list[_GiveStep]]:
        """Return the minimum price of giving, per member and load, and the decisions."""
        amounts = np.arange(self.width)
        price_paid = np.full((self.problem.member_count, self.width), INFEASIBLE, dtype=np.int64)
        price_paid[:, 0] = 0
        steps = []
        for row in self.owned:
            members = np.flatnonzero(row != NO_OWNER)
            partitions, known = row[members], price_paid[members]
            before = np.maximum(amounts - self.give_weight[partitions][:, None], 0)
            cost = np.take_along_axis(known, before, axis=1) + price[partitions][:, None]
            chosen = cost < known
            price_paid[members] = np.where(chosen, cost, known)
            steps.append(_GiveStep(members, chosen))
        return price_paid, steps

    def _receive_tables(self, price: Ints) -> tuple[Ints, list[list[_Step]]]:
        """Return the maximum gain of receiving, per member and capacity, and the decisions."""
        members = self.problem.member_count
        price_earned = np.zeros((members, self.room), dtype=np.int64)
        receiving: list[list[_Step]] = [[] for _ in range(members)]
        profit = price - self.move_cost * SCALE
        worth = np.flatnonzero((profit > 0) & (self.receive_weight < self.room))
        self._fill_receive_tables(price_earned, receiving, (0, members), worth, profit)
        return price_earned, receiving

    def _payments(self, price_earned: Ints, weight: int = 0) -> Ints:
        """Return minus the gain of received partitions, per member and load given away.

        ``weight`` of the capacity is not available. Payments are INFEASIBLE without capacity.
        """
        space = self.free_capacity[:, None] + np.arange(self.width) - weight
        gain = np.take_along_axis(price_earned, space.clip(0, self.room - 1), axis=1)
        return np.where(space >= 0, -gain, INFEASIBLE)

    def _fill_receive_tables(
        self,
        tables: Ints,
        steps: list[list[_Step]],
        members: tuple[int, int],
        partitions: Ints,
        profit: Ints,
    ) -> None:
        """Compute the maximum gain of received partitions, per member and capacity.

        ``members`` is a range of members. ``tables`` contains the gains of earlier partitions.
        Partitions that all members of the range may receive are added once; each half of the
        range adds the others.
        """
        low, high = members
        allowed = self.may_receive[partitions, low:high]
        by_all = allowed.all(axis=1)
        common, others = partitions[by_all], partitions[~by_all & allowed.any(axis=1)]
        if len(common):
            table = tables[low]
            chosen = np.zeros((len(common), self.room), dtype=np.bool_)
            for at, partition in enumerate(common.tolist()):
                size = int(self.receive_weight[partition])
                gain_with = table[: self.room - size] + profit[partition]
                chosen[at, size:] = gain_with > table[size:]
                np.maximum(gain_with, table[size:], out=table[size:])
            tables[low:high] = table
            for member in range(low, high):
                steps[member].append(_Step(common, chosen))
        if high - low > 1:
            middle = (low + high) // 2
            for half in ((low, middle), (middle, high)):
                self._fill_receive_tables(tables, steps, half, others, profit)


def _sum_of_payments(price_paid: Ints, payments: Ints) -> Ints:
    is_feasible = (price_paid < INFEASIBLE) & (payments < INFEASIBLE)
    return np.where(is_feasible, price_paid + payments, INFEASIBLE)
