"""Data classes of a plan for one group: planned assignment, moves and alternatives."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from fractions import Fraction

from kassay.experiments.planning.group_plan.actions import RecommendedAction
from kassay.experiments.planning.group_plan.assignor_outcomes import (
    AssignmentMetrics,
    AssignorOutcome,
)
from kassay.experiments.planning.group_plan.plan_alternatives import PlanOption, scheduled_measure
from kassay.experiments.planning.group_plan.rack_locality import RackLocality
from kassay.experiments.planning.moves.explained_steps import MoveStep
from kassay.experiments.planning.moves.move_schedule import Move, MoveBatch
from kassay.experiments.planning.preparation.plan_verdict import Verdict, plan_condition
from kassay.reference.documents.csv_writer import write_csv
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import member_units
from kassay.solver.constraints import Constraint
from kassay.solver.frontier.frontier_points import Frontier
from kassay.solver.objective import Level
from kassay.solver.sizing.limiting_partition import LimitingPartition
from kassay.solver.sizing.member_loss import MemberLosses
from kassay.solver.sizing.members_needed import Sizing
from kassay.solver.solution import LevelValue, Solution, value_and_bound

MOVE_COLUMNS = ("batch", "topic", "partition", "from", "to", "weight", "maximum load after")
"""Columns of the table of moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthSizing:
    """Number of members needed to keep the planned maximum load when traffic grows.

    ``makespan`` is in current units: the planned maximum load divided by the growth factor.
    """

    growth: Fraction
    makespan: int
    sizing: Sizing

    def record(self) -> dict[str, object]:
        """Return the number of members as a JSON object."""
        return {
            "growth": str(self.growth),
            "makespan": self.makespan,
            "members": value_and_bound(self.sizing.needed),
            "reason": self.sizing.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMoves:
    """Imbalance after the first moves of a plan, and the lowest one found for as many moves."""

    moves: int
    imbalance: int
    lowest: int

    def record(self) -> dict[str, int]:
        """Return the values as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Plan for one group: current state, planned assignment, moves and alternatives.

    Parameters
    ----------
    current
        Owned partitions count with their owners, the others with their least loaded subscriber.
    unowned
        Consumed partitions without an owner, as ``topic-number``.
    idle
        Members without a consumed topic.
    racks
        None for a group without racks.
    levels, constraints
        Objective of the plan.
    solution
        Planned assignment, with value and bound per level.
    optimum
        Assignment with minimum imbalance without tolerance and limit on moves.
    makespan
        Maximum load of the planned assignment, and a lower bound on the maximum load.
    growth_sizings
        Empty if the weights are lag, which is a backlog and not a load.
    steps
        The moves in order, as steps along chains of members.
    options
        The planned assignment and the alternatives to it.
    actions
        Effective actions instead of the list of moves, those with the fewest moves first.
    other_reading
        Result with the other limit of assumed subscriptions; None if it is the same group.
    interrupted
        Whether the safety limit or the event ``stop`` ended a search. The plan is the best one
        found until then; alternatives, assignors, sizings and losses may be missing.
    limiting_partition
        Partition whose weight is the lowest possible maximum load, or None.
    is_first
        Whether the search for alternatives, assignors, sizings and losses continues.
    """

    group: Group
    current: AssignmentMetrics
    unowned: tuple[str, ...]
    idle: tuple[str, ...]
    racks: RackLocality | None
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]
    solution: Solution = field(repr=False)
    optimum: Solution = field(repr=False)
    planned: AssignmentMetrics
    makespan: LevelValue
    moves: tuple[Move, ...]
    batches: tuple[MoveBatch, ...]
    steps: tuple[MoveStep, ...]
    options: tuple[PlanOption, ...]
    frontier: Frontier
    client: str | None
    interrupted: bool
    assignor_outcomes: tuple[AssignorOutcome, ...] = ()
    actions: tuple[RecommendedAction, ...] = ()
    growth_sizings: tuple[GrowthSizing, ...] = ()
    member_losses: MemberLosses = field(default_factory=lambda: MemberLosses(()))
    other_reading: Verdict | None = None
    is_first: bool = True
    limiting_partition: LimitingPartition | None = None

    def __repr__(self) -> str:
        under = "" if self.condition is None else f" if {self.condition}"
        units = member_units(self.group)
        return (
            f"<plan of {self.group!r}: {self.movement:,} moves, maximum load "
            f"{units.shown(self.current.makespan):,} to {units.shown(self.planned.makespan):,}, "
            f"{self.solution.status}{under}>"
        )

    @property
    def verdict(self) -> Verdict:
        """Return the result of the plan, with the condition under which it holds."""
        return Verdict.of(self.group, self.solution, self.makespan, self.levels, self.constraints)

    @property
    def condition(self) -> str | None:
        """Return the condition under which the plan and its proofs hold, or None."""
        return plan_condition(self.group, self.levels)

    @property
    def assignment(self) -> Assignment:
        """Return the planned assignment."""
        if self.solution.assignment is None:
            raise LookupError("the plan has no assignment")
        return self.solution.assignment

    @property
    def movement(self) -> int:
        """Return the number of owned partitions that move to another member."""
        return sum(1 for move in self.moves if move.source is not None)

    def imbalance_by_moves(self) -> list[tuple[int, int]]:
        """Return the number of moves and the imbalance after each batch of the plan.

        The list is empty if the batches have another measure than the frontier.
        """
        measure = self.frontier.measure
        if measure is not scheduled_measure(measure):
            return []
        moved, found = 0, []
        if not any(move.source is None for move in self.moves):
            found.append((0, self.current.measures[str(measure)]))
        for batch in self.batches:
            moved += sum(move.source is not None for move in batch.moves)
            found.append((moved, batch.imbalance))
        return found

    def first_moves(self) -> list[FirstMoves]:
        """Compare the first moves of the plan with the points of the frontier."""
        lowest = {row.moves: row.imbalance for row in self.frontier.table()}
        return [
            FirstMoves(moves=moves, imbalance=imbalance, lowest=lowest[moves])
            for moves, imbalance in self.imbalance_by_moves()
            if 0 < moves < self.movement and moves in lowest
        ]

    def move_rows(self) -> Iterator[tuple[object, ...]]:
        """Yield the values of `MOVE_COLUMNS` for each move, in execution order."""
        units = member_units(self.group)
        for number, batch in enumerate(self.batches, 1):
            for move in batch.moves:
                key = (move.topic, move.partition, move.source, move.target, move.weight)
                yield (number, *key, units.shown(batch.makespan))


def moves_csv(plan: Plan) -> str:
    """Convert the moves of a plan to CSV text, one line per move in execution order."""
    return write_csv(MOVE_COLUMNS, plan.move_rows())


def loads_csv(plan: Plan) -> str:
    """Convert the current and planned loads to CSV text, one line per member."""
    planned = plan.planned.loads
    rows = ((member, load, planned.get(member, 0)) for member, load in plan.current.loads.items())
    return write_csv(("member", "current load", "planned load"), rows)
