"""Sequence of rebalances: permitted assignments at each, and partitions with equal histories.

All least majorised load vectors of a group share one structure (A. Frank, K. Murota. "Decreasing
minimization on M-convex sets: background and structures". Mathematical Programming 195, 2022):
sets of members, by descending load, that receive the partitions which no member outside the set
and the sets before it can receive. Counting proves such sets, see docs/proofs.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds.most_even_loads import mean_load
from kassay.solver.constraints import group_constraints
from kassay.solver.objective import Imbalance, Level, Movement, MovementCost
from kassay.solver.problem import Ints, Problem, build_problem
from kassay.solver.subscription_network import build_network

MemberSets = Sequence[Sequence[str]]
Mask = NDArray[np.bool_]


def trajectory_imbalance(levels: Sequence[Level]) -> Imbalance:
    """Return the imbalance level of a trajectory. Raise UsageError if the levels do not fit."""
    match levels:
        case [Imbalance(measure=Measure.SUM_OF_SQUARES | Measure.LEXIMAX) as level, Movement()]:
            is_supported = not level.tolerance
        case [Imbalance(measure=Measure.MAKESPAN) as level, Movement()]:
            is_supported = True
        case _:
            is_supported = False
    if not is_supported or levels[1] != Movement(MovementCost.COUNT):
        raise UsageError(
            "a trajectory requires the levels imbalance, then movement: sum_of_squares or leximax "
            "without a tolerance, or makespan"
        )
    return level


class LoadRange(NamedTuple):
    """Loads of some members at one rebalance: limits per member, and the total."""

    members: Ints  # in the stream
    low: Ints
    high: Ints
    total: int

    def contains(self, loads: Ints) -> bool:
        """Return whether the loads of all members of the stream keep the limits and the total."""
        own = loads[self.members]
        within = (self.low <= own) & (own <= self.high)
        return bool(within.all()) and int(own.sum()) == self.total


@dataclass(frozen=True)
class Rebalance:
    """Permitted assignments at one rebalance.

    Parameters
    ----------
    subscribed, permitted
        Tables of sets of consumers and members of the stream: whether the member subscribes, and
        whether the level of imbalance permits it to receive a partition. The last row, for
        partitions that are not assigned, is empty.
    least_makespan
        Lower bound on the makespan, by counting.
    """

    problem: Problem
    subscribed: Mask
    permitted: Mask
    ranges: tuple[LoadRange, ...]
    least_makespan: int


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
    start
        Per class and member, the number of partitions that the member owns at the start.
    """

    members: Mapping[str, int]
    rebalances: tuple[Rebalance, ...]
    blocks: tuple[tuple[Block, ...], ...]
    consumer_set: Ints
    start: Ints

    @cached_property
    def count(self) -> Ints:
        """Number of partitions per class."""
        sizes = [sum(block.end - block.first for block in blocks) for blocks in self.blocks]
        return np.array(sizes, dtype=np.int64)

    def permitted(self, rebalance: int) -> Mask:
        """Return, per class and member, whether the member may receive a partition."""
        return np.asarray(self.rebalances[rebalance].permitted[self.consumer_set[:, rebalance]])

    def subscribed(self, rebalance: int) -> Mask:
        """Return, per class and member, whether the member subscribes to the topic."""
        return np.asarray(self.rebalances[rebalance].subscribed[self.consumer_set[:, rebalance]])

    def assigned(self, rebalance: int) -> Mask:
        """Return, per class, whether its partitions are assigned at a rebalance."""
        return np.asarray(
            self.consumer_set[:, rebalance] < len(self.rebalances[rebalance].subscribed) - 1
        )


def build_stream(
    groups: Sequence[Group], levels: Sequence[Level], member_sets: Iterable[MemberSets]
) -> Stream:
    """Build the stream of a sequence of groups.

    Parameters
    ----------
    member_sets
        Per group, sets of members by descending load.

    Raises
    ------
    InputError
        If the sets do not prove the loads of a group.
    UsageError
        If the levels do not fit the groups.
    """
    level = trajectory_imbalance(levels)
    check_groups(groups)
    members: dict[str, int] = {}
    for group in groups:
        for member in group.members:
            members.setdefault(member.id, len(members))
    rebalances = tuple(
        _rebalance(build_problem(group), level, sets, members)
        for group, sets in zip(groups, member_sets, strict=True)
    )
    histories = _histories(groups, rebalances)
    blocks = tuple(map(tuple, histories.values()))
    sets = np.array(list(histories), dtype=np.int64).reshape(len(histories), len(groups))
    return Stream(members, rebalances, blocks, sets, _start(rebalances[0], blocks, members))


