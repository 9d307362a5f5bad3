"""Create initial placements by greedy rules."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.load_metrics import LoadUnits
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import RackTable, Room, permitted_members
from kassay.solver.problem import Placement, Problem, exact_column

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
    """Assign all partitions greedily within capacities and to permitted members.

    Partitions with one permitted consumer come first, then the heaviest ones. Each goes to the
    permitted consumer with the lowest new relative load. Return None if no permitted consumer of a
    partition has room; other constraints may be violated.
    """
    within = within_pins(problem, rules)
    placement = np.full(problem.partition_count, NO_OWNER, dtype=np.int32)
    is_free = np.array([len(each) > 1 for each in within.consumer_sets])[within.consumer_set]
    order = sorted(
        range(problem.partition_count), key=lambda at: (is_free[at], -problem.weight[at], at)
    )
    loads, units = [0] * problem.member_count, units or (problem.member_units,)
    has_room = _place_by_scan(within, placement, order, loads, units, room=Room(problem, rules))
    return placement if has_room else None


def within_pins(problem: Problem, rules: Sequence[Constraint]) -> Problem:
    """Restrict the consumers of each partition to the members that constraints permit.

    Exclusions count as pins. Partitions without their owner among these consumers are unowned.
    """
    return _restricted(problem, permitted_members(problem, rules))


def within_racks(problem: Problem) -> Problem:
    """Restrict consumers of a partition to the racks of its replicas, unless none is there."""
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
    scanned = int(breadth[problem.consumer_set[order]].sum()) if order else 0
    has_few_scans = scanned < _MAX_SCANNED_PER_ENTRY * int(breadth.sum())
    if not (units or has_few_scans) and problem.group.has_equal_speeds:
        _place_by_queue(problem, placement, order, loads)
    else:
        _place_by_scan(problem, placement, order, loads, units or (problem.member_units,))
    return placement


def _place_by_scan(
    problem: Problem,
    placement: Placement,
    order: list[int],
    member_loads: list[int],
    units: Sequence[LoadUnits],
    *,
    room: Room | None = None,
) -> bool:
    """Assign each partition to the consumer with the lowest new relative load.

    If relative loads are equal, the owner gets the partition. Return False if a partition has no
    consumer with room.
    """
    most = max(problem.total, 1) * max(max(each.factors, default=1) for each in units)
    tables = [
        (
            np.array(each.unit_of, dtype=np.int64),
            exact_column(np.array(each.loads(member_loads), dtype=object), most),
            exact_column(np.array(each.factors, dtype=object), most),
        )
        for each in units
    ]
    if room is not None:
        free, counts = exact_column(np.array(room.loads, dtype=object), most), np.array(room.counts)
    for partition in order:
        best = problem.consumer_sets[problem.consumer_set[partition]]
        weight, owner = int(problem.weight[partition]), problem.owner[partition]
        if room is not None:
            best = best[(free[best] >= weight) & (counts[best] > 0)]
        if not len(best):
            return False
        for unit_of, load, factors in tables:
            unit = unit_of[best]
            relative = (load[unit] + weight) * factors[unit]
            best = best[relative == relative.min()]
        member = owner if owner in best else best[0]
        placement[partition] = member
        for unit_of, load, _ in tables:
            load[unit_of[member]] += weight
        if room is not None:
            free[member] -= weight
            counts[member] -= 1
    return True


def _place_by_queue(
    problem: Problem, placement: Placement, order: list[int], loads: list[int]
) -> None:
    queues = [_LoadQueue(consumers.tolist(), loads) for consumers in problem.consumer_sets]
    sets, owners, weights = (
        column.tolist() for column in (problem.consumer_set, problem.owner, problem.weight)
    )
    for partition in order:
        member = queues[sets[partition]].least_loaded(loads, owners[partition])
        placement[partition] = member
        loads[member] += weights[partition]


class _LoadQueue:
    """Priority queue of members by load that updates outdated entries when needed."""

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
