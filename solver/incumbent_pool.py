"""Initial placements by greedy rules, and known placements and bounds of a running search."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.errors import InternalError
from kassay.reference.model.load_metrics import LoadUnits, Measure
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import RackTable, Room, level_value, permitted_members, violated
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Level
from kassay.solver.problem import Placement, Problem, exact_column
from kassay.solver.solution import Method, ProgressPoint, UsedMethod

MAX_PLAIN_CHOICES = 2_000
"""Maximum number of (class or partition, member) pairs for squares that are products of loads.

Searches of larger groups rarely prove the minimum, and end early if they reach the known bound.
"""


@dataclass(frozen=True, slots=True)
class Request:
    """Problem with levels and constraints, and the options that decide how it is solved."""

    problem: Problem
    levels: tuple[Level, ...]
    rules: tuple[Constraint, ...]
    budget: SearchBudget
    method: Method = Method.AUTO
    given: tuple[Placement, ...] = ()
    """Placements to start from: a warm start, or answers to a request with fewer constraints."""
    is_derived: bool = False
    """Whether constraints are left out or weights rounded; no further request is derived then."""

    @property
    def choices(self) -> int:
        """Number of pairs of a partition and a member."""
        return self.problem.partition_count * self.problem.member_count


@dataclass(frozen=True, slots=True)
class LexicographicResult:
    """Best placement with claims per level, or the conflicting constraints."""

    placement: Placement | None  # None if there is none, or none was found within the limits
    claims: tuple[LevelClaim, ...] = ()
    node_prices: tuple[int, ...] = ()
    conflict: tuple[Constraint, ...] = ()
    conflict_origin: Origin = Origin.CP_SAT
    progress: tuple[ProgressPoint, ...] = ()
    method: UsedMethod = UsedMethod.CP_SAT

    def placements(self, problem: Problem) -> tuple[Placement, ...]:
        """Return the answer, and placements that are better on a level with a tolerance."""
        if self.placement is None:
            return ()
        best = (problem.to_placement(claim.best) for claim in self.claims if claim.best)
        return (self.placement, *(one for one in best if one is not None))


def claim_about(
    problem: Problem, claim: LevelClaim, placement: Placement, *, best: Placement
) -> LevelClaim:
    """Set the value of a claim to the value of a placement.

    A tolerance may make this value worse than the best value of the level. Then add the best
    placement.
    """
    value = level_value(problem, claim.level, placement)
    shown = problem.to_assignment(best) if value > claim.value else None
    return replace(claim, value=value, best=shown)


class ProvenBound(NamedTuple):
    """Lower bound on a level and its origin; the value is 0 if nothing is proven."""

    value: int
    origin: Origin


@dataclass
class KnownLevels:
    """Placements, and proven bounds by level index, before the levels are minimised in order.

    ``is_complete`` is true if one of the placements is optimal for all levels.
    """

    placements: list[Placement] = field(default_factory=list)
    bounds: dict[int, ProvenBound] = field(default_factory=dict)
    node_prices: tuple[int, ...] = ()  # evidence of the bounds with this origin
    conflict: tuple[Constraint, ...] = ()  # infeasible constraints
    is_complete: bool = False

    def priced_claims(
        self, claims: Sequence[LevelClaim]
    ) -> tuple[tuple[LevelClaim, ...], tuple[int, ...]]:
        """Return claims and node prices. Without a claim on each priced level, drop the prices."""
        priced = [one.origin is Origin.NODE_PRICES for one in self.bounds.values()].count(True)
        if all(claim.origin is Origin.NODE_PRICES for claim in claims[:priced]):
            return tuple(claims), self.node_prices
        return tuple(
            replace(claim, origin=Origin.FLOW) if claim.origin is Origin.NODE_PRICES else claim
            for claim in claims
        ), ()


@dataclass(frozen=True, slots=True)
class LevelResult:
    """Result of a finished level: claim, limit for later levels, and best placement."""

    claim: LevelClaim
    limit: int
    placement: Placement


@dataclass
class IncumbentPool:
    """Pool of the placements found so far that meet the constraints."""

    problem: Problem
    levels: Sequence[Level]
    constraints: Sequence[Constraint]
    placements: list[Placement]
    reached: list[LevelResult] = field(default_factory=list)
    _values: dict[tuple[int, int], tuple[Level, Placement, int]] = field(default_factory=dict)
    """Values by identity of level and placement, which stay referenced."""

    def add(self, placement: Placement) -> bool:
        """Add a placement if it meets the constraints; return whether it meets them."""
        is_valid = self.is_permitted(placement)
        if is_valid:
            self.placements.append(placement)
        return is_valid

    def is_permitted(self, placement: Placement) -> bool:
        """Return whether a placement meets the constraints."""
        return not any(violated(self.problem, self.constraints, placement))

    def incumbent(self, level: Level) -> Placement:
        """Return the best placement on a level within the limits of the finished levels."""
        found = self.best(level, self.limits())
        if found is None:
            raise InternalError("no placement is within the limits of the finished levels")
        return found

    def best(self, level: Level, limits: Sequence[tuple[Level, int]]) -> Placement | None:
        """Return the best placement on a level within limits, or None if there is none."""
        order = [level, *(other for other in self.levels if other is not level)]
        return min(
            (
                placement
                for placement in self.placements
                if all(self._value(limited, placement) <= limit for limited, limit in limits)
            ),
            key=lambda placement: [self._value(other, placement) for other in order],
            default=None,
        )

    def value(self, level: Level) -> int:
        """Return the value of the incumbent on a level."""
        return self._value(level, self.incumbent(level))

    def limits(self) -> list[tuple[Level, int]]:
        """Return the finished levels with their limits."""
        return [(done.claim.level, done.limit) for done in self.reached]

    def _value(self, level: Level, placement: Placement) -> int:
        key = id(level), id(placement)
        if key not in self._values:
            value = level_value(self.problem, level, placement)
            self._values[key] = level, placement, value
        return self._values[key][2]

    def limits_squares(self) -> bool:
        """Return whether a finished level limits the sum of squares of a small group.

        A CP-SAT model of all partitions then proves the fewest moves faster than one of moves.
        """
        is_small = self.problem.partition_count * self.problem.member_count <= MAX_PLAIN_CHOICES
        levels = [
            done.claim.level for done in self.reached if isinstance(done.claim.level, Imbalance)
        ]
        return is_small and any(level.measure is Measure.SUM_OF_SQUARES for level in levels)


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
    """Return the problem in which partitions have only the consumers that pins permit.

    Exclusions count as pins. Partitions without their owner among these consumers are unowned.
    """
    return _restricted(problem, permitted_members(problem, rules))


def within_racks(problem: Problem) -> Problem:
    """Return the problem in which partitions have only consumers in their racks, if there are."""
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
    """Give each partition to the consumer whose relative loads are lowest with it.

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
