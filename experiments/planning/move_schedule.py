"""Moves between the current ownership and an assignment, in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import NO_OWNER, ownership


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A partition and its new member. ``source`` is None for a partition without an owner."""

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
    """Moves that are made together, and the maximum load after them."""

    moves: tuple[Move, ...]
    makespan: int


def moves_between(group: Group, assignment: Assignment) -> tuple[Move, ...]:
    """List the moves from the current ownership to an assignment, by topic and partition."""
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
    group: Group, assignment: Assignment, *, batch_size: int = 1
) -> tuple[MoveBatch, ...]:
    """Order the moves to an assignment in batches.

    Partitions without an owner form the first batch, because they have no consumer yet.
    Then the next move always goes to the target with the lowest load, from its source with
    the highest load, heaviest partition first. This order is a heuristic, not an optimum.
    At most ``batch_size`` owned partitions have no consumer at any time.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> owned = [("t", 0), ("t", 1), ("t", 2)]
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),),
    ...     members=(
    ...         Member(id="a", subscription=("t",), owned=owned),
    ...         Member(id="b", subscription=("t",)),
    ...     ),
    ... )
    >>> target = Assignment({"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]})
    >>> [str(move) for batch in schedule_moves(group, target) for move in batch.moves]
    ['t-3 without an owner to b', 't-2 from a to b']
    """
    if batch_size < 1:
        raise UsageError(f"batch_size must be at least 1, got {batch_size!r}")
    current = _owned_loads(group)
    moves = moves_between(group, assignment)
    placed = [move for move in moves if move.source is None]
    moved = list(_by_load([move for move in moves if move.source is not None], dict(current)))
    slices = [placed] if placed else []
    slices += [moved[start : start + batch_size] for start in range(0, len(moved), batch_size)]
    batches = []
    for batch in slices:
        for move in batch:
            current[move.target] += move.weight
            if move.source is not None:
                current[move.source] -= move.weight
        batches.append(MoveBatch(moves=tuple(batch), makespan=max(current.values(), default=0)))
    return tuple(batches)


def _by_load(moves: Sequence[Move], current: dict[str, int]) -> Iterator[Move]:
    """Yield moves in the order of the target's load, then the source's load. Update ``current``."""
    pending: dict[str, dict[str, list[Move]]] = {}
    for move in sorted(
        moves, key=lambda move: (-move.weight, move.topic, move.partition), reverse=True
    ):
        pending.setdefault(move.target, {}).setdefault(move.source or "", []).append(move)
    # Loads change on the way: an entry is valid only if it has the target's present load.
    heap = [(current[target], target) for target in pending]
    heapify(heap)
    while heap:
        load, target = heappop(heap)
        if target not in pending or load != current[target]:
            continue
        sources = pending[target]
        source = min(sources, key=lambda source: (-current[source], source))
        move = sources[source].pop()
        if not sources[source]:
            del sources[source]
        if not sources:
            del pending[target]
        current[target] += move.weight
        current[source] -= move.weight
        for member in (target, source):
            if member in pending:
                heappush(heap, (current[member], member))
        yield move


def _owned_loads(group: Group) -> dict[str, int]:
    current = {member.id: 0 for member in group.members}
    topics = group.topic_table()
    for name, owners in ownership(group).owners.items():
        for number, owner in enumerate(owners.tolist()):
            if owner != NO_OWNER:
                current[group.members[owner].id] += topics[name].weight(number)
    return current
