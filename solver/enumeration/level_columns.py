"""Compute, for a table of placements, their values on one level, in exact integers."""

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.solver.enumeration.placement_table import PlacementTable
from kassay.solver.evaluation import RackTable, movement_costs
from kassay.solver.objective import CrossRack, Imbalance, Level, MembersUsed, Movement, TopicSpread
from kassay.solver.problem import EXACT_IN_64_BITS, Weights


def level_column(table: PlacementTable, level: Level) -> Weights:
    """Return the value of each placement in the table on one level."""
    match level:
        case Imbalance():
            return _imbalance(table, level.measure)
        case Movement():
            costs = movement_costs(table.problem, level)
            return table.moved_sum(_wide(costs, sum(costs.tolist())))
        case CrossRack():
            return _cross_rack(table)
        case TopicSpread():
            return _topic_spread(table)
        case MembersUsed():
            return np.asarray((table.counts > 0).sum(axis=1))


def _imbalance(table: PlacementTable, measure: Measure) -> Weights:
    loads, members, total = table.loads, table.problem.member_count, table.problem.total
    if not members:
        return np.zeros(len(loads), dtype=np.int64)
    match measure:
        case Measure.MAKESPAN:
            column = loads.max(axis=1)
        case Measure.SPREAD:
            column = loads.max(axis=1) - loads.min(axis=1)
        case Measure.SUM_OF_SQUARES:
            loads = _wide(loads, total * total)
            column = (loads * loads).sum(axis=1)
        case Measure.DEVIATION:
            loads = _wide(loads, total * members * members)
            column = abs(members * loads - total).sum(axis=1)
        case Measure.BALANCE_SCORE:
            ranks = 2 * np.arange(members) - (members - 1)
            column = _ascending(_wide(loads, total * members * members)) @ ranks
        case Measure.LEXIMAX:
            most = (total + 1) ** members
            powers = np.array([(total + 1) ** exponent for exponent in range(members)], object)
            column = _ascending(_wide(loads, most)) @ _wide(powers, most)
    return np.asarray(column)


def _ascending(loads: Weights) -> Weights:
    return np.sort(loads, axis=1)


def _wide(column: Weights, most: int) -> Weights:
    """Convert a column to int64, or to Python integers if ``most`` exceeds 64 bits.

    ``most`` is an upper bound of the results.
    """
    return column.astype(np.int64 if most < EXACT_IN_64_BITS else object)


def _cross_rack(table: PlacementTable) -> Weights:
    racks = RackTable(table.problem)
    total = np.zeros(len(table.members), dtype=np.int64)
    for partition in range(table.problem.partition_count):
        crosses = np.array(
            [racks.is_cross_rack(partition, at) for at in range(table.problem.member_count)]
        )
        total += crosses[table.members[:, partition]]
    return total


def _topic_spread(table: PlacementTable) -> Weights:
    total = np.zeros(len(table.members), dtype=np.int64)
    for topic in set(table.problem.topic.tolist()):
        own = table.members[:, table.problem.topic == topic]
        for member in range(table.problem.member_count):
            total += (own == member).sum(axis=1) ** 2
    return total
