"""Permitted loads of the members at one rebalance of a sequence.

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

from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.metrics import Measure, load_vector
from kassay.solver.constraints import group_constraints, mean_load
from kassay.solver.objective import Imbalance, Level, Movement, MovementCost
from kassay.solver.problem import Ints, Problem
from kassay.solver.subscription_network import build_network

MemberSets = Sequence[Sequence[str]]
LoadEvidence = MemberSets | Assignment
"""Evidence of the permitted loads: sets of members by descending load, or, if weights or speeds
differ in the stream, an assignment with the minimum makespan."""
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
    """Loads of some members at one rebalance: limits per member, and the total.

    Loads are numbers of partitions, or total weights if weights or speeds differ in the stream.
    """

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
class PermittedAssignments:
    """Permitted assignments at one rebalance.

    Parameters
    ----------
    subscribed, permitted
        Tables of sets of consumers and members of the stream: whether the member subscribes, and
        whether the level of imbalance permits it to receive a partition. The last row, for
        partitions that are not assigned, is empty.
    least_makespan
        Lower bound on the makespan, by counting; None if weights or speeds differ in the stream.
    """

    problem: Problem
    subscribed: Mask
    permitted: Mask
    ranges: tuple[LoadRange, ...]
    least_makespan: int | None = None

    @cached_property
    def most(self) -> Ints:
        """Maximum load per member of the stream."""
        return self._per_member([one.high for one in self.ranges])

    @cached_property
    def least(self) -> Ints:
        """Minimum load per member of the stream."""
        return self._per_member([one.low for one in self.ranges])

    def _per_member(self, loads: Sequence[Ints]) -> Ints:
        """Join the loads of the ranges to one load per member; 0 for members without a range."""
        found = np.zeros(self.permitted.shape[1], dtype=np.int64)
        for one, load in zip(self.ranges, loads, strict=True):
            found[one.members] = load
        return found


def permitted_loads(
    problem: Problem, level: Imbalance, evidence: LoadEvidence, members: Mapping[str, int]
) -> PermittedAssignments:
    """Return the permitted assignments of a group, from evidence of its level of imbalance.

    Parameters
    ----------
    members
        Number in the stream of each member.

    Raises
    ------
    InputError
        If the evidence does not prove the loads.
    """
    number = np.array([members[name] for name in problem.member_index], dtype=np.int64)
    subscribed = np.zeros((len(problem.consumer_sets) + 1, len(members)), dtype=np.bool_)
    for row, own in enumerate(problem.consumer_sets):
        subscribed[row, number[own]] = True
    if isinstance(evidence, Assignment):
        most = _load_limits(problem, level, evidence)
        whole = LoadRange(number, np.zeros_like(most), most, problem.total)
        return PermittedAssignments(problem, subscribed, subscribed, (whole,))
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
        raise InputError(
            f"group {problem.group.id!r}: the loads of the sets in the evidence must decrease"
        )
    least_makespan = max(limits, default=0)
    if level.measure is Measure.MAKESPAN:
        weight = problem.group.uniform_weight or 1  # the ranges are numbers of partitions
        limit = level.tolerance.limit(least_makespan * weight) // weight
        most = np.minimum(capacity, min(limit, problem.partition_count))
        whole = LoadRange(number, np.zeros_like(most), most, problem.partition_count)
        return PermittedAssignments(problem, subscribed, subscribed, (whole,), least_makespan)
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
    return PermittedAssignments(problem, subscribed, permitted, ranges, least_makespan)


def _load_limits(problem: Problem, level: Imbalance, best: Assignment) -> Ints:
    """Return the maximum load per member, from an assignment with the minimum makespan."""
    group = problem.group
    for violation in violations(group, best):
        raise InputError(f"group {group.id!r}: the assignment of the evidence: {violation}")
    loads, units = load_vector(group, best), problem.member_units
    limit = level.tolerance.limit(max(units.relative_loads(loads), default=0))
    most = np.array(
        [min(limit // factor, problem.total) for factor in units.factors], dtype=np.int64
    )
    for name, member in problem.member_index.items():
        capacity = group.member_table()[name].capacity
        if capacity is not None and loads[member] > capacity:
            raise InputError(f"group {group.id!r}: the evidence violates the capacity of {name!r}")
        most[member] = most[member] if capacity is None else min(most[member], capacity)
    return most


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
