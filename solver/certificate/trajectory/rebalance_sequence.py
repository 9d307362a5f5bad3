"""Sequence of rebalances: permitted assignments at each, and partitions with equal histories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.group_remarks import require_single_copies
from kassay.reference.model.metrics import Measure, member_units
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.certificate.trajectory.permitted_loads import (
    LoadEvidence,
    Mask,
    PermittedAssignments,
    permitted_loads,
    trajectory_imbalance,
)
from kassay.solver.number_ranges import Arithmetic
from kassay.solver.objective import Imbalance, Level
from kassay.solver.problem import Ints, Problem, build_problem


class Block(NamedTuple):
    """Consecutive partitions of one topic with the same history."""

    topic: str
    first: int
    end: int


@dataclass(frozen=True)
class Stream:
    """Rebalances of a group, with its partitions in classes of equal histories.

    Parameters
    ----------
    consumer_set
        Per class and rebalance, the row of the tables of the rebalance.
    weight
        Per class and rebalance, the load of a partition; 1 if weights and speeds are equal.
    start
        Per class and member, the number of partitions that the member owns at the start.
    """

    members: Mapping[str, int]
    rebalances: tuple[PermittedAssignments, ...]
    blocks: tuple[tuple[Block, ...], ...]
    consumer_set: Ints
    weight: Ints
    start: Ints

    @cached_property
    def count(self) -> Ints:
        """Number of partitions per class."""
        sizes = [sum(block.end - block.first for block in blocks) for blocks in self.blocks]
        return np.array(sizes, dtype=np.int64)

    @cached_property
    def is_weighted(self) -> bool:
        """Return whether weights or speeds differ at a rebalance."""
        return any(one.least_makespan is None for one in self.rebalances)

    def permitted(self, rebalance: int) -> Mask:
        """Return, per class and member, whether the member may receive a partition."""
        one = self.rebalances[rebalance]
        fits = self.weight[:, rebalance, None] <= one.most
        return np.asarray(one.permitted[self.consumer_set[:, rebalance]] & fits)

    def loads(self, rebalance: int, counts: Ints) -> Ints:
        """Return the load per member, from counts per class and member."""
        return np.asarray(self.weight[:, rebalance] @ counts)

    def subscribed(self, rebalance: int) -> Mask:
        """Return, per class and member, whether the member subscribes to the topic."""
        return np.asarray(self.rebalances[rebalance].subscribed[self.consumer_set[:, rebalance]])

    def assigned(self, rebalance: int) -> Mask:
        """Return, per class, whether its partitions are assigned at a rebalance."""
        return np.asarray(
            self.consumer_set[:, rebalance] < len(self.rebalances[rebalance].subscribed) - 1
        )


def build_stream(
    groups: Sequence[Group], levels: Sequence[Level], evidence: Sequence[LoadEvidence]
) -> Stream:
    """Build the stream of a sequence of groups, with evidence of the permitted loads per group.

    Raises
    ------
    InputError
        If the evidence does not prove the loads of a group.
    UsageError
        If the levels do not fit the groups.
    """
    level = trajectory_imbalance(levels)
    check_groups(groups, level)
    members: dict[str, int] = {}
    for group in groups:
        for member in group.members:
            members.setdefault(member.id, len(members))
    if any(isinstance(one, Assignment) != is_weighted(groups) for one in evidence):
        raise InputError(
            "the evidence must consist of sets of members if all weights and speeds are equal, "
            "else of assignments"
        )
    rebalances = tuple(
        permitted_loads(build_problem(group), level, one, members)
        for group, one in zip(groups, evidence, strict=True)
    )
    histories = _histories(groups, rebalances)
    blocks = tuple(map(tuple, histories.values()))
    table = np.array(list(histories), dtype=np.int64).reshape(len(histories), len(groups), 2)
    start = _start(rebalances[0], blocks, members)
    return Stream(members, rebalances, blocks, table[:, :, 0], table[:, :, 1], start)


def is_weighted(groups: Sequence[Group]) -> bool:
    """Return whether weights or speeds differ in one of the groups."""
    return not all(group.uniform_weight for group in groups)


def check_groups(groups: Sequence[Group], level: Imbalance) -> None:
    """Check that a trajectory with the level of imbalance is defined for the groups."""
    if not groups:
        raise UsageError("groups is empty; pass at least one group")
    for group in groups:
        require_single_copies(group)
    if is_weighted(groups) and level.measure is not Measure.MAKESPAN:
        raise UsageError(
            f"if weights or speeds differ, a trajectory requires makespan, got {level.measure}"
        )
    for number, group in enumerate(groups) if is_weighted(groups) else ():
        total = sum(topic.total_weight for topic in group.topics)
        total *= max(member_units(group).factors, default=1)
        if not Arithmetic.CP_SAT.represents(total):
            most = Arithmetic.CP_SAT.value
            raise UsageError(f"groups[{number}]: the total load must be below {most}, got {total}")


def _histories(
    groups: Sequence[Group], rebalances: Sequence[PermittedAssignments]
) -> dict[tuple[tuple[int, int], ...], list[Block]]:
    """Return the partitions by history: the row of the tables and the weight at each rebalance."""
    weighted = is_weighted(groups)
    present: dict[str, dict[int, tuple[Topic, int]]] = {}  # topic and row by name and rebalance
    for at, (group, rebalance) in enumerate(zip(groups, rebalances, strict=True)):
        rows = rebalance.problem.consumer_set_of_topic.tolist()
        for topic, row in zip(group.topics, rows, strict=True):
            if row >= 0:
                present.setdefault(topic.name, {})[at] = topic, row
    absent = [(len(rebalance.subscribed) - 1, 0) for rebalance in rebalances]
    histories: dict[tuple[tuple[int, int], ...], list[Block]] = {}
    for name, states in present.items():
        ends = {0, *(topic.partitions for topic, _ in states.values())}
        if weighted:
            for topic, _ in states.values():
                pairs = enumerate(pairwise(topic.weights or ()), start=1)
                ends |= {at for at, (one, other) in pairs if one != other}
        for first, end in pairwise(sorted(ends)):
            history = list(absent)
            for at, (topic, row) in states.items():
                if topic.partitions >= end:
                    history[at] = row, topic.weight(first) if weighted else 1
            histories.setdefault(tuple(history), []).append(Block(name, first, end))
    return histories


def _start(
    rebalance: PermittedAssignments, blocks: Sequence[Sequence[Block]], members: Mapping[str, int]
) -> Ints:
    problem = rebalance.problem
    start = np.zeros((len(blocks), len(members)), dtype=np.int64)
    number = np.array([members[name] for name in problem.member_index], dtype=np.int64)
    first = first_partitions(problem)
    counts = {name: problem.group.topic_table()[name].partitions for name in first}
    for row, one in enumerate(blocks):
        for topic, low, high in one:
            if high <= counts.get(topic, 0):
                owners = problem.owner[first[topic] + low : first[topic] + high]
                owned = number[owners[owners != NO_OWNER]]
                start[row] += np.bincount(owned, minlength=len(members))
    return start


def first_partitions(problem: Problem) -> dict[str, int]:
    """Return the index of the first partition of each topic of a problem."""
    first: dict[str, int] = {}
    index = 0
    pairs = zip(problem.group.topics, problem.consumer_set_of_topic.tolist(), strict=True)
    for topic, consumer_set in pairs:
        if consumer_set >= 0:
            first[topic.name] = index
            index += topic.partitions
    return first
