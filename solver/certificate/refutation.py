"""Check refutations: proofs that no assignment meets given constraints and level limits.

Two kinds of evidence exist, and neither needs a solver to check.

- **Partition prices.** Each partition has a price, each linear limit a multiplier. In any
  assignment, the prices add up to the sum over members of the prices of its partitions, which
  is at most the member's maximum (a knapsack) plus the multiplied costs. If the prices exceed
  the maxima and the multiplied limits, no assignment meets the limits. This is weak duality of
  the Dantzig-Wolfe decomposition; cuts, dual feasible functions and duals of a linear program
  are such prices.
- **All cases.** If there are few assignments, all of them are tried.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kassay.solver import constraints
from kassay.solver.certificate.knapsack import Item, maximum_profit
from kassay.solver.certificate.refutation_problem import (
    CostRow,
    Limit,
    Relaxation,
    build_relaxation,
)
from kassay.solver.evaluation import level_value, violated
from kassay.solver.problem import Problem

# Maximum number of partitions times members. Larger problems are not checked.
_MAX_CELLS = 5_000_000
_MAX_CASES = 60_000
_MAX_BLOCKS = 200
_CASES_PER_ASSIGNMENT = 40  # a complete assignment takes as long as this many cases


@dataclass(frozen=True, slots=True)
class PartitionPrices:
    """Partition prices and limit multipliers that prove that no assignment meets all limits.

    Parameters
    ----------
    prices
        Price of each partition per topic; topics that are missing have prices of 0.
    max_moves
        Multiplier of the maximum number of moves.
    levels
        Multiplier of each level with a limit, in order.
    """

    prices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    max_moves: int = 0
    levels: tuple[int, ...] = ()


def prices_refute(
    problem: Problem,
    rules: Sequence[constraints.Constraint],
    limits: Sequence[Limit],
    prices: PartitionPrices,
) -> bool:
    """Return whether partition prices prove that no assignment meets constraints and limits.

    Return False for large groups, and for groups with several members per partition.
    """
    if problem.copies is not None or problem.partition_count * problem.member_count > _MAX_CELLS:
        return False
    return relaxation_refuted(problem, build_relaxation(problem, rules, limits), prices)


def relaxation_refuted(problem: Problem, relaxation: Relaxation, prices: PartitionPrices) -> bool:
    """Return whether partition prices prove that a relaxed problem has no solution."""
    if relaxation.is_empty:
        return True
    if prices.max_moves < 0 or any(multiplier < 0 for multiplier in prices.levels):
        return False
    price = _block_prices(problem, relaxation, prices)
    profits = np.repeat(price[:, None], problem.member_count, axis=1)
    limit = 0
    for row, multiplier in _multiplied_rows(relaxation, prices):
        profits = profits - multiplier * row.costs
        limit += multiplier * row.limit
    squares = 0
    for most, multiplier in zip(relaxation.max_squares, prices.levels, strict=False):
        if most is not None:
            squares += multiplier
            limit += multiplier * most
    total = int(sum(price.tolist()))
    return total > limit + sum(
        _member_maxima(relaxation, profits, squares=squares, most=total - limit)
    )


def _block_prices(
    problem: Problem, relaxation: Relaxation, prices: PartitionPrices
) -> NDArray[np.object_]:
    names = [topic.name for topic in problem.group.topics]
    single = [
        table[number] if number < len(table) else 0
        for topic, number in zip(problem.topic.tolist(), problem.number.tolist(), strict=True)
        for table in (prices.prices.get(names[topic], ()),)
    ]
    return np.array([sum(single[at] for at in block) for block in relaxation.blocks], dtype=object)


def _multiplied_rows(
    relaxation: Relaxation, prices: PartitionPrices
) -> Iterator[tuple[CostRow, int]]:
    if relaxation.max_moves is not None and prices.max_moves:
        yield relaxation.max_moves, prices.max_moves
    for row, multiplier in zip(relaxation.levels, prices.levels, strict=False):
        if row is not None and multiplier:
            yield row, multiplier


def _member_maxima(
    relaxation: Relaxation, profits: NDArray[np.object_], *, squares: int, most: int
) -> Iterator[int]:
    """Yield, per member, an upper bound on the knapsack profit; stop when the sum is ``most``."""
    known: dict[object, int] = {}
    for member in range(profits.shape[1]):
        items = tuple(
            Item(int(profit), weight, apart)
            for profit, weight, apart, allowed in zip(
                profits[:, member].tolist(),
                relaxation.weights,
                relaxation.apart,
                relaxation.allowed[:, member].tolist(),
                strict=True,
            )
            if allowed and profit > 0
        )
        max_load = relaxation.max_loads[member]
        largest = max((len(block) for block in relaxation.blocks), default=1)
        max_items = relaxation.max_counts[member] if largest == 1 else None
        key = (items, max_load, max_items)
        if key not in known:
            known[key] = maximum_profit(
                items, max_load=max_load, max_items=max_items, squares=squares
            )
        most -= known[key]
        yield known[key]
        if most <= 0:
            return


def cases_refute(
    problem: Problem, rules: Sequence[constraints.Constraint], limits: Sequence[Limit]
) -> bool:
    """Return whether trying all assignments shows that none meets constraints and limits.

    Return False if there are too many assignments, or several members per partition.
    """
    if problem.copies is not None or problem.partition_count * problem.member_count > _MAX_CASES:
        return False
    relaxation = build_relaxation(problem, rules, limits)
    is_small = len(relaxation.blocks) <= _MAX_BLOCKS
    cases = _Cases(problem, rules, limits, relaxation)
    return relaxation.is_empty or (is_small and cases.refute())


@dataclass
class _Cases:
    """Exhaustive search over all assignments; it skips partial assignments above a limit."""

    problem: Problem
    rules: Sequence[constraints.Constraint]
    limits: Sequence[Limit]
    relaxation: Relaxation
    left: int = _MAX_CASES

    def refute(self) -> bool:
        """Return whether the search was complete and found no assignment within the limits."""
        relaxation = self.relaxation
        self.order = sorted(
            range(len(relaxation.blocks)),
            key=lambda at: (int(relaxation.allowed[at].sum()), -relaxation.weights[at]),
        )
        self.rows = [row for row in (relaxation.max_moves, *relaxation.levels) if row is not None]
        self.placement = np.zeros(self.problem.partition_count, dtype=np.int32)
        self.loads = list(relaxation.max_loads)
        self.counts = list(relaxation.max_counts)
        self.spent = [row.limit for row in self.rows]
        return not self._has_solution(0) and self.left > 0

    def _has_solution(self, depth: int) -> bool:
        """Return whether the remaining blocks of partitions can be placed within the limits.

        Return False when the permitted number of cases is used up.
        """
        self.left -= 1 if depth < len(self.order) else _CASES_PER_ASSIGNMENT
        if self.left <= 0:
            return False
        if depth == len(self.order):
            return not any(violated(self.problem, self.rules, self.placement)) and all(
                level_value(self.problem, level, self.placement) <= limit
                for level, limit in self.limits
            )
        at = self.order[depth]
        return any(
            self._place(at, member, depth)
            for member in np.flatnonzero(self.relaxation.allowed[at]).tolist()
        )

    def _place(self, at: int, member: int, depth: int) -> bool:
        block, weight = self.relaxation.blocks[at], self.relaxation.weights[at]
        costs = [row.costs[at, member] for row in self.rows]
        if (
            weight > self.loads[member]
            or len(block) > self.counts[member]
            or any(cost > rest for cost, rest in zip(costs, self.spent, strict=True))
        ):
            return False
        self._change(member, weight, len(block), costs, sign=-1)
        self.placement[list(block)] = member
        found = self._has_solution(depth + 1)
        self._change(member, weight, len(block), costs, sign=1)
        return found

    def _change(
        self, member: int, weight: int, count: int, costs: Sequence[int], *, sign: int
    ) -> None:
        """Reduce the remaining limits of a member by one block with sign -1, restore with 1."""
        self.loads[member] += sign * weight
        self.counts[member] += sign * count
        self.spent = [rest + sign * cost for rest, cost in zip(self.spent, costs, strict=True)]
