"""Initial placements of a search, by greedy rules."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.metrics import LoadUnits
from kassay.solver.constraints import Capacity, Constraint, Forbidden, MaxPartitions, Pinned
from kassay.solver.evaluation import RackTable, topic_partitions
from kassay.solver.number_ranges import Arithmetic
from kassay.solver.problem import Placement, Problem

# A queue takes about this many times as long per entry as a scan.
_MAX_SCANNED_PER_ENTRY = 50


def keep_owned(problem: Problem, units: Sequence[LoadUnits] = ()) -> Placement:
    """Keep owned partitions; assign other partitions by the longest-processing-time rule."""
    return _fill(problem, problem.owner.copy(), units)


def longest_processing_time(problem: Problem, units: Sequence[LoadUnits] = ()) -> Placement:
    """Assign all partitions, heaviest first, to the least loaded consumer (Graham's LPT rule).

    If speeds differ, it is the consumer with the lowest new relative load. If loads are equal, the
    owner gets the partition. With ``units``, a partition goes to the consumer with the lowest new
    relative load in the first units, then in the second ones.
    """
    return _fill(problem, np.full(problem.partition_count, NO_OWNER, dtype=np.int32), units)


def place_within(
    problem: Problem, rules: Sequence[Constraint], units: Sequence[LoadUnits] = ()
) -> Placement | None:
    """Assign all partitions within capacities, counts, pins and exclusions.

    Partitions with one permitted consumer come first, then the heaviest ones. Each goes to the
    permitted consumer with the lowest new relative load. Return None if no permitted consumer of a
    partition has room; other constraints may be violated.
    """
    permitted = _permitted_members(problem, rules)
    units = units or (problem.member_units,)
    placement = np.full(problem.partition_count, NO_OWNER, dtype=np.int32)
    loads, room = [each.loads([0] * problem.member_count) for each in units], Room(problem, rules)
    weights = problem.weight.tolist()
    for partition in sorted(
        range(problem.partition_count), key=lambda at: (len(permitted[at]) > 1, -weights[at], at)
    ):
        weight, owner = weights[partition], problem.owner[partition]
        candidates = [at for at in permitted[partition] if room.fits(at, weight)]
        if not candidates:
            return None
        member = min(
            candidates, key=lambda at: (*_new_loads(units, loads, at, weight), at != owner)
        )
        placement[partition] = member
        room.take(member, weight)
        for each, load in zip(units, loads, strict=True):
            load[each.unit_of[member]] += weight
    return placement


def _new_loads(
    units: Sequence[LoadUnits], loads: Sequence[list[int]], member: int, weight: int
) -> tuple[int, ...]:
    """Return the relative loads of the load units of a member, with an additional weight."""
    return tuple(
        (load[each.unit_of[member]] + weight) * each.factors[each.unit_of[member]]
        for each, load in zip(units, loads, strict=True)
    )


def within_pins(problem: Problem, rules: Sequence[Constraint]) -> Problem:
    """Return the problem in which partitions have only the consumers that pins permit.

    Exclusions count as pins. Partitions without their owner among these consumers are unowned.
    """
    return _restricted(problem, _permitted_members(problem, rules))


def within_racks(problem: Problem) -> Problem:
    """Return the problem in which a partition has only consumers in the racks of its replicas.

    If there are none, it has all its consumers.
    """
    racks, consumers = RackTable(problem), [each.tolist() for each in problem.consumer_sets]
    near = (
        [member for member in consumers[index] if not racks.is_cross_rack(at, member)]
        or consumers[index]
        for at, index in enumerate(problem.consumer_set.tolist())
    )
    return _restricted(problem, near)


def _restricted(problem: Problem, permitted: Iterable[Sequence[int]]) -> Problem:
    sets: dict[tuple[int, ...], int] = {}
    owners, rows, owner = problem.owner.tolist(), [], problem.owner.copy()
    for at, members in enumerate(permitted):
        rows.append(sets.setdefault(tuple(members), len(sets)))
        owner[at] = owners[at] if owners[at] in members else NO_OWNER
    return replace(
        problem,
        owner=owner,
        permitted=np.array(rows, dtype=np.int32),
        consumer_sets=tuple(np.array(members, dtype=np.int32) for members in sets),
    )


def _permitted_members(problem: Problem, rules: Sequence[Constraint]) -> list[list[int]]:
    """Return the members that may consume each partition by subscriptions, pins and exclusions."""
    consumers = [members.tolist() for members in problem.consumer_sets]
    permitted = [consumers[index] for index in problem.consumer_set.tolist()]
    for rule in rules:
        if isinstance(rule, Pinned | Forbidden):
            named = problem.member_index.get(rule.member)
            for at in topic_partitions(problem, rule.topic, rule.partition).tolist():
                is_kept = isinstance(rule, Pinned)
                permitted[at] = [member for member in permitted[at] if (member == named) is is_kept]
    return permitted


class Room:
    """Free capacity and free number of partitions per member."""

    def __init__(self, problem: Problem, rules: Sequence[Constraint]) -> None:
        self.loads = [problem.total] * problem.member_count
        self.counts = [problem.partition_count] * problem.member_count
        for rule in rules:
            if isinstance(rule, Capacity | MaxPartitions):
                column = self.loads if isinstance(rule, Capacity) else self.counts
                for member in range(problem.member_count):
                    if rule.member in (None, problem.member_id(member)):
                        column[member] = min(column[member], rule.limit)

    def fits(self, member: int, weight: int) -> bool:
        """Return whether a member can get a partition with the weight."""
        return self.loads[member] >= weight and self.counts[member] > 0

    def take(self, member: int, weight: int) -> None:
        """Reduce the free capacity and the free number of partitions of a member."""
        self.loads[member] -= weight
        self.counts[member] -= 1


def _fill(problem: Problem, placement: Placement, units: Sequence[LoadUnits]) -> Placement:
    placed = placement != NO_OWNER
    loads: list[int] = [0] * problem.member_count
    for member, weight in zip(
        placement[placed].tolist(), problem.weight[placed].tolist(), strict=True
    ):
        loads[member] += weight
    # Among equal weights, partitions with the fewest consumers come first.
    breadth = np.array([len(consumers) for consumers in problem.consumer_sets], dtype=np.int64)
    order = sorted(
        np.flatnonzero(~placed).tolist(),
        key=lambda at: (-problem.weight[at], breadth[problem.consumer_set[at]], at),
    )
    own_units = units or (problem.member_units,)
    factor = max((max(each.factors, default=1) for each in own_units), default=1)
    is_exact = Arithmetic.INT64.represents(max(problem.total, 1) * factor)
    scanned = int(breadth[problem.consumer_set[order]].sum()) if order else 0
    has_few_scans = scanned < _MAX_SCANNED_PER_ENTRY * int(breadth.sum())
    if not (units or (is_exact and has_few_scans)) and problem.group.has_equal_speeds:
        _place_by_queue(problem, placement, order, loads)
    else:
        _place_by_scan(problem, placement, order, loads, own_units, is_exact=is_exact)
    return placement


def _place_by_scan(
    problem: Problem,
    placement: Placement,
    order: list[int],
    member_loads: list[int],
    units: Sequence[LoadUnits],
    *,
    is_exact: bool,
) -> None:
    """Give each partition to the consumer whose relative loads are lowest with it.

    If relative loads are equal, the owner gets the partition. Unless 64 bits represent them
    exactly, they are Python integers.
    """
    dtype = np.dtype(np.int64 if is_exact else object)
    tables = [
        (
            np.array(each.unit_of, dtype=np.int64),
            np.array(each.loads(member_loads), dtype=dtype),
            np.array(each.factors, dtype=dtype),
        )
        for each in units
    ]
    for partition in order:
        best = problem.consumer_sets[problem.consumer_set[partition]]
        weight, owner = int(problem.weight[partition]), problem.owner[partition]
        for unit_of, load, factors in tables:
            unit = unit_of[best]
            relative = (load[unit] + weight) * factors[unit]
            best = best[relative == relative.min()]
        member = owner if owner in best else best[0]
        placement[partition] = member
        for unit_of, load, _ in tables:
            load[unit_of[member]] += weight


def _place_by_queue(
    problem: Problem, placement: Placement, order: list[int], loads: list[int]
) -> None:
    """Give each partition to its least loaded consumer, from a queue per set of consumers."""
    queues = [_LoadQueue(consumers.tolist(), loads) for consumers in problem.consumer_sets]
    sets, owners, weights = (
        column.tolist() for column in (problem.consumer_set, problem.owner, problem.weight)
    )
    for partition in order:
        member = queues[sets[partition]].least_loaded(loads, owners[partition])
        placement[partition] = member
        loads[member] += weights[partition]


class _LoadQueue:
    """Priority queue of members by load, with lazy update of outdated entries."""

    def __init__(self, members: list[int], loads: list[int]) -> None:
        self.entries = [(loads[member], member) for member in members]
        heapq.heapify(self.entries)

    def least_loaded(self, loads: list[int], preferred: int) -> int:
        """Return the least loaded member, or ``preferred`` if its load is equal."""
        entries = self.entries
        while entries[0][0] != loads[entries[0][1]]:
            member = entries[0][1]
            heapq.heapreplace(entries, (loads[member], member))
        load, member = entries[0]
        return preferred if preferred != NO_OWNER and loads[preferred] == load else member
