"""Classes of interchangeable partitions, which make the CP-SAT model smaller."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.topic_partitions import Column
from kassay.solver import constraints, objective
from kassay.solver.evaluation import (
    RackTable,
    colocated_partitions,
    colocation_blocks,
    movement_costs,
    separated_partitions,
    topic_partitions,
)
from kassay.solver.problem import Ints, Placement, Problem


@dataclass(frozen=True, slots=True)
class SymmetryClasses:
    """Classes of partitions that are equal for all levels and constraints."""

    class_of: Ints  # per partition
    partitions: tuple[Column, ...]  # per class, ascending

    def counts(self, placement: Placement, members: int) -> Ints:
        """Return the number of partitions per class and member in a placement, as a matrix."""
        keys = self.class_of * members + placement
        return np.bincount(keys, minlength=len(self.partitions) * members).reshape(-1, members)

    def to_placement(self, problem: Problem, counts: Ints) -> Placement:
        """Convert partition counts per class and member to a placement.

        Owners keep partitions first; the other partitions follow by ascending number.
        """
        placement = np.full(problem.partition_count, NO_OWNER, dtype=np.int32)
        members = np.arange(problem.member_count, dtype=np.int32)
        for index, partitions in enumerate(self.partitions):
            left = counts[index].copy()
            free = []
            for partition in partitions.tolist():
                owner = problem.owner[partition]
                if owner != NO_OWNER and left[owner] > 0:
                    placement[partition] = owner
                    left[owner] -= 1
                else:
                    free.append(partition)
            placement[free] = np.repeat(members, left)
        return placement


def symmetry_classes(
    problem: Problem, levels: Sequence[objective.Level], rules: Sequence[constraints.Constraint]
) -> SymmetryClasses:
    """Group partitions that are equal in every attribute that levels and constraints use."""
    if not problem.partition_count:
        return SymmetryClasses(np.zeros(0, dtype=np.int64), ())
    columns = [problem.consumer_set, _codes(problem.weight)]
    if any(
        isinstance(each, objective.Movement | constraints.MaxMoves) for each in (*levels, *rules)
    ):
        columns.append(problem.owner)
    columns += chain.from_iterable(_attributes(problem, level) for level in levels)
    if any(isinstance(constraint, constraints.Forbidden) for constraint in rules):
        columns.append(problem.topic)
    named = chain.from_iterable(_named(problem, constraint) for constraint in rules)
    columns.append(_codes_of_partitions(problem, named))
    columns += [
        _codes_of_partitions(problem, chain.from_iterable(colocation_blocks(problem, level)))
        for level in levels
        if isinstance(level, objective.Colocation)
    ]
    table = np.stack([np.asarray(column).reshape(-1) for column in columns], axis=1)
    class_of = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(class_of, kind="stable").astype(np.int32)
    starts = np.flatnonzero(np.diff(class_of[order])) + 1
    return SymmetryClasses(class_of, tuple(np.split(order, starts)))


def _codes(column: NDArray[np.int64]) -> Ints:
    return np.unique(column, return_inverse=True)[1].reshape(-1)


def _attributes(problem: Problem, level: objective.Level) -> list[NDArray[np.integer]]:
    """Return the attributes of partitions that a level uses, besides owners and colocations."""
    match level:
        case objective.Movement():
            is_listed = not isinstance(level.cost, objective.MovementCost)
            return [_codes(movement_costs(problem, level))] if is_listed else []
        case objective.CrossRack():
            racks = RackTable(problem).has_replica
            return [np.unique(racks, axis=0, return_inverse=True)[1]]
        case objective.TopicSpread():
            return [problem.topic]
        case (
            objective.Imbalance()
            | objective.HostImbalance()
            | objective.MembersUsed()
            | objective.Colocation()
        ):
            return []
        case objective.FlowLevel():
            raise objective.only_by_flows(level)
        case _:
            assert_never(level)


def _named(problem: Problem, constraint: constraints.Constraint) -> Sequence[int]:
    """Return the partitions that a constraint names, which are classes of their own."""
    match constraint:
        case constraints.Pinned() | constraints.Forbidden():
            if constraint.partition is None:
                return []
            return [*topic_partitions(problem, constraint.topic, constraint.partition)]
        case constraints.Colocated():
            return [*chain.from_iterable(colocated_partitions(problem, constraint))]
        case constraints.Separated():
            return separated_partitions(problem, constraint)
        case constraints.Capacity() | constraints.MaxPartitions() | constraints.MaxMoves():
            return []
        case _:
            assert_never(constraint)


def _codes_of_partitions(problem: Problem, partitions: Iterable[int]) -> Ints:
    """Return a code per partition: unique for the given partitions, else 0."""
    codes = np.zeros(problem.partition_count, dtype=np.int64)
    named = list(partitions)
    codes[named] = np.array(named, dtype=np.int64) + 1
    return codes
