"""Check proofs that no assignment meets the constraints and the limits of levels.

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
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.load_metrics import Measure
from kassay.solver import constraints, evaluation, objective
from kassay.solver.counting_bounds import level_bound, max_loads_within
from kassay.solver.problem import UNREACHABLE, Arithmetic, Ints, Problem

Limit = tuple[objective.Level, int]
"""A level and the greatest value that it may have."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """Costs per block of colocated partitions and member, and the maximum total cost."""

    costs: NDArray[np.object_]  # Python integers, shape (blocks, members)
    limit: int


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Relaxed problem that assigns blocks of partitions to members within limits.

    Assignments that meet all constraints are among its solutions. ``levels`` has None for
    levels that are not linear, ``max_squares`` for levels that are not a sum of squares.
    """

    blocks: tuple[tuple[int, ...], ...]  # partitions per block
    allowed: NDArray[np.bool_]  # blocks and members
    weights: tuple[int, ...]
    max_loads: tuple[int, ...]  # per member
    max_counts: tuple[int, ...]  # partitions per member
    apart: tuple[int, ...]
    """Per block, the number of its first set of blocks that need different members, or -1."""
    max_moves: CostRow | None
    levels: tuple[CostRow | None, ...]
    max_squares: tuple[int | None, ...]  # per level
    is_empty: bool  # refuted without prices


def build_relaxation(
    problem: Problem, rules: Sequence[constraints.Constraint], limits: Sequence[Limit]
) -> Relaxation:
    """Build the relaxed problem of a group with constraints and limits of levels.

    ``rules`` include the capacities of the group.
    """
    blocks = tuple(evaluation.colocated_sets(problem, rules))
    block_of = {at: number for number, block in enumerate(blocks) for at in block}
    single = np.zeros((problem.partition_count, problem.member_count), dtype=np.bool_)
    for at, members in enumerate(evaluation.permitted_members(problem, rules)):
        single[at, members] = True
    room, apart, max_moves = (evaluation.Room(problem, rules), [-1] * len(blocks), list[int]())
    max_loads = map(min, max_loads_within(problem, limits) or room.loads, room.loads)
    is_empty = evaluation.has_impossible_pin(problem, rules) or any(
        level_bound(problem, level, limits[:index]) > limit
        for index, (level, limit) in enumerate(limits)
    )
    for number, rule in enumerate(rules):
        match rule:
            case constraints.MaxMoves():
                max_moves.append(rule.limit)
            case constraints.Separated():
                separated = [block_of[at] for at in evaluation.separated_partitions(problem, rule)]
                # Colocated partitions cannot be separated.
                is_empty = is_empty or len(set(separated)) < len(separated)
                for block in separated:
                    apart[block] = number if apart[block] < 0 else apart[block]
            case _:
                pass
    allowed = np.array([single[list(block)].all(axis=0) for block in blocks], dtype=np.bool_)
    allowed = allowed.reshape(len(blocks), problem.member_count)
    weight = problem.weight.tolist()
    return Relaxation(
        blocks=blocks,
        allowed=allowed,
        weights=tuple(sum(weight[at] for at in block) for block in blocks),
        # With several windows, limits on loads in one window do not restrict their sum.
        max_loads=tuple(
            max_loads if problem.profiles is None else [problem.total] * problem.member_count
        ),
        max_counts=tuple(room.counts),
        apart=tuple(apart),
        max_moves=_row(problem, blocks, objective.Movement(), min(max_moves))
        if max_moves
        else None,
        levels=tuple(_row(problem, blocks, level, limit) for level, limit in limits),
        max_squares=tuple(
            limit
            if isinstance(level, objective.Imbalance)
            and level.measure is Measure.SUM_OF_SQUARES
            and problem.profiles is None
            and problem.member_units.has_equal_speeds
            else None
            for level, limit in limits
        ),
        is_empty=is_empty or not allowed.any(axis=1).all(),
    )


def _row(
    problem: Problem, blocks: Sequence[tuple[int, ...]], level: objective.Level, limit: int
) -> CostRow | None:
    """Return the costs of a level per block and member; None if the costs are not linear."""
    match level:
        case objective.Movement():
            costs = np.where(
                problem.owner == NO_OWNER, 0, evaluation.movement_costs(problem, level)
            )
            is_move = problem.owner[:, None] != np.arange(problem.member_count)[None, :]
            single = costs.astype(object)[:, None] * is_move
        case objective.CrossRack():
            racks = evaluation.RackTable(problem)
            single = (~racks.has_replica[:, racks.rack_of]).astype(np.int64)
        case _:
            return None
    sums = [single[list(block)].sum(axis=0) for block in blocks]
    return CostRow(np.array(sums, dtype=object).reshape(len(blocks), single.shape[1]), limit)


