"""Compute, for a table of placements, their values on one level, in exact integers."""

from typing import assert_never

import numpy as np

from kassay.reference.model.metrics import LoadUnits, Measure
from kassay.solver import objective
from kassay.solver.enumeration.placement_table import PlacementTable
from kassay.solver.evaluation import RackTable, colocation_blocks, load_units, movement_costs
from kassay.solver.number_ranges import Weights, exact_column


def level_column(table: PlacementTable, level: objective.Level) -> Weights:
    """Return the value of each placement in the table on one level."""
    match level:
        case objective.Imbalance() | objective.HostImbalance():
            return _imbalance(table, level.measure, load_units(table.problem, level))
        case objective.Movement():
            costs = movement_costs(table.problem, level)
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
            column = _ascending(exact_column(relative, most * members * members)) @ ranks
        case Measure.LEXIMAX:
            greatest = (most + 1) ** members
            powers = np.array([(most + 1) ** exponent for exponent in range(members)], object)
            column = _ascending(exact_column(relative, greatest)) @ exact_column(powers, greatest)
        case _:
            assert_never(measure)
    return np.asarray(column)


def _unit_loads(table: PlacementTable, units: LoadUnits) -> Weights:
    """Return the load of each placement (row) on each member or host (column)."""
    loads = np.zeros((len(table.loads), len(units.names)), dtype=table.loads.dtype)
    for member, unit in enumerate(units.unit_of):
        loads[:, unit] += table.loads[:, member]
    return loads


def _ascending(loads: Weights) -> Weights:
    return np.sort(loads, axis=1)


def _cross_rack(table: PlacementTable) -> Weights:
    racks = RackTable(table.problem)
    total = np.zeros(len(table.members), dtype=np.int64)
    for partition in range(table.problem.partition_count):
        crosses = np.array(
            [racks.is_cross_rack(partition, at) for at in range(table.problem.member_count)]
        )
        total += crosses[table.members[:, partition]]
    return total


def _colocation(table: PlacementTable, level: objective.Colocation) -> Weights:
    total = np.zeros(len(table.members), dtype=np.int64)
    for block in colocation_blocks(table.problem, level):
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
