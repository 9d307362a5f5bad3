"""List the moves of a plan, and divide them into batches and steps."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model import load_metrics as metrics
from kassay.reference.model.assignment import NO_OWNER, Assignment, current_partitions, ownership
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import LoadUnits, Measure, member_units, relative_loads
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.greedy_placements import keep_owned
from kassay.solver.problem import build_problem

_MAX_SEARCHED_MOVES = 5_000
"""Maximum number of moves that kassay compares to find their order; above, load decides."""
_MAX_CANDIDATES = 200
"""Maximum number of moves from one member that kassay compares for the next move."""
Load = int | NDArray[Any]
"""Load of a member or partition; with several windows, an array of integers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Move of one partition to a new member. ``source`` is None if no member owns it."""

    topic: str
    partition: int
    source: str | None
    target: str
    weight: int

    def __str__(self) -> str:
        origin = "without an owner" if self.source is None else f"from {self.source}"
        return f"{self.topic}-{self.partition} {origin} to {self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveBatch:
    """Moves that are made at the same time, with the maximum load after them.

    ``imbalance`` is in the ``measure`` of `schedule_moves`.
    """

    moves: tuple[Move, ...]
    makespan: int
    imbalance: int

    def record(self) -> dict[str, object]:
        """Convert the batch to JSON."""
        moves = [
            {
                "topic": move.topic,
                "partition": move.partition,
                "from": move.source,
                "to": move.target,
                "weight": move.weight,
            }
            for move in self.moves
        ]
        return {"moves": moves, "makespan": self.makespan, "imbalance": self.imbalance}


def moves_between(group: Group, assignment: Assignment) -> tuple[Move, ...]:
    """List the moves from the current owners to an assignment."""
    owners, topics = ownership(group).owners, group.topic_table()
    moves = []
    for target, partitions in assignment.items():
        for topic, number in partitions:
            owner = owners[topic][number]
            source = None if owner == NO_OWNER else group.members[owner].id
            if source != target:
                weight = topics[topic].weight(number)
                moves.append(
                    Move(topic=topic, partition=number, source=source, target=target, weight=weight)
                )
    return tuple(sorted(moves, key=lambda move: (move.topic, move.partition)))


def schedule_moves(
    group: Group,
    assignment: Assignment,
    *,
    batch_size: int = 1,
    measure: Measure = Measure.MAKESPAN,
) -> tuple[MoveBatch, ...]:
    """Divide moves into batches. Batches that lower the highest loads come first.

    Partitions without an owner form the first batch, because they have no consumer yet. Then each
    move takes a partition from the member with the highest relative load, among the members whose
    load a move can lower. Of this member's moves, the move with the lowest maximum load of old and
    new owner comes first. This is a heuristic: a batch can raise the maximum load if a later one
    lowers it. At most ``batch_size`` owned partitions have no consumer at any time.
    """
    if batch_size < 1:
        raise UsageError(f"batch_size must be at least 1, got {batch_size!r}")
    current = owned_loads(group)
    moves = moves_between(group, assignment)
    placed = [move for move in moves if move.source is None]
    factors = metrics.relative_loads(group, dict.fromkeys(current, 1))
    start = {member: load * factors[member] for member, load in current.items()}
    for move in placed:
        load = _load_of(group, move.topic, move.partition)
        start[move.target] = start[move.target] + load * factors[move.target]
    owned = [move for move in moves if move.source is not None]
    moved = list(_highest_loads_first(group, owned, start, factors))
    slices = [placed] if placed else []
    slices += [moved[first : first + batch_size] for first in range(0, len(moved), batch_size)]
    consuming, units = metrics.participants(group), metrics.member_units(group)
    batches = []
    for batch in slices:
        for move in batch:
            load = _load_of(group, move.topic, move.partition)
            current[move.target] = current[move.target] + load
            if move.source is not None:
                current[move.source] = current[move.source] - load
        loads = [current[member] for member in consuming]
        windows: Any = [loads] if group.window_count == 1 else zip(*loads, strict=True)
        peaks = (_peak(load * factors[member]) for member, load in current.items())
        batches.append(
            MoveBatch(
                moves=tuple(batch),
                makespan=max(peaks, default=0),
                imbalance=metrics.imbalance_of_windows(measure, windows, units),
            )
        )
    return tuple(batches)


def _peak(load: Load) -> int:
    return load if isinstance(load, int) else int(load.max())


def _load_of(group: Group, topic: str, number: int) -> Load:
    """Return the load of a partition, per time window if there are several."""
    given, factors = group.topic_table()[topic], group.window_factors
    if group.window_count == 1:
        return given.weight(number)
    row = given.profiles[number] if given.profiles else (1,) * len(factors)
    return np.array([load * factor for load, factor in zip(row, factors, strict=True)], object)


def _highest_loads_first(
    group: Group, moves: Sequence[Move], current: dict[str, Load], factors: dict[str, int]
) -> Iterator[Move]:
    """Yield the moves, those from the members with the highest loads first.

    ``current`` has relative loads, and ``factors`` the factor from load to relative load.
    """
    pending: dict[str, list[int]] = {}
    ordered = sorted(moves, key=lambda move: (-move.weight, move.topic, move.partition))
    loads = [_load_of(group, move.topic, move.partition) for move in ordered]
    for at, move in enumerate(ordered):
        pending.setdefault(move.source or "", []).append(at)
    heap = [(-_peak(current[source]), source) for source in pending]
    heapify(heap)
    search = len(moves) <= _MAX_SEARCHED_MOVES

    def highest_after(at: int) -> int:
        source, target = ordered[at].source or "", ordered[at].target
        given, taken = loads[at] * factors[source], loads[at] * factors[target]
        return max(_peak(current[target] + taken), _peak(current[source] - given))

    while pending:
        best: list[int] = []
        visited: dict[str, int] = {}
        while heap:
            negative, source = heappop(heap)
            # Loads change after each move: an entry is valid only if it has the source's load.
            if source not in pending or -negative != _peak(current[source]) or source in visited:
                continue
            visited[source] = -negative
            best.append(min(pending[source][:_MAX_CANDIDATES], key=highest_after))
            if not search or highest_after(best[-1]) < -negative:
                best = best[-1:]
                break
        # If no move lowers the load of its source, the one with the lowest loads comes first.
        at = min(best, key=highest_after)
        move, source = ordered[at], ordered[at].source or ""
        pending[source].remove(at)
        if not pending[source]:
            del pending[source]
        current[move.target] = current[move.target] + loads[at] * factors[move.target]
        current[source] = current[source] - loads[at] * factors[source]
        visited |= {each: _peak(current[each]) for each in (source, move.target)}
        for member, load in visited.items():
            heappush(heap, (-load, member))
        yield move


def after_batches(group: Group, batches: Iterable[MoveBatch]) -> Iterator[Assignment]:
    """Yield the assignment after each batch of moves."""
    problem = build_problem(group)
    placement = keep_owned(problem)
    for batch in batches:
        placement = placement.copy()
        for move in batch.moves:
            partition = problem.partition_index[TopicPartition(move.topic, move.partition)]
            placement[partition] = problem.member_index[move.target]
        yield problem.to_assignment(placement)


def owned_loads(group: Group) -> dict[str, Load]:
    """Return the load of the partitions that each member owns."""
    none = 0 if group.window_count == 1 else np.zeros(group.window_count, dtype=object)
    return {
        member: sum((_load_of(group, topic, number) for topic, number in owned), none)
        for member, owned in current_partitions(group).items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStep:
    """Moves of a plan that lower the loads only if all of them are made."""

    moves: tuple[Move, ...]  # in the order of the plan
    loads: tuple[tuple[str, int, int], ...]  # (member, before, after) of changed loads
    makespan: tuple[int, int]  # maximum load of all members: (before, after)
    units: LoadUnits  # of the members

    def __str__(self) -> str:
        chain = ", ".join(
            f"{move.source} gives {move.topic}-{move.partition} to {move.target}"
            for move in self.moves
        )
        changes = [
            f"{member} {'drops' if after < before else 'rises'} from "
            f"{self.units.shown(before):,} to {self.units.shown(after):,}"
            for member, before, after in self.loads
        ] or ["all loads stay"]
        return f"{chain}: {', '.join(changes)}"


def move_steps(group: Group, batches: Iterable[MoveBatch]) -> tuple[MoveStep, ...]:
    """Split moves into steps, each of which lowers the loads of its members.

    A step ends as soon as the loads of its members, in descending order, are lower than before.
    Partitions without an owner are placed before the first step.
    """
    moves = [move for batch in batches for move in batch.moves]
    loads, units = owned_loads(group), member_units(group)
    factors = relative_loads(group, dict.fromkeys(loads, 1))
    for move in moves:
        if move.source is None:
            loads[move.target] = loads[move.target] + _load_of(group, move.topic, move.partition)
    owned = [(move.source, move) for move in moves if move.source is not None]
    current = {member: _peak(load * factors[member]) for member, load in loads.items()}
    before, step, found = dict(current), list[Move](), list[MoveStep]()
    for number, (source, move) in enumerate(owned, 1):
        step.append(move)
        load = _load_of(group, move.topic, move.partition)
        loads |= {source: loads[source] - load, move.target: loads[move.target] + load}
        current |= {at: _peak(loads[at] * factors[at]) for at in (source, move.target)}
        members = list(dict.fromkeys(m for one in step for m in (one.source or "", one.target)))
        old, new = ([loads[member] for member in members] for loads in (before, current))
        if sorted(new, reverse=True) < sorted(old, reverse=True) or number == len(owned):
            changed = zip(members, old, new, strict=True)
            found.append(
                MoveStep(
                    moves=tuple(step),
                    loads=tuple(one for one in changed if one[1] != one[2]),
                    makespan=(max(before.values(), default=0), max(current.values(), default=0)),
                    units=units,
                )
            )
            before, step = dict(current), []
    return tuple(found)
