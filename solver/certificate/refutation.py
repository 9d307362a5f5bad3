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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver import constraints, objective
from kassay.solver.bounds.counting import level_bound, max_loads_within
from kassay.solver.evaluation import (
    RackTable,
    colocated_partitions,
    level_value,
    movement_costs,
    separated_partitions,
    topic_partitions,
    violated,
)
from kassay.solver.number_ranges import UNREACHABLE, Arithmetic, Weights
from kassay.solver.problem import Ints, Problem

Limit = tuple[objective.Level, int]
"""A level and the greatest value that it may have."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """Linear limit: cost of each block of partitions at each member, and maximum total cost."""

    costs: NDArray[np.object_]  # Python integers, shape (blocks, members)
    limit: int


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Relaxed problem: place blocks of partitions on members within limits.

    Assignments that meet all constraints are among its solutions.

    Parameters
    ----------
    blocks
        Partitions of each block.
    allowed
        Whether each member may have each block, shape (blocks, members).
    max_loads, max_counts
        Greatest weight and number of partitions per member.
    apart
        Per block, the number of the first set of blocks that need different members and that
        contains the block; -1 if there is none.
    max_moves, levels
        Rows of the maximum number of moves and of each level with a limit; None for levels
        that are not linear.
    max_squares
        Greatest sum of squared loads per level with a limit; None for other levels.
    """

    blocks: tuple[tuple[int, ...], ...]
    allowed: NDArray[np.bool_]
    weights: tuple[int, ...]
    max_loads: tuple[int, ...]
    max_counts: tuple[int, ...]
    apart: tuple[int, ...]
    max_moves: CostRow | None
    levels: tuple[CostRow | None, ...]
    max_squares: tuple[int | None, ...]
    is_empty: bool  # refuted without prices


def build_relaxation(
    problem: Problem, rules: Sequence[constraints.Constraint], limits: Sequence[Limit]
) -> Relaxation:
    """Build the relaxed problem of a group under constraints and level limits.

    ``rules`` include the capacities of the group.
    """
    blocks, block_of = _blocks(problem, rules)
    allowed = _allowed(problem, blocks, rules)
    weight = problem.weight.tolist()
    moves = [rule.limit for rule in rules if isinstance(rule, constraints.MaxMoves)]
    count = objective.Movement()
    return Relaxation(
        blocks=blocks,
        allowed=allowed,
        weights=tuple(sum(weight[at] for at in block) for block in blocks),
        max_loads=_max_loads(problem, rules, limits),
        max_counts=_max_counts(problem, rules),
        apart=_apart(problem, block_of, len(blocks), rules),
        max_moves=CostRow(_move_costs(problem, blocks, count), min(moves)) if moves else None,
        levels=tuple(_row(problem, blocks, level, limit) for level, limit in limits),
        max_squares=tuple(
            limit
            if isinstance(level, objective.Imbalance)
            and level.measure is Measure.SUM_OF_SQUARES
            and problem.member_units.has_equal_speeds
            else None
            for level, limit in limits
        ),
        is_empty=not allowed.any(axis=1).all()
        or _clashes(problem, rules, block_of)
        or _counting_refutes(problem, limits),
    )


def _counting_refutes(problem: Problem, limits: Sequence[Limit]) -> bool:
    """Return whether a lower bound by counting exceeds the limit of its level."""
    return any(
        level_bound(problem, level, limits[:index]) > limit
        for index, (level, limit) in enumerate(limits)
    )


def _blocks(
    problem: Problem, rules: Iterable[constraints.Constraint]
) -> tuple[tuple[tuple[int, ...], ...], list[int]]:
    """Return the blocks of colocated partitions, and the block of each partition."""
    block_of = list(range(problem.partition_count))
    members = {at: [at] for at in block_of}
    for rule in rules:
        if not isinstance(rule, constraints.Colocated):
            continue
        for partitions in colocated_partitions(problem, rule):
            first = block_of[partitions[0]]
            for other in {block_of[at] for at in partitions} - {first}:
                for at in members[other]:
                    block_of[at] = first
                members[first] += members.pop(other)
    blocks = tuple(tuple(sorted(block)) for block in members.values())
    index = {at: number for number, block in enumerate(blocks) for at in block}
    return blocks, [index[at] for at in range(problem.partition_count)]


def _allowed(
    problem: Problem,
    blocks: Sequence[tuple[int, ...]],
    rules: Iterable[constraints.Constraint],
) -> NDArray[np.bool_]:
    """Return, per block and member, whether the member may have the block."""
    single = problem.may_consume[problem.consumer_set].copy()
    for rule in rules:
        if isinstance(rule, constraints.Pinned):
            partitions = topic_partitions(problem, rule.topic, rule.partition)
            others = np.arange(problem.member_count) != problem.member_index.get(rule.member, -1)
            single[np.ix_(partitions, others)] = False
        elif isinstance(rule, constraints.Forbidden):
            partitions = topic_partitions(problem, rule.topic, rule.partition)
            member = problem.member_index.get(rule.member)
            if member is not None:
                single[partitions, member] = False
    allowed = [single[list(block)].all(axis=0) for block in blocks]
    return np.array(allowed, dtype=np.bool_).reshape(len(blocks), problem.member_count)


def _max_loads(
    problem: Problem, rules: Iterable[constraints.Constraint], limits: Sequence[Limit]
) -> tuple[int, ...]:
    loads = max_loads_within(problem, limits) or [problem.total] * problem.member_count
    for rule in rules:
        if isinstance(rule, constraints.Capacity):
            loads = _lowered(problem, loads, rule)
    return tuple(loads)


