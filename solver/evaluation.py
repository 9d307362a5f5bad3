"""What a placement is worth on each level, and which constraints it breaks."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model import metrics
from kassay.reference.model.ownership import NO_OWNER
from kassay.reference.model.topic_partitions import Column, TopicPartition
from kassay.solver.constraints import (
    Capacity,
    Colocated,
    Constraint,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.objective import (
    CrossRack,
    Imbalance,
    Level,
    Measure,
    MembersUsed,
    Movement,
    MovementCost,
    TopicSpread,
    leximax_rank,
)
from kassay.solver.problem import Placement, Problem, Weights


def level_value(problem: Problem, level: Level, placement: Placement) -> int:
    """Measure a placement on one level."""
    match level:
        case Imbalance():
            return imbalance_of(level.measure, problem.loads(placement))
        case Movement():
            moved = (problem.owner != NO_OWNER) & (problem.owner != placement)
            return sum(movement_costs(problem, level)[moved].tolist())
        case CrossRack():
            return int(np.count_nonzero(RackTable(problem).across(placement)))
        case TopicSpread():
            keys = problem.topic.astype(np.int64) * max(problem.width, 1) + placement
            return int((np.unique(keys, return_counts=True)[1].astype(np.int64) ** 2).sum())
        case MembersUsed():
            return len(np.unique(placement))


def level_values(
    problem: Problem, levels: Sequence[Level], placement: Placement
) -> tuple[int, ...]:
    """Measure a placement on every level."""
    return tuple(level_value(problem, level, placement) for level in levels)


def imbalance_of(measure: Measure, loads: Sequence[int]) -> int:
    """Measure loads; leximax by its rank."""
    if measure is Measure.LEXIMAX:
        return leximax_rank(loads)
    return metrics.MEASURES[metrics.Measure(measure)](loads)


def movement_costs(problem: Problem, level: Movement) -> Weights:
    """Return what moving each row costs; rows without an owner have a cost that never counts."""
    if level.cost is MovementCost.COUNT:
        return np.ones(problem.size, dtype=np.int64)
    if level.cost is MovementCost.WEIGHT:
        return problem.weight
    table = dict(level.cost)
    costs = [table.get(tp, level.other) for tp in problem.row_of]
    return np.array(costs, dtype=np.int64 if sum(costs) < 2**60 else object)


class RackTable:
    """Which rows lie across racks from which members."""

    def __init__(self, problem: Problem) -> None:
        names: dict[str | None, int] = {
            rack: index
            for index, rack in enumerate(
                dict.fromkeys(problem.group.members[index].rack for index in problem.members)
            )
        }
        self.rack_of = np.array(
            [names[problem.group.members[index].rack] for index in problem.members], dtype=np.int32
        )
        self.near = np.ones((problem.size, max(len(names), 1)), dtype=np.bool_)
        start = 0
        for index, topic in enumerate(problem.group.topics):
            if problem.set_of_topic[index] < 0:
                continue
            for number, racks in enumerate(topic.racks or ()):
                if any(rack is not None for rack in racks):
                    self.near[start + number] = [name is None or name in racks for name in names]
            start += topic.partitions

    def across(self, placement: Placement) -> NDArray[np.bool_]:
        """Say of every row whether it is across racks from its member."""
        rows = np.arange(len(placement))
        return ~self.near[rows, self.rack_of[placement]]

    def far(self, row: int, position: int) -> bool:
        """Say whether one row would be across racks from one member."""
        return not self.near[row, self.rack_of[position]]


def broken(
    problem: Problem, constraints: Iterable[Constraint], placement: Placement
) -> Iterator[Constraint]:
    """Yield the constraints that a placement breaks."""
    for constraint in constraints:
        if not _holds(problem, constraint, placement):
            yield constraint


def _holds(problem: Problem, constraint: Constraint, placement: Placement) -> bool:
    match constraint:
        case Capacity():
            return _within(problem, constraint, problem.loads(placement))
        case MaxPartitions():
            counts = np.bincount(placement, minlength=problem.width).tolist()
            return _within(problem, constraint, counts)
        case MaxMoves():
            return level_value(problem, Movement(), placement) <= constraint.limit
        case _:
            return _pairs_hold(problem, constraint, placement)


def _pairs_hold(
    problem: Problem,
    constraint: Pinned | Forbidden | Colocated | Separated,
    placement: Placement,
) -> bool:
    match constraint:
        case Pinned():
            row = problem.row_of.get(TopicPartition(constraint.topic, constraint.partition))
            position = problem.position_of.get(constraint.member, NO_OWNER)
            return row is not None and bool(placement[row] == position)
        case Forbidden():
            rows = topic_rows(problem, constraint.topic, constraint.partition)
            position = problem.position_of.get(constraint.member, NO_OWNER)
            return not bool((placement[rows] == position).any())
        case Colocated():
            together = bundles(problem, constraint)
            return all(len(np.unique(placement[list(rows)])) == 1 for rows in together)
        case Separated():
            apart = np.array(separated_rows(problem, constraint), dtype=np.int64)
            return len(np.unique(placement[apart])) == len(apart)


def _within(problem: Problem, constraint: Capacity | MaxPartitions, column: Sequence[int]) -> bool:
    if constraint.member is None:
        return all(amount <= constraint.limit for amount in column)
    position = problem.position_of.get(constraint.member)
    return position is None or column[position] <= constraint.limit


def topic_rows(problem: Problem, topic: str, number: int | None = None) -> Column:
    """Rows of a topic, or the one row of a partition; none where nobody consumes it."""
    index = next(i for i, t in enumerate(problem.group.topics) if t.name == topic)
    rows = np.flatnonzero(problem.topic == index).astype(np.int32)
    return rows if number is None or not len(rows) else rows[number : number + 1]


def bundles(problem: Problem, constraint: Colocated) -> list[tuple[int, ...]]:
    """Rows that must stay together, for each partition number that several topics share."""
    columns = [topic_rows(problem, topic).tolist() for topic in constraint.topics]
    longest = max((len(column) for column in columns), default=0)
    together = [
        tuple(column[number] for column in columns if number < len(column))
        for number in range(longest)
    ]
    return [rows for rows in together if len(rows) > 1]


def separated_rows(problem: Problem, constraint: Separated) -> list[int]:
    """Rows that must be apart, those that nobody consumes left out."""
    found = (problem.row_of.get(tp) for tp in constraint.partitions)
    return [row for row in found if row is not None]
