"""Explain moves: steps along chains of members, and the reason of each move."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kassay.experiments.planning.moves.move_schedule import (
    Move,
    MoveBatch,
    moves_between,
    owned_loads,
    schedule_moves,
)
from kassay.experiments.planning.preparation.planning_levels import planning_levels
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import (
    LoadUnits,
    Measure,
    loads,
    measures,
    member_units,
    relative_loads,
)
from kassay.reference.model.ownership import NO_OWNER, ownership, rejoin
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.bounds.counting import max_unit_loads, overload_moves_bound
from kassay.solver.limits import SearchLimits
from kassay.solver.network.improving_chains import Explanation, Transfer
from kassay.solver.objective import Imbalance, Movement, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.solution import LevelValue
from kassay.solver.solve import solve


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReason:
    """Reason for the move of a partition: the owner's load if the partition stayed.

    Parameters
    ----------
    load
        Load of the owner if this partition alone stayed with it.
    makespan
        Maximum load of the assignment.
    units
        Members as load units, which convert the loads for the text.
    """

    partition: TopicPartition
    owner: str
    assignee: str
    load: int
    makespan: int
    units: LoadUnits

    @property
    def is_unnecessary(self) -> bool:
        """Return whether the maximum load stays the same without this move."""
        return self.load <= self.makespan

    def __str__(self) -> str:
        """Describe the reason for the move in one sentence."""
        kind = "unnecessary move" if self.is_unnecessary else "move"
        return (
            f"{kind} of {self.partition} from {self.owner} to {self.assignee}: with the partition, "
            f"the load of {self.owner} is {self.units.shown(self.load):,}; the maximum load is "
            f"{self.units.shown(self.makespan):,}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedExplanation:
    """Explanation of an assignment: maximum load, moves, bounds and improving steps.

    Parameters
    ----------
    movement
        Number of moves, and a lower bound for this maximum load.
    reached
        Maximum load after the last step.
    planned
        Number of moves of all steps, and a lower bound; None if no plan was found.
    moves
        Reasons of all moves of the assignment, by topic and partition.
    """

    makespan: LevelValue
    movement: LevelValue
    reached: int
    planned: LevelValue | None
    steps: tuple[Explanation, ...]
    moves: tuple[MoveReason, ...]

    @property
    def unnecessary_moves(self) -> int:
        """Return the number of moves that can each be undone without a higher maximum load."""
        return sum(move.is_unnecessary for move in self.moves)

    @property
    def is_optimal(self) -> bool | None:
        """Return whether maximum load and moves are minimal, or None if not proven."""
        if self.reached < self.makespan.value or self.unnecessary_moves:
            return False
        return True if self.makespan.gap == 0 == self.movement.gap else None


def explain_weighted(
    group: Group,
    assignment: Assignment,
    *,
    tolerance: Tolerance | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> WeightedExplanation:
    """Explain the maximum load of an assignment, and the reason for each move.

    The balanced assignment has the fewest transfers within a tolerance of the minimum makespan; by
    default that of a plan. The steps are those of a plan for a group that owns the partitions as
    assigned.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> topic = Topic(name="t", partitions=3, weights=(5, 3, 2))
    >>> members = tuple(Member(id=id, subscription=("t",)) for id in "ab")
    >>> group = Group(topics=(topic,), members=members)
    >>> result = explain_weighted(group, Assignment({"a": [("t", 0), ("t", 1)], "b": [("t", 2)]}))
    >>> result.makespan.value, result.makespan.bound, result.steps[0].transfers[0]
    (8, 5, Transfer(partition=TopicPartition(topic='t', partition=1), giver='a', taker='b'))
    """
    started = rejoin(group, assignment)
    levels = planning_levels(group, measure=Measure.MAKESPAN, tolerance=tolerance)
    solution = solve(started, levels=levels, limits=limits, seed=seed)
    value = measures(group, assignment)[Measure.MAKESPAN]
    moves = _move_reasons(group, assignment, value)
    target = solution.assignment
    steps = () if target is None else move_steps(started, schedule_moves(started, target))
    problem = build_problem(group)
    most = max_unit_loads(problem, Imbalance(Measure.MAKESPAN), value)
    fewest = overload_moves_bound(problem, Movement(), most)
    return WeightedExplanation(
        makespan=LevelValue(
            "makespan", value, 0 if target is None else min(value, solution.imbalance.bound)
        ),
        movement=LevelValue("movement", len(moves), min(fewest, len(moves))),
        reached=value if target is None else solution.imbalance.value,
        planned=None if target is None else solution.movement,
        steps=tuple(_explanation(group, step) for step in steps),
        moves=moves,
    )


def _move_reasons(group: Group, assignment: Assignment, makespan: int) -> tuple[MoveReason, ...]:
    load = loads(group, assignment)

    def kept(move: Move, owner: str) -> int:
        """Return the load of the owner if the partition stayed."""
        return relative_loads(group, {owner: load.get(owner, 0) + move.weight})[owner]

    return tuple(
        MoveReason(
            partition=TopicPartition(move.topic, move.partition),
            owner=move.source,
            assignee=move.target,
            load=kept(move, move.source),
            makespan=makespan,
            units=member_units(group),
        )
        for move in moves_between(group, assignment)
        if move.source is not None
    )


def _explanation(group: Group, step: MoveStep) -> Explanation:
    owners = ownership(group).owners
    moves = 0
    for move in step.moves:
        owner = owners[move.topic][move.partition]
        name = None if owner == NO_OWNER else group.members[owner].id
        moves += (name is not None) * ((move.target != name) - (move.source != name))
    shown = step.units.shown
    loads = tuple((member, shown(before), shown(after)) for member, before, after in step.loads)
    return Explanation(
        transfers=tuple(
            Transfer(TopicPartition(move.topic, move.partition), move.source or "", move.target)
            for move in step.moves
        ),
        members=loads,
        moves=moves,
        imbalance=(
            max((before for _, before, _ in loads), default=0),
            max((after for _, _, after in loads), default=0),
        ),
    )