def _max_counts(problem: Problem, rules: Iterable[constraints.Constraint]) -> tuple[int, ...]:
    counts = [problem.partition_count] * problem.member_count
    for rule in rules:
        if isinstance(rule, constraints.MaxPartitions):
            counts = _lowered(problem, counts, rule)
    return tuple(counts)


def _lowered(
    problem: Problem,
    limits: Sequence[int],
    rule: constraints.Capacity | constraints.MaxPartitions,
) -> list[int]:
    """Lower the limits of the members to which a constraint applies; return all limits."""
    named = None if rule.member is None else problem.member_index.get(rule.member, NO_OWNER)
    return [
        min(limit, rule.limit) if named in {None, member} else limit
        for member, limit in enumerate(limits)
    ]


def _apart(
    problem: Problem, block_of: Sequence[int], count: int, rules: Iterable[constraints.Constraint]
) -> tuple[int, ...]:
    apart = [-1] * count
    sets = (rule for rule in rules if isinstance(rule, constraints.Separated))
    for number, rule in enumerate(sets):
        for at in separated_partitions(problem, rule):
            if apart[block_of[at]] < 0:
                apart[block_of[at]] = number
    return tuple(apart)


def _clashes(
    problem: Problem, rules: Iterable[constraints.Constraint], block_of: Sequence[int]
) -> bool:
    """Return whether one constraint, alone or with colocation, excludes every assignment."""
    for rule in rules:
        if isinstance(rule, constraints.Separated):
            blocks = [block_of[at] for at in separated_partitions(problem, rule)]
            if len(set(blocks)) < len(blocks):
                return True
        elif isinstance(rule, constraints.Pinned) and not len(
            topic_partitions(problem, rule.topic, rule.partition)
        ):
            return True
    return False


def _row(
    problem: Problem, blocks: Sequence[tuple[int, ...]], level: objective.Level, limit: int
) -> CostRow | None:
    """Convert a level to costs per block and member, or return None if it is not linear."""
    match level:
        case objective.Movement():
            return CostRow(_move_costs(problem, blocks, level), limit)
        case objective.CrossRack():
            racks = RackTable(problem)
            crossing = ~racks.has_replica[:, racks.rack_of]
            return CostRow(_block_sums(blocks, crossing.astype(np.int64)), limit)
        case _:
            return None


def _move_costs(
    problem: Problem, blocks: Sequence[tuple[int, ...]], level: objective.Movement
) -> NDArray[np.object_]:
    costs = np.where(problem.owner == NO_OWNER, 0, movement_costs(problem, level)).astype(object)
    members = np.arange(problem.member_count)
    return _block_sums(blocks, costs[:, None] * (problem.owner[:, None] != members[None, :]))


def _block_sums(blocks: Sequence[tuple[int, ...]], single: Weights) -> NDArray[np.object_]:
    sums = [single[list(block)].sum(axis=0) for block in blocks]
    return np.array(sums, dtype=object).reshape(len(blocks), single.shape[1])


# Maximum number of cells of a table: items times width.
_MAX_TABLE_CELLS = 8_000_000
# Width of the table of weights that are rounded to a grid.
_GRID = 20_000


class Item(NamedTuple):
    """Knapsack item: a block of partitions with its profit, weight and set of alternatives.

    At most one item of a set of alternatives can be chosen; -1 means no set.
    """

    profit: int
    weight: int
    apart: int = -1


def maximum_profit(
    items: Sequence[Item], *, max_load: int, max_items: int | None = None, squares: int = 0
) -> int:
    """Return an upper bound on the profit of a knapsack with a maximum load.

    It is exact if the total profit or the maximum load is small.

    Parameters
    ----------
    items
        Items with profits above 0.
    max_items
        Greatest number of items, None for no limit.
    squares
        Cost per squared load.

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
    """Return the sum of the greatest profits, with one item per set of alternatives."""
    single = [item.profit for item in items if item.apart < 0]
    sets: dict[int, int] = {}
    for item in items:
        if item.apart >= 0:
            sets[item.apart] = max(sets.get(item.apart, 0), item.profit)
    profits = sorted([*single, *sets.values()], reverse=True)
    return sum(profits if max_items is None else profits[: max(max_items, 0)])


def _fractional_profit(items: Sequence[Item], max_load: int) -> int:
    """Return the maximum profit if one item can be split, rounded down."""
    total = sum(item.profit for item in items if item.weight == 0)
    heavy = [item for item in items if item.weight]
    for item in sorted(heavy, key=lambda item: Fraction(-item.profit, item.weight)):
        if item.weight >= max_load:
            return total + item.profit * max_load // item.weight
        total, max_load = total + item.profit, max_load - item.weight
    return total


def _table_profit(items: Sequence[Item], max_load: int, squares: int) -> int | None:
    """Compute the maximum profit by dynamic programming; return None for large instances."""
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
    """Group the items by set of alternatives; at most one item per set can be chosen."""
    sets: dict[int, list[Item]] = {}
    for index, item in enumerate(items):
        sets.setdefault(item.apart if item.apart >= 0 else -1 - index, []).append(item)
    return list(sets.values())


def _greatest_profits(items: Sequence[Item], profits: Ints) -> Ints:
    """Update ``profits``, the greatest profit for each total weight, with the given items."""
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