# Maximum number of cells of a table: items times width.
_MAX_TABLE_CELLS = 8_000_000
# Width of the table of weights that are rounded to a grid.
_GRID = 20_000


class Item(NamedTuple):
    """Block of partitions as a knapsack item with a profit and a weight."""

    profit: int
    weight: int
    apart: int = -1  # at most one item of a set can be chosen; -1 means no set


def maximum_profit(
    items: Sequence[Item], *, max_load: int, max_items: int | None = None, squares: int = 0
) -> int:
    """Return an upper bound on the profit of a knapsack with a maximum load.

    It is exact if the total profit or the maximum load is small. The profits of items are above 0.
    ``squares`` is a cost per squared load.

    Examples
    --------
    >>> maximum_profit([Item(4, 3), Item(3, 2), Item(3, 2)], max_load=4)
    6
    >>> maximum_profit([Item(9, 1), Item(9, 1)], max_load=2, squares=4)
    5
    """
    items = [item for item in items if item.weight <= max_load]
    if not items:
        return 0
    most = _greatest_sum(items, max_items)
    if squares == 0:
        most = min(most, _fractional_profit(items, max_load))
    table = _table_profit(items, max_load, squares)
    return most if table is None else min(most, table)


def _greatest_sum(items: Sequence[Item], max_items: int | None) -> int:
    """Return an upper bound on the knapsack profit that ignores the weights."""
    single = [item.profit for item in items if item.apart < 0]
    sets: dict[int, int] = {}
    for item in items:
        if item.apart >= 0:
            sets[item.apart] = max(sets.get(item.apart, 0), item.profit)
    profits = sorted([*single, *sets.values()], reverse=True)
    return sum(profits if max_items is None else profits[: max(max_items, 0)])


def _fractional_profit(items: Sequence[Item], max_load: int) -> int:
    """Return the maximum knapsack profit if items may be divided."""
    total = sum(item.profit for item in items if item.weight == 0)
    heavy = [item for item in items if item.weight]
    for item in sorted(heavy, key=lambda item: Fraction(-item.profit, item.weight)):
        if item.weight >= max_load:
            return total + item.profit * max_load // item.weight
        total, max_load = total + item.profit, max_load - item.weight
    return total


