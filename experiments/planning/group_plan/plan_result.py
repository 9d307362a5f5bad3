"""Data classes of a plan: planned assignment, moves, alternatives and loads of hosts."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction

from kassay.experiments.comparison.optimum import keep_owners
from kassay.experiments.planning.group_plan.actions import (
    AssignmentMetrics,
    AssignorOutcome,
    RecommendedAction,
    assignment_metrics,
)
from kassay.experiments.planning.group_plan.rack_locality import RackLocality
from kassay.experiments.planning.moves.explain_moves import MoveStep
from kassay.experiments.planning.moves.move_schedule import Move, MoveBatch, schedule_moves
from kassay.experiments.planning.preparation.plan_verdict import Verdict, plan_condition
from kassay.reference.documents.csv_writer import write_csv
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, host_units, load_vector, member_units
from kassay.solver.constraints import Constraint
from kassay.solver.frontier.frontier_points import Frontier, FrontierPoint
from kassay.solver.objective import Level
from kassay.solver.sizing.limiting_partition import LimitingPartition
from kassay.solver.sizing.member_loss import MemberLosses
from kassay.solver.sizing.members_needed import Sizing
from kassay.solver.solution import LevelValue, Solution, value_and_bound

FEW_MOVES = 10
"""Maximum number of moves of the option `FEWER_MOVES`."""
RECOMMENDED, FEWER_MOVES = "plan", "at most ten moves"
BALANCED, ALMOST_BALANCED = "minimum imbalance", "lowest imbalance found"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOption:
    """Option of a plan: an assignment with its imbalance, moves and their lower bounds.

    The bound on imbalance holds for the option's number of moves or fewer; the bound on moves
    for the option's imbalance or less.
    """

    name: str
    assignment: Assignment = field(repr=False)
    metrics: AssignmentMetrics
    imbalance: LevelValue
    movement: LevelValue
    batches: tuple[MoveBatch, ...] = field(repr=False)

    def record(self) -> dict[str, object]:
        """Return the option as a JSON object."""
        return {
            "option": self.name,
            "makespan": self.metrics.makespan,
            "imbalance": value_and_bound(self.imbalance),
            "movement": value_and_bound(self.movement),
            "batches": [batch.record() for batch in self.batches],
        }


def plan_options(
    group: Group, solution: Solution, optimum: Solution, frontier: Frontier
) -> tuple[PlanOption, ...]:
    """List the planned assignment and alternatives, in ascending order of moves."""
    measure = scheduled_measure(Measure(solution.imbalance.name))
    values = (solution.movement.value, solution.imbalance.value)
    chosen = next(
        (one for one in frontier.points if (one.movement.value, one.imbalance.value) == values),
        solution,
    )
    found: list[tuple[str, Solution | FrontierPoint]] = [(RECOMMENDED, chosen)]
    few = [point for point in frontier.points if point.movement.value <= FEW_MOVES]
    top = optimum.movement.value
    if few and top > FEW_MOVES and few[-1].movement.value != solution.movement.value:
        found.append((FEWER_MOVES, _within_few_moves(frontier, len(few))))
    planned = (solution.imbalance.value, solution.movement.value)
    if planned != (optimum.imbalance.value, top):
        is_proven = optimum.imbalance.gap == 0
        found.append((BALANCED if is_proven else ALMOST_BALANCED, optimum))
    return tuple(
        PlanOption(
            name=name,
            assignment=one.assignment,
            metrics=assignment_metrics(group, one.assignment),
            imbalance=one.imbalance,
            movement=one.movement,
            batches=schedule_moves(group, one.assignment, measure=measure),
        )
        for name, one in found
        if one.assignment is not None
    )


def _within_few_moves(frontier: Frontier, count: int) -> FrontierPoint:
    """Return the last of the first points, with a bound for `FEW_MOVES` moves.

    The bound of the next point holds for more moves than these.
    """
    point = frontier.points[count - 1]
    if frontier.complete or point.movement.value == FEW_MOVES:
        return point
    bound = min((one.imbalance.bound for one in frontier.points[count : count + 1]), default=0)
    return replace(point, imbalance=replace(point.imbalance, bound=bound))


def scheduled_measure(measure: Measure) -> Measure:
    """Return the measure that the schedule shows: for leximax, the sum of squares."""
    return Measure.SUM_OF_SQUARES if measure is Measure.LEXIMAX else measure


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """Loads of one host: the sums of the loads of its members.

    A relative load is the load divided by the speed of the host, which is the sum of the speeds
    of its members; see `kassay.reference.model.metrics.LoadUnits`.
    """

    host: str
    members: int
    speed: int
    current: int
    planned: int
    relative_current: int
    relative_planned: int


def host_loads(group: Group, planned: Assignment) -> tuple[HostLoad, ...]:
    """Return the loads of each host, the highest relative load first.

    Return nothing if there is only one host, or if no host has several members.

    Examples
    --------
    >>> from kassay.reference.model.group_annotations import Client
    >>> from kassay.reference.model.group import Member, Topic
    >>> members = tuple(
    ...     Member(id=id, subscription=("t",), client=Client(host=host))
    ...     for id, host in (("a", "x"), ("b", "x"), ("c", "y"))
    ... )
    >>> group = Group(topics=(Topic(name="t", partitions=3),), members=members)
    >>> plan = Assignment({"a": [("t", 0)], "b": [("t", 1)], "c": [("t", 2)]})
    >>> [(one.host, one.members, one.planned) for one in host_loads(group, plan)]
    [('x', 2, 2), ('y', 1, 1)]
    """
    hosts = host_units(group)
    if not 1 < len(hosts.names) < len(hosts.unit_of):
        return ()
    speeds = [0] * len(hosts.names)
    for unit, index in zip(hosts.unit_of, group.participant_indices, strict=True):
        speeds[unit] += group.members[index].speed
    before, after = (
        hosts.loads(load_vector(group, assignment)) for assignment in (keep_owners(group), planned)
    )
    columns = (speeds, before, after, hosts.relative_loads(before), hosts.relative_loads(after))
    rows = (
        HostLoad(
            host=name,
            members=hosts.unit_of.count(unit),
            speed=speed,
            current=current,
            planned=then,
            relative_current=relative_current,
            relative_planned=relative_then,
        )
        for unit, (name, speed, current, then, relative_current, relative_then) in enumerate(
            zip(hosts.names, *columns, strict=True)
        )
    )
    return tuple(sorted(rows, key=lambda row: (-row.relative_current, row.host)))


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
