"""Plan the moves of one group. All searches of the plan share its limits."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from itertools import islice

from kassay.experiments.comparison.optimum import LIMITS, CaseLimits, keep_owners
from kassay.experiments.planning.actions import (
    AssignmentMetrics,
    AssignorOutcome,
    RackLocality,
    RecommendedAction,
    assignment_metrics,
    assignor_outcomes,
    compare_racks,
    effective_actions,
    minimum_cross_rack,
)
from kassay.experiments.planning.identify_assignor import client_assignors
from kassay.experiments.planning.moves import (
    Move,
    MoveBatch,
    MoveStep,
    after_batches,
    move_steps,
    moves_between,
    schedule_moves,
)
from kassay.experiments.planning.plan_verdict import (
    Verdict,
    makespan_of,
    other_verdict,
    plan_condition,
    planning_levels,
)
from kassay.reference.documents.csv_writer import write_csv
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import WeightSource
from kassay.reference.model.group_remarks import require_group, require_single_copies
from kassay.reference.model.metrics import (
    Measure,
    host_units,
    load_vector,
    member_units,
    participants,
)
from kassay.reference.model.ownership import NO_OWNER, ownership, rejoin
from kassay.solver.constraints import Constraint, MaxMoves, group_constraints
from kassay.solver.frontier.frontier import frontier
from kassay.solver.frontier.frontier_points import Frontier, FrontierPoint, frontier_point
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import (
    Imbalance,
    Level,
    Movement,
    MovementCost,
    default_measure,
    requested_levels,
)
from kassay.solver.sizing.limiting_partition import LimitingPartition, limiting_partition
from kassay.solver.sizing.member_loss import MemberLosses, member_loss
from kassay.solver.sizing.members_needed import Sizing, members_needed
from kassay.solver.solution import LevelValue, Solution, value_and_bound
from kassay.solver.solve import solve

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


GROWTH = (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2))
"""Default traffic growth factors for which the plan computes the number of members."""
_MAX_POINTS = 60
"""Maximum number of points of the frontier."""
_FURTHER_WORK = 3.0
"""Minimum work for the parts of a plan after the planned assignment. They have at most as much work
as the search for this assignment, and at most half of its limit."""
_CONTENT_SECONDS = 1.2e-4
"""Time per partition for the content of a plan, after its searches."""
Progress = Callable[[str], None]
"""Function that is called with the name of each part of the plan when the part starts."""


def plan(
    group: Group,
    *,
    levels: Iterable[Level | str] | str | None = None,
    constraints: Iterable[Constraint] = (),
    batch_size: int = 1,
    growth: Iterable[Fraction] = GROWTH,
    limits: SearchLimits | float = LIMITS,
    seed: int = 0,
    progress: Progress | None = None,
    client: str | None = None,
    first: Callable[[Plan], None] | None = None,
) -> Plan:
    """Plan the moves of a group from the current to a balanced assignment.

    The planned assignment is that of `solve` with the same levels and constraints.

    Parameters
    ----------
    levels, constraints
        As in `solve`. The default levels are imbalance, then movement. If weights differ, the
        tolerance of the imbalance is 2 %, and the third level is the sum of squared loads.
    batch_size
        Maximum number of owned partitions without a consumer at any time.
    growth
        Growth factors of the traffic to size the group for.
    limits
        Limits of the search for the planned assignment. The further parts of the plan have at most
        half as much work, and share the safety limit.
    progress
        Function that receives the name of each part of the plan when the part starts.
    client
        Installed client library ``LIBRARY[@VERSION]``, whose own assignors are run.
    first
        Function that receives a first plan before the searches for alternatives, if weights
        differ. This plan has no alternatives, results of assignors, numbers and losses of members.

    Raises
    ------
    UsageError
        If the levels do not include movement, or partitions can have several members.
    LookupError
        If the group has no assignment: it has no members, or capacities are too small.

    Examples
    --------
    >>> from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
    >>> result = plan(NAMED_GROUPS["E"].group)
    >>> result.current.makespan, result.makespan.value, result.movement
    (11, 10, 2)
    """
    require_group(group)
    require_single_copies(group)
    levels = planning_levels(group) if levels is None else requested_levels(group, levels)
    if not any(isinstance(level, Movement) for level in levels):
        names = ", ".join(level.name for level in levels)
        raise UsageError(f"the levels of a plan must include movement, got {names}")
    planner = _Planner(
        group=group,
        levels=levels,
        constraints=tuple(constraints),
        batch_size=batch_size,
        growth=tuple(growth),
        client_assignors=() if client is None else client_assignors(client),
        budget=SearchBudget.start(_search_limits(group, CaseLimits.of(limits)), seed),
        progress=progress,
    )
    found = planner.first_plan()
    if first is not None and group.is_weighted and not planner.is_stopped:
        first(found)
    # The planned assignment is that of `solve` with all work, so the further parts have their own.
    spent = planner.budget.counter.spent
    further = max(_FURTHER_WORK, min(spent, planner.budget.limits.work / 2))
    budget = replace(planner.budget, deadline=spent + further)
    return replace(planner, budget=budget).complete(found)


def _search_limits(group: Group, limits: CaseLimits) -> CaseLimits:
    """Return the limits of the searches, whose safety limit leaves time for the content."""
    if limits.time is None:
        return limits
    content = min(_CONTENT_SECONDS * group.partition_count, limits.time / 2)
    return replace(limits, time=limits.time - content)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    """Planner of one group: the assignment, then alternatives and the results of assignors."""

    group: Group
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]
    batch_size: int
    growth: tuple[Fraction, ...]
    client_assignors: tuple[str, ...]
    budget: SearchBudget
    progress: Progress | None

    @property
    def is_stopped(self) -> bool:
        """Return whether the caller stopped the searches. A reached limit does not count."""
        return self.budget.limits.is_stopped

    def first_plan(self) -> Plan:
        """Find the planned assignment, and create the plan without the parts of `complete`."""
        group = self.group
        solution = self._solve(self.levels, self.constraints, "fewest moves", 1.0)
        assignment, current = solution.assignment, keep_owners(group)
        if assignment is None:
            raise LookupError(
                "; ".join(solution.conflict) or "no assignment found within the limits"
            )
        consuming = participants(group)
        measure = Measure(solution.imbalance.name)
        points = (frontier_point(solution),) if self._counts_moves else ()
        known = Frontier(measure, points, complete=False)
        batches = schedule_moves(
            group, assignment, batch_size=self.batch_size, measure=scheduled_measure(measure)
        )
        return Plan(
            group=group,
            current=assignment_metrics(group, current),
            unowned=tuple(_unowned(group)),
            idle=tuple(member.id for member in group.members if member.id not in consuming),
            racks=compare_racks(group, current, assignment),
            levels=self.levels,
            constraints=self.constraints,
            solution=solution,
            optimum=solution,
            planned=assignment_metrics(group, assignment),
            makespan=makespan_of(group, solution, self.constraints) or LevelValue("makespan", 0, 0),
            moves=moves_between(group, assignment),
            batches=batches,
            steps=move_steps(group, batches),
            options=plan_options(group, solution, solution, known),
            frontier=known,
            client=next((name.partition(":")[0] for name in self.client_assignors), None),
            interrupted=self.budget.counter.is_interrupted,
        )

    def complete(self, first: Plan) -> Plan:
        """Add alternatives, results of assignors, and numbers and losses of members to a plan."""
        group, solution, rules = self.group, first.solution, self._rules
        optimum = self._optimum(solution)
        curve = frontier(
            group,
            measure=Measure(solution.imbalance.name),
            constraints=without_move_limit(self.constraints),
            max_points=_MAX_POINTS,
            optimum=optimum,
            known=self._known(first),
            limits=self._part("loads by number of moves", 0.3),
            seed=self.budget.seed,
        )
        optimum = _lowest(optimum, curve)
        other = other_verdict(
            group,
            self.levels,
            self.constraints,
            limits=self._part("other subscriptions", 0.3),
            seed=self.budget.seed,
        )
        outcomes = self._assignor_outcomes(optimum)
        found = replace(
            first,
            optimum=optimum,
            frontier=curve,
            options=plan_options(group, solution, optimum, curve),
            other_reading=other,
            racks=compare_racks(
                group,
                keep_owners(group),
                first.assignment,
                minimum=self._minimum_cross_rack(solution, optimum),
            ),
            assignor_outcomes=outcomes,
            growth_sizings=self._growth_sizings(first.planned.makespan),
            limiting_partition=limiting_partition(
                group, limits=self._part("split of a partition", 0.2), seed=self.budget.seed
            ),
            member_losses=self._member_losses(first.assignment),
            is_first=False,
        )
        if not self.is_stopped:
            actions = effective_actions(
                group,
                current=first.current,
                planned=first.planned,
                makespan=first.makespan,
                outcomes=outcomes,
                levels=self.levels,
                rules=rules,
            )
            found = replace(found, actions=actions)
        return replace(found, interrupted=self.budget.counter.is_interrupted)

    def _solve(
        self, levels: Sequence[Level], constraints: Sequence[Constraint], name: str, share: float
    ) -> Solution:
        return solve(
            self.group,
            levels=levels,
            constraints=constraints,
            limits=self._part(name, share),
            seed=self.budget.seed,
        )

    def _part(self, name: str, share: float) -> CaseLimits:
        """Report that a part of the planning starts, and return the limits for its searches."""
        if self.progress is not None and not self.is_stopped:
            self.progress(name)
        return CaseLimits.of(self.budget.part(share).rest())

    @property
    def _counts_moves(self) -> bool:
        """Whether each move has cost 1, so that the planned solution is a point of the frontier."""
        moves = [level for level in self.levels if isinstance(level, Movement)]
        return all(level.cost is MovementCost.COUNT for level in moves)

    def _known(self, first: Plan) -> list[Assignment]:
        """Return the planned assignment, and the assignments after each of its first moves."""
        if not self._counts_moves:
            return []
        prefixes = islice(after_batches(self.group, first.batches), _MAX_POINTS)
        return [first.assignment, *prefixes]

    @property
    def _rules(self) -> tuple[Constraint, ...]:
        """Constraints of the plan, with the capacities."""
        return (*group_constraints(self.group), *self.constraints)

    @property
    def _is_exact(self) -> bool:
        """Whether the plan has the minimum imbalance without tolerance and limit on moves."""
        is_unlimited = without_move_limit(self.constraints) == self.constraints
        return is_unlimited and self.levels[:2] == _exact_levels(self.group, self.levels)

    def _optimum(self, solution: Solution) -> Solution:
        """Find the minimum imbalance without tolerance and limit on moves."""
        if self._is_exact:
            return solution
        rules = without_move_limit(self.constraints)
        levels = _exact_levels(self.group, self.levels)
        found = self._solve(levels, rules, "minimum imbalance", 0.4)
        return solution if found.assignment is None else found

    def _minimum_cross_rack(self, solution: Solution, optimum: Solution) -> LevelValue | None:
        return minimum_cross_rack(
            self.group,
            solution,
            optimum=optimum.imbalance,
            constraints=without_move_limit(self.constraints),
            limits=self._part("reads across racks", 0.05),
            seed=self.budget.seed,
        )

    def _assignor_outcomes(self, optimum: Solution) -> tuple[AssignorOutcome, ...]:
        limits = self._part("results of Kafka's assignors", 0.2 / 8)
        client = self.client_assignors
        return tuple(
            assignor_outcomes(self.group, optimum, limits, client=client, rules=self._rules)
        )

    def _growth_sizings(self, makespan: int) -> tuple[GrowthSizing, ...]:
        group, factors = self.group, self.growth
        if group.weight_source is WeightSource.LAG or not group.has_equal_speeds:
            return ()
        limits = self._part("members for growing traffic", 0.6 / max(1, len(factors)))
        # The number of members does not depend on the owners. Without owners, no search for few
        # moves is necessary.
        unowned, seed = rejoin(group, Assignment({})), self.budget.seed
        found = []
        for growth in factors:
            if self.is_stopped:
                break
            target = int(makespan / growth)
            sizing = members_needed(unowned, makespan=target, sweep=(), limits=limits, seed=seed)
            found.append(GrowthSizing(growth=growth, makespan=target, sizing=sizing))
        return tuple(found)

    def _member_losses(self, assignment: Assignment) -> MemberLosses:
        limits = self._part("loss of a member", 0.1)
        losses = member_loss(self.group, assignment, limits=limits, seed=self.budget.seed)
        return MemberLosses(()) if self.is_stopped else losses


def without_move_limit(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Remove limits on the number of moves from the constraints."""
    return tuple(rule for rule in constraints if not isinstance(rule, MaxMoves))


def _exact_levels(group: Group, levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return two levels: imbalance without tolerance, then movement."""
    measures = [level.measure for level in levels if isinstance(level, Imbalance)]
    return (Imbalance(measures[0] if measures else default_measure(group)), Movement())


def _lowest(optimum: Solution, curve: Frontier) -> Solution:
    """Return the optimum, or the last point of the frontier if that is better."""
    if not curve.points or optimum.is_optimal:
        return optimum
    last = curve.points[-1]
    values = (optimum.imbalance.value, optimum.movement.value)
    if (last.imbalance.value, last.movement.value) >= values:
        return optimum
    levels = (last.imbalance, last.movement)
    return replace(optimum, assignment=last.assignment, levels=levels, certificate=None)


def _unowned(group: Group) -> Iterator[str]:
    subscribers = group.subscribers()
    for topic, owners in ownership(group).owners.items():
        if subscribers[topic]:
            for number in (owners == NO_OWNER).nonzero()[0].tolist():
                yield f"{topic}-{number}"
