"""The moves of a plan, one by one, in an order that people can carry out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import loads
from kassay.reference.model.ownership import NO_OWNER, ownership


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One partition that changes hands, or that nobody had.

    Parameters
    ----------
    topic, partition
        Which.
    giver
        Who has it today; None for a partition without an owner.
    taker
        Who has it then.
    weight
        What it weighs.
    """

    topic: str
    partition: int
    giver: str | None
    taker: str
    weight: int

    def __str__(self) -> str:
        """Say it in words."""
        origin = "without an owner" if self.giver is None else f"from {self.giver}"
        return f"{self.topic}-{self.partition} {origin} to {self.taker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveBatch:
    """Moves that are made together.

    Parameters
    ----------
    moves
        What moves; these partitions have no consumer meanwhile.
    makespan
        Greatest load once the batch is done.
    """

    moves: tuple[Move, ...]
    makespan: int


def moves_between(group: Group, assignment: Assignment) -> tuple[Move, ...]:
    """List what changes from today's ownership to an assignment, by topic and number."""
    owners, topics = ownership(group).owners, group.topic_table()
    found = []
    for member, partitions in assignment.items():
        for topic, number in partitions:
            owner = owners[topic][number]
            giver = None if owner == NO_OWNER else group.members[owner].id
            if giver != member:
                found.append(
                    Move(
                        topic=topic,
                        partition=number,
                        giver=giver,
                        taker=member,
                        weight=topics[topic].weight(number),
                    )
                )
    return tuple(sorted(found, key=lambda move: (move.topic, move.partition)))


def schedule(group: Group, assignment: Assignment, *, most: int = 1) -> tuple[MoveBatch, ...]:
    """Order the moves in batches, so that few partitions wait and relief comes first.

    Partitions without an owner wait already: all of them make the first batch. Any other
    partition has no consumer from the moment its giver lets go of it until its taker has
    it, so no more than ``most`` wait at any time, and each waits for one batch. Next is
    always a move to the taker with the least load, from the giver that has the most, the
    heaviest first: a rule, not an optimum.

    Parameters
    ----------
    group
        The group today.
    assignment
        Where to.
    most
        Moves in a batch; with 1 a single partition is without a consumer at any time.

    Raises
    ------
    ValueError
        If ``most`` is less than 1.

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
    >>> there = Assignment({"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]})
    >>> [str(move) for batch in schedule(group, there) for move in batch.moves]
    ['t-3 without an owner to b', 't-2 from a to b']
    """
    if most < 1:
        raise ValueError(f"a batch needs room for at least 1 move, got {most!r}")
    carried = _carried(group)
    moves = moves_between(group, assignment)
    placed = [move for move in moves if move.giver is None]
    moved = list(_by_relief([move for move in moves if move.giver is not None], dict(carried)))
    waves = [placed] if placed else []
    waves += [moved[start : start + most] for start in range(0, len(moved), most)]
    batches = []
    for wave in waves:
        for move in wave:
            carried[move.taker] += move.weight
            if move.giver is not None:
                carried[move.giver] -= move.weight
        batches.append(MoveBatch(moves=tuple(wave), makespan=max(carried.values(), default=0)))
    return tuple(batches)


def _by_relief(moves: Sequence[Move], carried: dict[str, int]) -> Iterator[Move]:
    """Yield moves by their takers' load, then their givers'; ``carried`` is used up."""
    waiting: dict[str, dict[str, list[Move]]] = {}
    for move in sorted(
        moves, key=lambda move: (-move.weight, move.topic, move.partition), reverse=True
    ):
        waiting.setdefault(move.taker, {}).setdefault(move.giver or "", []).append(move)
    # Loads change under way: an entry counts only while it tells the taker's load of now.
    heap = [(carried[taker], taker) for taker in waiting]
    heapify(heap)
    while heap:
        load, taker = heappop(heap)
        if taker not in waiting or load != carried[taker]:
            continue
        givers = waiting[taker]
        giver = min(givers, key=lambda giver: (-carried[giver], giver))
        move = givers[giver].pop()
        if not givers[giver]:
            del givers[giver]
        if not givers:
            del waiting[taker]
        carried[taker] += move.weight
        carried[giver] -= move.weight
        for member in (taker, giver):
            if member in waiting:
                heappush(heap, (carried[member], member))
        yield move


def _carried(group: Group) -> dict[str, int]:
    """Load of what every member owns today; partitions without an owner are with nobody."""
    owners = ownership(group).owners
    hands: list[list[tuple[str, int]]] = [[] for _ in group.members]
    for topic, column in owners.items():
        for number, owner in enumerate(column.tolist()):
            if owner != NO_OWNER:
                hands[owner].append((topic, number))
    held = Assignment({m.id: hand for m, hand in zip(group.members, hands, strict=True)})
    return {member.id: 0 for member in group.members} | dict(loads(group, held))
