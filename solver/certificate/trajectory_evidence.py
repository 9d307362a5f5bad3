"""Permitted loads in a sequence of rebalances, and a lower bound on its moves.

All least majorised load vectors of a group share one structure (A. Frank, K. Murota. "Decreasing
minimization on M-convex sets: background and structures". Mathematical Programming 195, 2022):
sets of members, by descending load, that receive the partitions which no member outside the set
and the sets before it can receive. Counting proves such sets, see docs/proofs.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER, Assignment, violations
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.group_remarks import require_single_copies
from kassay.reference.model.load_metrics import Measure, load_vector, member_units
from kassay.solver.evaluation import group_constraints, mean_load
from kassay.solver.network.subscription_network import build_network
from kassay.solver.objective import Imbalance, Level, Movement, MovementCost
from kassay.solver.problem import (
    UNREACHABLE,
    Arithmetic,
    Ints,
    Problem,
    build_problem,
    first_partitions,
)

MemberSets = Sequence[Sequence[str]]
LoadEvidence = MemberSets | Assignment
"""Evidence of the permitted loads: sets of members by descending load, or, if weights or speeds
differ in the stream, an assignment with the minimum makespan."""
Mask = NDArray[np.bool_]


def trajectory_imbalance(levels: Sequence[Level]) -> Imbalance:
    """Return the imbalance level. Raise UsageError for unsupported levels."""
    match levels:
        case [Imbalance(measure=Measure.SUM_OF_SQUARES | Measure.LEXIMAX) as level, Movement()]:
            is_supported = not level.tolerance
        case [Imbalance(measure=Measure.MAKESPAN) as level, Movement()]:
            is_supported = True
        case _:
            is_supported = False
    if not is_supported or levels[1] != Movement(MovementCost.COUNT):
        raise UsageError(
            "a trajectory minimises makespan (or sum_of_squares or leximax without a tolerance), "
            f"then movement; got {', '.join(level.name for level in levels)}"
        )
    return level


class LoadRange(NamedTuple):
    """Minimum and maximum load per member, and the total load of these members.

    Loads are numbers of partitions, or total weights if weights or speeds differ in the stream.
    """

    members: Ints  # in the stream
    low: Ints
    high: Ints
    total: int


@dataclass(frozen=True)
class PermittedAssignments:
    """Limits that define the permitted assignments at one rebalance.

    ``subscribed`` and ``permitted`` are tables of sets of consumers and members of the stream:
    whether the member subscribes, and whether the level of imbalance permits it to receive a
    partition. The last row, for partitions that are not assigned, is empty.
    """

    problem: Problem
    members: Ints  # number in the stream of each member of the problem
    subscribed: Mask
    permitted: Mask
    ranges: tuple[LoadRange, ...]
    least_makespan: int | None = None  # by counting; None if weights or speeds differ in the stream

    def permits(self, loads: Ints) -> bool:
        """Return whether loads are within the limits and have the required totals."""
        return all(
            bool(((one.low <= loads[one.members]) & (loads[one.members] <= one.high)).all())
            and int(loads[one.members].sum()) == one.total
            for one in self.ranges
        )

    @cached_property
    def first_partitions(self) -> dict[str, int]:
        """Return the index of the first partition of each topic."""
        return first_partitions(self.problem)

    @cached_property
    def most(self) -> Ints:
        """Return the maximum load per member, or 0 for absent members."""
        most = np.zeros(self.permitted.shape[1], dtype=np.int64)
        for one in self.ranges:
            most[one.members] = one.high
        return most


def permitted_loads(
    problem: Problem, level: Imbalance, evidence: LoadEvidence, members: Mapping[str, int]
) -> PermittedAssignments:
    """Derive the permitted assignments of a group from evidence about its imbalance."""
    number = np.array([members[name] for name in problem.member_index], dtype=np.int64)
    subscribed = np.zeros((len(problem.consumer_sets) + 1, len(members)), dtype=np.bool_)
    for row, own in enumerate(problem.consumer_sets):
        subscribed[row, number[own]] = True
    if isinstance(evidence, Assignment):
        most = _load_limits(problem, level, evidence)
        whole = LoadRange(number, np.zeros_like(most), most, problem.total)
        return PermittedAssignments(problem, number, subscribed, subscribed, (whole,))
    capacity = build_network(problem, group_constraints(problem.group)).capacity
    if capacity is None:
        capacity = np.full(problem.member_count, problem.partition_count, dtype=np.int64)
    rank = _ranks(problem, evidence)
    first = [int(rank[own].max()) for own in problem.consumer_sets]
    of_set = np.bincount(problem.consumer_set, minlength=len(problem.consumer_sets))
    totals = [0] * len(evidence)
    for at, total in zip(first, of_set.tolist(), strict=True):
        totals[at] += total
    limits = [mean_load(total, capacity[rank == at]) for at, total in enumerate(totals)]
    if any(high <= low for high, low in pairwise(limits)):
        raise InputError(f"{problem.group.label}: loads of member sets must decrease, got {limits}")
    least_makespan = max(limits, default=0)
    if level.measure is Measure.MAKESPAN:
        weight = problem.group.uniform_weight or 1  # the ranges are numbers of partitions
        limit = level.tolerance.limit(least_makespan * weight) // weight
        most = np.minimum(capacity, min(limit, problem.partition_count))
        whole = LoadRange(number, np.zeros_like(most), most, problem.partition_count)
        return PermittedAssignments(
            problem, number, subscribed, subscribed, (whole,), least_makespan
        )
    permitted = np.zeros_like(subscribed)
    for row, own in enumerate(problem.consumer_sets):
        permitted[row, number[own[rank[own] == first[row]]]] = True
    ranges = tuple(
        LoadRange(
            number[rank == at],
            np.minimum(capacity[rank == at], max(high - 1, 0)),
            np.minimum(capacity[rank == at], high),
            total,
        )
        for at, (high, total) in enumerate(zip(limits, totals, strict=True))
    )
    return PermittedAssignments(problem, number, subscribed, permitted, ranges, least_makespan)


def _load_limits(problem: Problem, level: Imbalance, best: Assignment) -> Ints:
    """Return the maximum load per member, from an assignment with the minimum makespan."""
    group = problem.group
    for violation in violations(group, best):
        raise InputError(f"{group.label}: the assignment in the evidence is not valid: {violation}")
    loads, units = load_vector(group, best), problem.member_units
    limit = level.tolerance.limit(max(units.relative_loads(loads), default=0))
    most = np.array(
        [min(limit // factor, problem.total) for factor in units.factors], dtype=np.int64
    )
    for name, member in problem.member_index.items():
        capacity = group.member_table()[name].capacity
        if isinstance(capacity, tuple):
            raise InputError(f"{group.label}: a trajectory supports only one weight per partition")
        if capacity is not None and loads[member] > capacity:
            raise InputError(f"{group.label}: {name!r} has load {loads[member]}, above {capacity=}")
        most[member] = most[member] if capacity is None else min(most[member], capacity)
    return most


def _ranks(problem: Problem, sets: MemberSets) -> Ints:
    """Return the index of the set that contains each member."""
    rank = np.full(problem.member_count, -1, dtype=np.int64)
    for at, names in enumerate(sets):
        for name in names:
            member = problem.member_index.get(name)
            if member is None or rank[member] != -1:
                raise InputError(
                    f"{problem.group.label}: {name!r} occurs twice in the member sets "
                    "or consumes no topic; list each consuming member once"
                )
            rank[member] = at
    if (rank < 0).any():
        missing = problem.member_id(int(np.argmin(rank)))
        raise InputError(f"{problem.group.label}: member {missing!r} must be in a member set")
    return rank


class Block(NamedTuple):
    """Consecutive partitions of one topic with equal weights at each rebalance."""

    topic: str
    first: int
    end: int


@dataclass(frozen=True)
class Stream:
    """Sequence of rebalances. Partitions that are equal at each rebalance form a class."""

    members: Mapping[str, int]
    rebalances: tuple[PermittedAssignments, ...]
    blocks: tuple[tuple[Block, ...], ...]
    consumer_set: Ints  # per class and rebalance, the row of the tables of the rebalance
    weight: Ints  # of a partition, per class and rebalance; 1 if weights and speeds are equal

    @cached_property
    def start(self) -> Ints:
        """Count the partitions per class that each member owns before the first rebalance."""
        start = np.zeros((len(self.blocks), len(self.members)), dtype=np.int64)
        rebalance = self.rebalances[0]
        for row in np.flatnonzero(self.assigned(0)).tolist():
            owners = rebalance.problem.owner[self.partitions(row, 0)]
            owned = rebalance.members[owners[owners != NO_OWNER]]
            start[row] = np.bincount(owned, minlength=len(self.members))
        return start

    def partitions(self, row: int, rebalance: int) -> Ints:
        """Return the indices of the partitions in a class at one rebalance."""
        first = self.rebalances[rebalance].first_partitions
        return np.concatenate(
            [first[block.topic] + np.arange(block.first, block.end) for block in self.blocks[row]]
        )

    @cached_property
    def count(self) -> Ints:
        """Return the number of partitions in each class of equal partitions."""
        sizes = [sum(block.end - block.first for block in blocks) for blocks in self.blocks]
        return np.array(sizes, dtype=np.int64)

    @cached_property
    def is_weighted(self) -> bool:
        """Return whether weights or speeds differ at any rebalance."""
        return any(one.least_makespan is None for one in self.rebalances)

    def permitted(self, rebalance: int) -> Mask:
        """Return a Boolean table of classes of partitions and members that may receive them."""
        one = self.rebalances[rebalance]
        fits = self.weight[:, rebalance, None] <= one.most
        return np.asarray(one.permitted[self.consumer_set[:, rebalance]] & fits)

    def loads(self, rebalance: int, counts: Ints) -> Ints:
        """Compute the load per member from the partition counts per class and member."""
        return np.asarray(self.weight[:, rebalance] @ counts)

    def subscribed(self, rebalance: int) -> Mask:
        """Return a Boolean table of classes of partitions and their subscribed members."""
        return np.asarray(self.rebalances[rebalance].subscribed[self.consumer_set[:, rebalance]])

    def assigned(self, rebalance: int) -> Mask:
        """Return which classes of partitions have a subscriber at a rebalance."""
        return np.asarray(
            self.consumer_set[:, rebalance] < len(self.rebalances[rebalance].subscribed) - 1
        )


def build_stream(
    groups: Sequence[Group], levels: Sequence[Level], evidence: Sequence[LoadEvidence]
) -> Stream:
    """Build a `Stream` from one group and one piece of evidence per rebalance."""
    level = trajectory_imbalance(levels)
    check_groups(groups, level)
    members: dict[str, int] = {}
    for group in groups:
        for member in group.members:
            members.setdefault(member.id, len(members))
    weighted = is_weighted(groups)
    kind, cause = ("an assignment", "different") if weighted else ("sets of members", "all equal")
    for number, one in enumerate(evidence):
        if isinstance(one, Assignment) != weighted:
            raise InputError(
                f"evidence of rebalance {number}: must be {kind}, because weights and speeds are "
                f"{cause}, got {type(one).__name__}"
            )
    rebalances = tuple(
        permitted_loads(build_problem(group), level, one, members)
        for group, one in zip(groups, evidence, strict=True)
    )
    histories = _histories(groups, rebalances)
    blocks = tuple(map(tuple, histories.values()))
    table = np.array(list(histories), dtype=np.int64).reshape(len(histories), len(groups), 2)
    return Stream(members, rebalances, blocks, table[:, :, 0], table[:, :, 1])


def is_weighted(groups: Sequence[Group]) -> bool:
    """Return whether weights or speeds differ in any group."""
    return not all(group.uniform_weight for group in groups)


def check_groups(groups: Sequence[Group], level: Imbalance) -> None:
    """Raise UsageError if trajectories do not support the groups or the level."""
    if not groups:
        raise UsageError("groups is empty; pass at least one group")
    for number, group in enumerate(groups):
        require_single_copies(group)
        if group.window_count > 1:
            raise UsageError(f"groups[{number}]: a partition must have one weight, not several")
    if is_weighted(groups) and level.measure is not Measure.MAKESPAN:
        raise UsageError(
            f"if weights or speeds differ, the measure must be makespan, got {level.measure}"
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
    """Group partitions by their subscribers and weights at all rebalances."""
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


_NOT_PERMITTED = UNREACHABLE // 2


def greatest_price(stream: Stream) -> int:
    """Return the greatest dual price for which all sums fit into 64 bits."""
    return Arithmetic.INT64.value // (4 * len(stream.rebalances))


def price_bound(stream: Stream, prices: Ints, scale: int) -> int:
    """Return a lower bound on the moves over all rebalances.

    ``prices`` are those of one unit of load per rebalance and member, in units of ``1 / scale``
    moves. Any prices give a valid bound. Raise InputError if a price or the scale is too large.
    """
    heaviest = max(int(stream.weight.max(initial=0)), 1)
    most = greatest_price(stream)
    highest = heaviest * int(np.abs(prices).max(initial=0))
    if highest > most or not 1 <= scale <= most:
        raise InputError(
            f"prices must be at most {most} and scale from 1 to {most}, got {highest} and {scale}"
        )
    owned_cost, free_cost = _path_costs(stream, prices, scale)
    total = 0
    for row, count in enumerate(stream.count.tolist()):
        owned = stream.start[row]
        held = np.flatnonzero(owned)
        total += (count - int(owned.sum())) * int(free_cost[row])
        pairs = zip(owned[held].tolist(), owned_cost[row, held].tolist(), strict=True)
        total += sum(number * cost for number, cost in pairs)
    for price, rebalance in zip(prices, stream.rebalances, strict=True):
        total -= sum(_highest_value(one, price) for one in rebalance.ranges)
    return -(-total // scale)


def _path_costs(stream: Stream, prices: Ints, scale: int) -> tuple[Ints, Ints]:
    """Compute the cheapest path of each class of partitions through all rebalances.

    The first array has the cost by class and owner at the start, the second one the cost by class
    of a partition without an owner.
    """
    classes, members = stream.start.shape
    owned_cost = np.zeros((classes, members), dtype=np.int64)
    free_cost = np.zeros(classes, dtype=np.int64)
    for at in reversed(range(len(stream.rebalances))):
        priced = owned_cost + stream.weight[:, at, None] * prices[at]
        paths = np.where(stream.permitted(at), priced, _NOT_PERMITTED)
        cheapest = paths.min(axis=1, initial=_NOT_PERMITTED)
        free_cost = np.where(stream.assigned(at), cheapest, free_cost)
        moved = free_cost + np.where(stream.assigned(at), scale, 0)
        owned_cost = np.where(
            stream.subscribed(at), np.minimum(paths, moved[:, None]), free_cost[:, None]
        )
    return owned_cost, free_cost


def _highest_value(one: LoadRange, price: Ints) -> int:
    """Maximise the total price of loads within the limits of a `LoadRange`."""
    prices = price[one.members].tolist()
    pairs = zip(prices, one.low.tolist(), one.high.tolist(), strict=True)
    value, rest = 0, one.total - int(one.low.sum())
    for own, low, high in sorted(pairs, reverse=True):
        more = min(high - low, rest)
        value, rest = value + own * (low + more), rest - more
    return value
