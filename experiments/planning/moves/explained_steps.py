"""Split the moves of a plan into steps that each lower loads, to explain the plan."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kassay.experiments.planning.moves.move_schedule import Move, MoveBatch, owned_loads
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import LoadUnits, member_units, relative_loads


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStep:
    """Step of a plan: moves that lower the loads only if all of them are made.

    Parameters
    ----------
    moves
        The moves, in the order of the plan.
    loads
        Load of each member with a changed load: (member, before, after).
    makespan
        Maximum load of all members: (before, after).
    units
        Members as load units, which convert the loads for the text.
    """

    moves: tuple[Move, ...]
    loads: tuple[tuple[str, int, int], ...]
    makespan: tuple[int, int]
    units: LoadUnits

    def __str__(self) -> str:
        """Describe the step in one sentence."""
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
    """Split scheduled moves into steps, each of which lowers the loads of its members.

    Each move belongs to exactly one step, except the placement of partitions without an owner.

    A step ends as soon as the loads of its members, in descending order, are lower than before.
    Partitions without an owner are placed before the first step.

    Examples
    --------
    >>> from kassay.experiments.planning.moves.move_schedule import schedule_moves
    >>> from kassay.reference.model.assignment import Assignment
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2),),
    ...     members=(
    ...         Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1)]),
    ...         Member(id="b", subscription=("t",)),
    ...     ),
    ... )
    >>> target = Assignment({"a": [("t", 1)], "b": [("t", 0)]})
    >>> for step in move_steps(group, schedule_moves(group, target)):
    ...     print(step)
    a gives t-0 to b: a drops from 2 to 1, b rises from 0 to 1
    """
    return tuple(_steps(group, [move for batch in batches for move in batch.moves]))


def _steps(group: Group, moves: list[Move]) -> Iterator[MoveStep]:
    current, units = relative_loads(group, owned_loads(group)), member_units(group)
    factors = relative_loads(group, dict.fromkeys(current, 1))
    for move in moves:
        if move.source is None:
            current[move.target] += move.weight * factors[move.target]
    before, step = dict(current), list[Move]()
    for move in moves:
        if move.source is None:
            continue
        step.append(move)
        current[move.source] -= move.weight * factors[move.source]
        current[move.target] += move.weight * factors[move.target]
        if _is_lower(step, before, current):
            yield _step(step, before, current, units)
            before, step = dict(current), []
    if step:
        yield _step(step, before, current, units)


def _is_lower(step: list[Move], before: dict[str, int], after: dict[str, int]) -> bool:
    members = dict.fromkeys(m for move in step for m in (move.source or "", move.target))
    old, new = ([loads[member] for member in members] for loads in (before, after))
    return sorted(new, reverse=True) < sorted(old, reverse=True)


def _step(
    step: list[Move], before: dict[str, int], after: dict[str, int], units: LoadUnits
) -> MoveStep:
    members = dict.fromkeys(m for move in step for m in (move.source or "", move.target))
    return MoveStep(
        moves=tuple(step),
        loads=tuple(
            (member, before[member], after[member])
            for member in members
            if before[member] != after[member]
        ),
        makespan=(max(before.values(), default=0), max(after.values(), default=0)),
        units=units,
    )