def _table_profit(items: Sequence[Item], max_load: int, squares: int) -> int | None:
    """Return the maximum knapsack profit from a table, or None if it is too large."""
    profit = sum(item.profit for item in items)
    weight = sum(item.weight for item in items)
    width = min(max_load, weight)
    if not Arithmetic.INT64.represents(max(profit, weight, squares * max(width, 1) ** 2)):
        return None
    most = _MAX_TABLE_CELLS // len(items)
    if width < most and width <= profit:
        gains = _greatest_profits(items, np.zeros(width + 1, dtype=np.int64))
        return int((gains - squares * np.arange(width + 1, dtype=np.int64) ** 2).max())
    if profit < most:
        # Profits and weights change roles: the least weight per exact total profit.
        swapped = [Item(-item.weight, item.profit, item.apart) for item in items]
        start = np.full(profit + 1, -UNREACHABLE // 2, dtype=np.int64)
        start[0] = 0
        least = -_greatest_profits(swapped, start)
        reached = np.flatnonzero(least <= width)
        return int((reached - squares * least[reached] ** 2).max())
    if squares:
        return None
    grain = width // min(most, _GRID) + 1  # rounding weights down keeps the bound valid
    coarse = [Item(item.profit, item.weight // grain, item.apart) for item in items]
    return int(_greatest_profits(coarse, np.zeros(width // grain + 1, dtype=np.int64)).max())


def _sets_of(items: Sequence[Item]) -> list[list[Item]]:
    sets: dict[int, list[Item]] = {}
    for index, item in enumerate(items):
        sets.setdefault(item.apart if item.apart >= 0 else -1 - index, []).append(item)
    return list(sets.values())


def _greatest_profits(items: Sequence[Item], profits: Ints) -> Ints:
    """Add items to the table of the maximum profit per total weight."""
    for choice in _sets_of(items):
        before = profits.copy()
        for item in choice:
            taken = before[: len(profits) - item.weight] + item.profit
            profits[item.weight :] = np.maximum(profits[item.weight :], taken)
    return profits


# Maximum number of partitions times members. Larger problems are not checked.
_MAX_CELLS = 5_000_000
_MAX_CASES = 60_000
_MAX_BLOCKS = 200
_CASES_PER_ASSIGNMENT = 40  # a complete assignment takes as long as this many cases


@dataclass(frozen=True, slots=True)
class PartitionPrices:
    """Dual values (prices) that prove that no assignment meets all limits."""

    prices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Price of each partition per topic; topics that are missing have prices of 0."""
    max_moves: int = 0  # multiplier of the maximum number of moves
    levels: tuple[int, ...] = ()  # multiplier of each level with a limit


def prices_refute(
    problem: Problem,
    rules: Sequence[constraints.Constraint],
    limits: Sequence[Limit],
    prices: PartitionPrices,
) -> bool:
    """Return whether partition prices prove that no assignment meets the limits."""
    if problem.copies is not None or problem.partition_count * problem.member_count > _MAX_CELLS:
        return False
    return relaxation_refuted(problem, build_relaxation(problem, rules, limits), prices)


def relaxation_refuted(problem: Problem, relaxation: Relaxation, prices: PartitionPrices) -> bool:
    """Return whether partition prices prove that a relaxed problem has no solution."""
    if relaxation.is_empty:
        return True
    if prices.max_moves < 0 or any(multiplier < 0 for multiplier in prices.levels):
        return False
    names = [topic.name for topic in problem.group.topics]
    tables = [prices.prices.get(names[topic], ()) for topic in problem.topic.tolist()]
    single = [
        table[number] if number < len(table) else 0
        for table, number in zip(tables, problem.number.tolist(), strict=True)
    ]
    price = np.array([sum(single[at] for at in block) for block in relaxation.blocks], dtype=object)
    profits = np.repeat(price[:, None], problem.member_count, axis=1)
    limit = squares = 0
    multipliers = (prices.max_moves, *prices.levels)
    rows = (relaxation.max_moves, *relaxation.levels)
    for row, most, multiplier in zip(
        rows, (None, *relaxation.max_squares), multipliers, strict=False
    ):
        if row is not None:
            profits = profits - multiplier * row.costs
            limit += multiplier * row.limit
        elif most is not None:
            squares += multiplier
            limit += multiplier * most
    total = int(sum(price.tolist()))
    return total > limit + sum(
        _member_maxima(relaxation, profits, squares=squares, most=total - limit)
    )


def _member_maxima(
    relaxation: Relaxation, profits: NDArray[np.object_], *, squares: int, most: int
) -> Iterator[int]:
    """Yield upper bounds on the members' knapsack profits until their sum reaches ``most``."""
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
    """Return whether each assignment violates a limit; return False for large groups."""
    if problem.copies is not None or problem.partition_count * problem.member_count > _MAX_CASES:
        return False
    relaxation = build_relaxation(problem, rules, limits)
    is_small = len(relaxation.blocks) <= _MAX_BLOCKS
    cases = _Cases(problem, rules, limits, relaxation)
    return relaxation.is_empty or (is_small and cases.refute())


@dataclass
class _Cases:
    """Exhaustive search that skips partial assignments above a limit."""

    problem: Problem
    rules: Sequence[constraints.Constraint]
    limits: Sequence[Limit]
    relaxation: Relaxation
    left: int = _MAX_CASES

    def refute(self) -> bool:
        """Return whether a complete search found no assignment within the limits."""
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
        """Return whether all blocks of partitions from ``depth`` on can be assigned."""
        self.left -= 1 if depth < len(self.order) else _CASES_PER_ASSIGNMENT
        if self.left <= 0:
            return False
        if depth == len(self.order):
            return not any(evaluation.violated(self.problem, self.rules, self.placement)) and all(
                evaluation.level_value(self.problem, level, self.placement) <= limit
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
        before = self.loads[member], self.counts[member], self.spent
        self.loads[member] -= weight
        self.counts[member] -= len(block)
        self.spent = [rest - cost for rest, cost in zip(self.spent, costs, strict=True)]
        self.placement[list(block)] = member
        found = self._has_solution(depth + 1)
        self.loads[member], self.counts[member], self.spent = before
        return found
