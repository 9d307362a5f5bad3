"""Relaxed assignment problem of a refutation: blocks of partitions, members and limits.

A refutation proves that no assignment meets all constraints and keeps all levels within given
limits. Partitions that must stay together form a block. Limits that are linear in the blocks
are rows of costs; limits of imbalance become maximum loads.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver import constraints, objective
from kassay.solver.bounds.level_bounds import level_bound, max_loads_within
from kassay.solver.evaluation import (
    RackTable,
    colocated_partitions,
    movement_costs,
    separated_partitions,
    topic_partitions,
)
from kassay.solver.number_ranges import Weights
from kassay.solver.problem import Problem

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
            if level == objective.Imbalance(Measure.SUM_OF_SQUARES, level.tolerance)
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
