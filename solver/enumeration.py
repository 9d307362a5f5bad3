"""Find the optimum of a small group by comparing all placements."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.load_metrics import LoadUnits, Measure
from kassay.solver import constraints, evaluation, objective
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.counting_bounds import level_bound
from kassay.solver.problem import Ints, Placement, Problem, Weights, exact_column
from kassay.solver.search_interface import LexicographicResult, claim_about
from kassay.solver.solution import UsedMethod

MAX_PLACEMENTS = 2**17


def enumerate_levels(
    problem: Problem, levels: Sequence[objective.Level], rules: Sequence[constraints.Constraint]
) -> LexicographicResult | None:
    """Compare all placements of a small group; return None for large groups.

    The minimum of a level is taken over the placements within the tolerances of the earlier
    levels. A tolerance may make the best placement worse than the minimum.
    """
    table = list_placements(problem, rules)
    if table is None:
        return None
    if not len(table.members):
        return LexicographicResult(
            None,
            conflict=minimal_conflict(problem, rules),
            conflict_origin=Origin.ENUMERATION,
            method=UsedMethod.ENUMERATION,
        )
    claims, best = [], []
    limits: list[tuple[objective.Level, int]] = []
    columns: list[Weights] = []
    for level in levels:
        column = level_column(table, level)
        minimum = int(column.min())
        is_counted = level_bound(problem, level, limits) >= minimum
        origin = Origin.COUNTING if is_counted else Origin.ENUMERATION
        claims.append(LevelClaim(level, minimum, minimum, origin))
        best.append(table.placement(int(column.argmin())))
        limits.append((level, level.tolerance.limit(minimum)))
        within = np.asarray(column <= limits[-1][1], dtype=np.bool_)
        columns = [earlier[within] for earlier in [*columns, column]]
        table = table.select(within)
    # The last level is compared first; the earlier levels break ties in their order.
    rows = np.arange(len(table.members))
    for column in [columns[-1], *columns[:-1]]:
        values = column[rows]
        rows = rows[np.asarray(values == values.min(), dtype=np.bool_)]
    placement = table.placement(int(rows[0]))
    return LexicographicResult(
        placement,
        tuple(
            claim_about(problem, claim, placement, best=one)
            for claim, one in zip(claims, best, strict=True)
        ),
        method=UsedMethod.ENUMERATION,
    )


def minimal_conflict(
    problem: Problem, rules: Sequence[constraints.Constraint]
) -> tuple[constraints.Constraint, ...]:
    """Reduce conflicting constraints to a minimal conflict."""
    conflict = tuple(rules)
    for constraint in rules:
        others = tuple(other for other in conflict if other is not constraint)
        table = list_placements(problem, others)
        if table is not None and not len(table.members):
            conflict = others
    return conflict


@dataclass(frozen=True)
class PlacementTable:
    """Table with one row per placement and one column per partition."""

    problem: Problem
    members: NDArray[np.int32]  # shape (placements, partitions)
    loads: Weights  # shape (placements, members), or (placements, members, windows) with several

    @cached_property
    def counts(self) -> Ints:
        """Return the number of partitions per placement and member, as a matrix."""
        counts = np.zeros((len(self.members), self.problem.member_count), dtype=np.int64)
        for member in range(self.problem.member_count):
            counts[:, member] = (self.members == member).sum(axis=1)
        return counts

    def moved_sum(self, costs: Weights) -> Weights:
        """Return the total cost of the moves of each placement."""
        total = np.zeros(len(self.members), dtype=costs.dtype)
        for partition, owner in enumerate(self.problem.owner.tolist()):
            if owner >= 0:
                is_moved = (self.members[:, partition] != owner).astype(costs.dtype)
                total = total + is_moved * costs[partition]
        return total

    def select(self, rows: NDArray[np.bool_]) -> "PlacementTable":
        """Return a table with only the selected rows."""
        return PlacementTable(self.problem, self.members[rows], self.loads[rows])

    def placement(self, row: int) -> Placement:
        """Return one row of the table as a placement."""
        return np.array(self.members[row], dtype=np.int32)

    def meets(self, constraint: constraints.Constraint) -> NDArray[np.bool_]:
        """Return which placements meet a constraint."""
        match constraint:
            case constraints.Capacity():
                windows, limits = (
                    self.windows(),
                    evaluation.window_limits(self.problem, constraint),
                )
                within = np.ones(len(self.members), dtype=np.bool_)
                for at, limit in limits.items():
                    within &= self._is_within(constraint, windows[at].loads, limit)
                return within
            case constraints.MaxPartitions():
                return self._is_within(constraint, self.counts, constraint.limit)
            case constraints.MaxMoves():
                ones = np.ones(self.problem.partition_count, dtype=np.int64)
                return np.asarray(self.moved_sum(ones) <= constraint.limit, dtype=np.bool_)
            case constraints.Colocated():
                holds = np.ones(len(self.members), dtype=np.bool_)
                for first, *others in evaluation.colocated_partitions(self.problem, constraint):
                    for other in others:
                        holds &= self.members[:, first] == self.members[:, other]
                return holds
            case constraints.Separated():
                apart = self.members[:, evaluation.separated_partitions(self.problem, constraint)]
                ordered = np.sort(apart, axis=1)
                return np.asarray((ordered[:, 1:] != ordered[:, :-1]).all(axis=1), dtype=np.bool_)
            case constraints.Pinned() | constraints.Forbidden():
                # `permitted_members` has already applied them.
                return np.ones(len(self.members), dtype=np.bool_)
            case _:
                assert_never(constraint)

    def _is_within(
        self,
        constraint: constraints.Capacity | constraints.MaxPartitions,
        amounts: Weights,
        limit: int,
    ) -> NDArray[np.bool_]:
        if constraint.member is None:
            return np.asarray((amounts <= limit).all(axis=1), dtype=np.bool_)
        member = self.problem.member_index.get(constraint.member)
        if member is None:
            return np.ones(len(self.members), dtype=np.bool_)
        return np.asarray(amounts[:, member] <= limit, dtype=np.bool_)

    def windows(self) -> "list[PlacementTable]":
        """Return one table per weight window."""
        if self.problem.profiles is None:
            return [self]
        return [
            PlacementTable(self.problem.merged_windows([at]), self.members, self.loads[:, :, at])
            for at in range(self.problem.window_count)
        ]


def list_placements(
    problem: Problem, rules: Iterable[constraints.Constraint]
) -> PlacementTable | None:
    """List all placements that meet the constraints; return None for large groups."""
    rules = tuple(rules)
    if _has_many_choices(problem, rules):
        return None
    choices = evaluation.permitted_members(problem, rules)
    # A partition with one choice adds no rows, but the table has a column for it.
    cells = max(problem.partition_count + problem.member_count * problem.window_count, 1)
    # If a constraint excludes all members of a partition, the other choices must be few, too.
    if prod(max(len(chosen), 1) for chosen in choices) * cells > MAX_PLACEMENTS * 16:
        return None
    table = _product(problem, choices)
    if evaluation.has_impossible_pin(problem, rules):
        table = table.select(np.zeros(len(table.members), dtype=np.bool_))
    for rule in rules:
        if not len(table.members):
            break
        table = table.select(table.meets(rule))
    return table


def _has_many_choices(problem: Problem, rules: Sequence[constraints.Constraint]) -> bool:
    sizes = np.array([len(consumers) for consumers in problem.consumer_sets], dtype=np.int64)
    free = int((sizes[problem.consumer_set] > 1).sum()) if problem.partition_count else 0
    for rule in rules:
        if isinstance(rule, constraints.Pinned | constraints.Forbidden):
            free -= len(evaluation.topic_partitions(problem, rule.topic, rule.partition))
    return free > MAX_PLACEMENTS.bit_length() + 4


def _product(problem: Problem, choices: Sequence[Sequence[int]]) -> PlacementTable:
    members = np.zeros((1, problem.partition_count), dtype=np.int32)
    weights = problem.weight if problem.profiles is None else problem.profiles
    loads = np.zeros((1, problem.member_count, *weights.shape[1:]), dtype=weights.dtype)
    for partition, chosen in enumerate(choices):
        rows = len(members)
        members = np.tile(members, (len(chosen), 1))
        members[:, partition] = np.repeat(np.array(chosen, dtype=np.int32), rows)
        loads = np.concatenate([loads] * len(chosen) or [loads[:0]])
        for at, member in enumerate(chosen):
            loads[at * rows : (at + 1) * rows, member] += weights[partition]
    return PlacementTable(problem, members, loads)


def level_column(table: PlacementTable, level: objective.Level) -> Weights:
    """Return the value of one level for each placement in the table."""
    match level:
        case objective.Imbalance() | objective.HostImbalance():
            return _imbalance(table, level.measure, evaluation.load_units(table.problem, level))
        case objective.Movement():
            costs = evaluation.movement_costs(table.problem, level)
            return table.moved_sum(exact_column(costs, sum(costs.tolist())))
        case objective.CrossRack():
            return _cross_rack(table)
        case objective.TopicSpread():
            return _topic_spread(table)
        case objective.MembersUsed():
            return np.asarray((table.counts > 0).sum(axis=1))
        case objective.Colocation():
            return _colocation(table, level)
        case objective.FlowLevel():
            raise objective.only_by_flows(level)
        case _:
            assert_never(level)


def _imbalance(table: PlacementTable, measure: Measure, units: LoadUnits) -> Weights:
    if table.problem.profiles is not None:
        columns = [_imbalance(one, measure, units) for one in table.windows()]
        total = sum(int(column.max(initial=0)) for column in columns)
        stacked = np.array([exact_column(column, total) for column in columns])
        is_greatest = measure in (Measure.MAKESPAN, Measure.SPREAD)
        return np.asarray(stacked.max(axis=0) if is_greatest else stacked.sum(axis=0))
    members, total = len(units.names), table.problem.total
    if not members:
        return np.zeros(len(table.loads), dtype=np.int64)
    most = max(total, 1) * max(units.factors)
    loads = _unit_loads(table, units)
    relative = exact_column(loads, most) * exact_column(np.array(units.factors, dtype=object), most)
    match measure:
        case Measure.MAKESPAN:
            column = relative.max(axis=1)
        case Measure.SPREAD:
            column = relative.max(axis=1) - relative.min(axis=1)
        case Measure.SUM_OF_SQUARES:
            column = (exact_column(loads, total * most) * exact_column(relative, total * most)).sum(
                axis=1
            )
        case Measure.DEVIATION:
            greatest = total * sum(units.speeds) * members
            speeds = exact_column(np.array(units.speeds, dtype=object), greatest)
            column = abs(sum(units.speeds) * exact_column(loads, greatest) - speeds * total).sum(
                axis=1
            )
        case Measure.BALANCE_SCORE:
            ranks = 2 * np.arange(members) - (members - 1)
            column = np.sort(exact_column(relative, most * members * members)) @ ranks
        case Measure.LEXIMAX:
            greatest = (most + 1) ** members
            powers = np.array([(most + 1) ** exponent for exponent in range(members)], object)
            column = np.sort(exact_column(relative, greatest)) @ exact_column(powers, greatest)
        case _:
            assert_never(measure)
    return np.asarray(column)


def _unit_loads(table: PlacementTable, units: LoadUnits) -> Weights:
    loads = np.zeros((len(table.loads), len(units.names)), dtype=table.loads.dtype)
    for member, unit in enumerate(units.unit_of):
        loads[:, unit] += table.loads[:, member]
    return loads


def _cross_rack(table: PlacementTable) -> Weights:
    racks = evaluation.RackTable(table.problem)
    total = np.zeros(len(table.members), dtype=np.int64)
    for partition in range(table.problem.partition_count):
        crosses = np.array(
            [racks.is_cross_rack(partition, at) for at in range(table.problem.member_count)]
        )
        total += crosses[table.members[:, partition]]
    return total


def _colocation(table: PlacementTable, level: objective.Colocation) -> Weights:
    total = np.zeros(len(table.members), dtype=np.int64)
    for block in evaluation.colocation_blocks(table.problem, level):
        ordered = np.sort(table.members[:, list(block)], axis=1)
        total += (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
    return total


def _topic_spread(table: PlacementTable) -> Weights:
    total = np.zeros(len(table.members), dtype=np.int64)
    for topic in set(table.problem.topic.tolist()):
        own = table.members[:, table.problem.topic == topic]
        for member in range(table.problem.member_count):
            total += (own == member).sum(axis=1) ** 2
    return total