def check_groups(groups: Sequence[Group]) -> None:
    """Check for at least one group, members of equal speed and partitions of equal weight."""
    if not groups:
        raise UsageError("groups is empty; pass at least one group")
    for number, group in enumerate(groups):
        if not group.uniform_weight:
            raise UsageError(
                f"groups[{number}]: a trajectory requires equal weights above 0 and equal speeds"
            )


def _rebalance(
    problem: Problem, level: Imbalance, sets: MemberSets, members: Mapping[str, int]
) -> Rebalance:
    number = np.array([members[name] for name in problem.member_index], dtype=np.int64)
    capacity = build_network(problem, group_constraints(problem.group)).capacity
    if capacity is None:
        capacity = np.full(problem.member_count, problem.partition_count, dtype=np.int64)
    rank = _ranks(problem, sets)
    first = [int(rank[own].max()) for own in problem.consumer_sets]
    subscribed = np.zeros((len(problem.consumer_sets) + 1, len(members)), dtype=np.bool_)
    permitted = subscribed.copy()
    is_makespan = level.measure is Measure.MAKESPAN
    for row, own in enumerate(problem.consumer_sets):
        subscribed[row, number[own]] = True
        permitted[row, number[own if is_makespan else own[rank[own] == first[row]]]] = True
    of_set = np.bincount(problem.consumer_set, minlength=len(problem.consumer_sets))
    totals = [0] * len(sets)
    for at, total in zip(first, of_set.tolist(), strict=True):
        totals[at] += total
    limits = [mean_load(total, capacity[rank == at]) for at, total in enumerate(totals)]
    if any(high <= low for high, low in pairwise(limits)):
        raise InputError(f"group {problem.group.id!r}: the loads of the sets do not decrease")
    least_makespan = max(limits, default=0)
    if is_makespan:
        most = np.minimum(capacity, level.tolerance.limit(least_makespan))
        whole = LoadRange(number, np.zeros_like(most), most, problem.partition_count)
        return Rebalance(problem, subscribed, permitted, (whole,), least_makespan)
    ranges = tuple(
        LoadRange(
            number[rank == at],
            np.minimum(capacity[rank == at], max(high - 1, 0)),
            np.minimum(capacity[rank == at], high),
            total,
        )
        for at, (high, total) in enumerate(zip(limits, totals, strict=True))
    )
    return Rebalance(problem, subscribed, permitted, ranges, least_makespan)


def _ranks(problem: Problem, sets: MemberSets) -> Ints:
    """Return the position of the set of each member of the problem."""
    rank = np.full(problem.member_count, -1, dtype=np.int64)
    for at, names in enumerate(sets):
        for name in names:
            member = problem.member_index.get(name)
            if member is None or rank[member] != -1:
                raise InputError(
                    f"group {problem.group.id!r}: member {name!r} of a set consumes no topic, or "
                    "is in two sets"
                )
            rank[member] = at
    if (rank < 0).any():
        missing = problem.member_id(int(np.argmin(rank)))
        raise InputError(f"group {problem.group.id!r}: member {missing!r} is in no set")
    return rank


def _histories(
    groups: Sequence[Group], rebalances: Sequence[Rebalance]
) -> dict[tuple[int, ...], list[Block]]:
    """Return the partitions by their history: the row of the tables at each rebalance."""
    present: dict[str, dict[int, tuple[int, int]]] = {}  # topic, rebalance: partitions, row
    for at, (group, rebalance) in enumerate(zip(groups, rebalances, strict=True)):
        rows = rebalance.problem.consumer_set_of_topic.tolist()
        for topic, row in zip(group.topics, rows, strict=True):
            if row >= 0:
                present.setdefault(topic.name, {})[at] = topic.partitions, row
    absent = [len(rebalance.subscribed) - 1 for rebalance in rebalances]
    histories: dict[tuple[int, ...], list[Block]] = {}
    for name, states in present.items():
        ends = sorted({0, *(partitions for partitions, _ in states.values())})
        for first, end in pairwise(ends):
            history = list(absent)
            for at, (partitions, row) in states.items():
                if partitions >= end:
                    history[at] = row
            histories.setdefault(tuple(history), []).append(Block(name, first, end))
    return histories


def _start(
    rebalance: Rebalance, blocks: Sequence[Sequence[Block]], members: Mapping[str, int]
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
