"""Explanation why an assignment of weighted partitions is not balanced."""

from dataclasses import dataclass

from kassay.experiments.planning.explained_steps import MoveStep, move_steps
from kassay.experiments.planning.move_schedule import schedule_moves
from kassay.experiments.planning.planning_levels import planning_levels
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, loads
from kassay.reference.model.ownership import NO_OWNER, ownership, rejoin
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.improvement.explanation import Explanation
from kassay.solver.improvement.transfer_chains import Transfer
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Tolerance
from kassay.solver.solution import LevelValue
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedExplanation:
    """Maximum load of an assignment, its lower bound, and steps that lower it.

    Parameters
    ----------
    reached
        Maximum load after the last step.
    """

    makespan: LevelValue
    reached: int
    steps: tuple[Explanation, ...]

    @property
    def is_optimal(self) -> bool | None:
        """Return whether the maximum load is minimal, or None if that is not proven."""
        if self.makespan.gap == 0:
            return True
        return False if self.reached < self.makespan.value else None


def explain_weighted(
    group: Group,
    assignment: Assignment,
    *,
    tolerance: Tolerance | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> WeightedExplanation:
    """Explain the maximum load of an assignment as transfers to a balanced assignment.

    The balanced assignment has the fewest transfers within a tolerance of the minimum maximum
    load; by default that of a plan. The steps are those of a plan for a group that owns the
    partitions as assigned.

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
    value = max(loads(group, assignment).values(), default=0)
    if solution.assignment is None:
        return WeightedExplanation(
            makespan=LevelValue("makespan", value, 0), reached=value, steps=()
        )
    steps = move_steps(started, schedule_moves(started, solution.assignment))
    return WeightedExplanation(
        makespan=LevelValue("makespan", value, min(value, solution.imbalance.bound)),
        reached=solution.imbalance.value,
        steps=tuple(_explanation(group, step) for step in steps),
    )


def _explanation(group: Group, step: MoveStep) -> Explanation:
    owners = ownership(group).owners
    moves = 0
    for move in step.moves:
        owner = owners[move.topic][move.partition]
        name = None if owner == NO_OWNER else group.members[owner].id
        moves += (name is not None) * ((move.target != name) - (move.source != name))
    return Explanation(
        transfers=tuple(
            Transfer(TopicPartition(move.topic, move.partition), move.source or "", move.target)
            for move in step.moves
        ),
        members=step.loads,
        moves=moves,
        imbalance=(
            max((before for _, before, _ in step.loads), default=0),
            max((after for _, _, after in step.loads), default=0),
        ),
    )
