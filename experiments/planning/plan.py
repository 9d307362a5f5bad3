"""Plan the moves of a group. All searches of a plan share its limits."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from kassay.experiments.comparison.compare import LIMITS, CaseLimits, keep_owners
from kassay.experiments.planning import moves as move_schedule
from kassay.experiments.planning import plan_result
from kassay.experiments.planning.assignor_outcomes import (
    AssignmentMetrics,
    AssignorOutcome,
    assignment_metrics,
    assignor_outcomes,
)
from kassay.experiments.planning.cause_evidence import Cause, finding_of
from kassay.experiments.planning.causes import find_cause
from kassay.experiments.planning.effective_actions import (
    EffectiveAction,
    change_forecasts,
    effective_actions,
)
from kassay.experiments.planning.identify_assignor import client_assignors
from kassay.experiments.planning.recommended_action import (
    NOTHING,
    PENDING,
    Reading,
    ToDo,
    is_contradicted,
    read_group,
    to_do,
)
from kassay.experiments.planning.scale import MoreMembers, more_members
from kassay.experiments.planning.window_plan_check import WindowAdvice, cycle_windows, window_advice
from kassay.reference.model import load_metrics as group_metrics
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import other_reading, require_group, require_single_copies
from kassay.solver.capacity_planning import LimitingPartition, Progress, limiting_partition
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.evaluation import check_constraints, group_constraints
from kassay.solver.frontier import Frontier, FrontierPoint, frontier
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import (
    Imbalance,
    Level,
    Movement,
    MovementCost,
    default_measure,
    requested_levels,
)
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

FEW_MOVES = 10
"""Maximum number of moves of the option `FEWER_MOVES`."""
RECOMMENDED, FEWER_MOVES = "plan", "at most ten moves"
BALANCED, ALMOST_BALANCED = "minimum imbalance", "lowest imbalance found"
MOVE_COLUMNS = ("batch", "topic", "partition", "from", "to", "weight", "maximum load after")
"""Columns of the table of moves."""
_MAX_POINTS = 60
"""Maximum number of points of the frontier."""
_FURTHER_WORK = 3.0
"""Minimum work for all searches after the one for the planned assignment. Their maximum is the
work of that search, or half of its limit if that is less."""
_NOT_FOUND = "no assignment found within the limits; increase the limits"
_CONTENT_SECONDS = 1.2e-4
"""Seconds per partition that kassay needs to write a plan after the searches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOption:
    """Alternative assignment in a plan, with imbalance, moves and lower bounds.

    The bound on imbalance holds for the option's number of moves or fewer; the bound on moves
    for the option's imbalance or less.
    """

    name: str
    assignment: Assignment = field(repr=False)
    metrics: AssignmentMetrics
    imbalance: LevelValue
    movement: LevelValue
    batches: tuple[move_schedule.MoveBatch, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Plan for one group, with the planned assignment, moves and alternatives.

    Parameters
    ----------
    current
        Partitions without an owner count for their least loaded subscriber.
    levels, constraints
        Objective of the plan.
    solution
        Planned assignment, with value and bound per level.
    optimum
        Assignment with minimum imbalance, without tolerance and without a limit on moves.
    verdict
        Result in one sentence, with the planned maximum load and its lower bound.
    steps
        The moves in order, as steps along chains of members.
    options
        The planned assignment and the alternatives to it.
    actions
        Effective actions instead of the list of moves, the recommended one first.
    other_reading
        Result under the other assumption about unknown subscriptions; None if both are equal.
    interrupted
        Whether the safety limit or the event ``stop`` ended a search. The plan is then the best
        one found; alternatives and assignors may be missing.
    limiting_partition
        Partition whose weight is the lowest possible maximum load, or None.
    more_members
        First useful number of members above the current one, as in `scale`.
    cause
        Cause of the imbalance, or None if the group is balanced, or no cause is known.
    windows
        Peaks and hold-out test of a group with several windows, else None. If the plan fails the
        test, it has no cause and no actions.
    """

    group: Group
    current: AssignmentMetrics
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]
    solution: Solution = field(repr=False)
    optimum: Solution = field(repr=False)
    planned: AssignmentMetrics
    verdict: plan_result.Verdict
    batches: tuple[move_schedule.MoveBatch, ...]
    steps: tuple[move_schedule.MoveStep, ...]
    options: tuple[PlanOption, ...]
    frontier: Frontier
    client: str | None
    interrupted: bool
    assignor_outcomes: tuple[AssignorOutcome, ...]
    actions: tuple[EffectiveAction, ...]
    other_reading: Reading | None
    limiting_partition: LimitingPartition | None
    more_members: MoreMembers
    cause: Cause | None
    windows: WindowAdvice | None

    def __repr__(self) -> str:
        under = "" if self.condition is None else f" if {self.condition}"
        units = group_metrics.member_units(self.group)
        return (
            f"<plan of {self.group!r}: {count_of(self.movement, 'move')}, maximum load "
            f"{units.shown(self.current.makespan):,} to {units.shown(self.planned.makespan):,}, "
            f"{self.solution.status}{under}>"
        )

    @property
    def makespan(self) -> LevelValue:
        """Return the maximum load of the planned assignment, with a lower bound."""
        return self.verdict.makespan

    @property
    def is_recommended(self) -> bool:
        """Return whether the plan passes its test on the last cycle, or has no test."""
        return self.windows is None or self.windows.is_recommended

    @property
    def to_do(self) -> ToDo:
        """Return the recommended action."""
        if not self.is_recommended:
            return NOTHING
        found, is_interrupted = finding_of(self.group), self.interrupted
        return to_do(self.cause, self.actions, self.verdict, found, is_interrupted=is_interrupted)

    @property
    def condition(self) -> str | None:
        """Return the condition under which the plan holds, or None."""
        return self.verdict.condition

    @property
    def assignment(self) -> Assignment:
        """Return the planned assignment. Raise LookupError if the plan has none."""
        if self.solution.assignment is None:
            raise LookupError("internal error: the plan has no assignment; report a bug")
        return self.solution.assignment

    @property
    def moves(self) -> tuple[move_schedule.Move, ...]:
        """Return the moves in the order of the plan."""
        return tuple(move for batch in self.batches for move in batch.moves)

    @property
    def movement(self) -> int:
        """Return the number of moves."""
        return self.verdict.moves

    @property
    def unowned(self) -> tuple[str, ...]:
        """Return the partitions of subscribed topics without an owner, as ``topic-number``."""
        unowned = plan_result.unowned_partitions(self.group).items()
        return tuple(f"{topic}-{number}" for topic, numbers in unowned for number in numbers)

    @property
    def idle(self) -> tuple[str, ...]:
        """Return the members that consume no topic."""
        consuming = set(group_metrics.participants(self.group))
        return tuple(member.id for member in self.group.members if member.id not in consuming)

    def imbalance_by_moves(self) -> list[tuple[int, int]]:
        """Return pairs of moves and imbalance after each batch of the plan.

        The list is empty if the measure of the batches is not that of the frontier.
        """
        measure = self.frontier.measure
        if measure is not _scheduled_measure(measure):
            return []
        moved, found = 0, []
        if not any(move.source is None for move in self.moves):
            found.append((0, self.current.measures[str(measure)]))
        for batch in self.batches:
            moved += sum(move.source is not None for move in batch.moves)
            found.append((moved, batch.imbalance))
        return found

    def move_rows(self) -> Iterator[tuple[object, ...]]:
        """Yield one row per move for a table with `MOVE_COLUMNS`."""
        units = group_metrics.member_units(self.group)
        for number, batch in enumerate(self.batches, 1):
            for move in batch.moves:
                key = (move.topic, move.partition, move.source, move.target, move.weight)
                yield (number, *key, units.shown(batch.makespan))

    def racks(self) -> list[dict[str, object]]:
        """Return the members and partitions of each rack, as JSON.

        Return an empty list for a group without racks. Members without a rack have the rack None.
        """
        group = self.group
        if not group_metrics.has_racks(group):
            return []
        members = Counter(member.rack for member in group.members)
        partitions: Counter[str | None] = Counter(
            rack for racks in group_metrics.replica_racks(group).values() for rack in racks
        )
        before, after = (
            Counter(one.rack for one in group.members for _ in assignment.get(one.id, ()))
            for assignment in (keep_owners(group), self.assignment)
        )
        return [
            {
                "rack": name,
                "members": members[name],
                "partitions": partitions[name],
                "consumed": {"current": before[name], "planned": after[name]},
            }
            for name in sorted({*members, *partitions}, key=lambda name: (name is None, name or ""))
        ]

    def hosts(self) -> list[dict[str, object]]:
        """Return the loads of each host, the highest relative load first, as JSON.

        Return an empty list if there is only one host, or no host has several members. A relative
        load is the load divided by the speed of the host, which is the sum of the speeds of its
        members; see `kassay.reference.model.load_metrics.LoadUnits`.
        """
        group, hosts = self.group, group_metrics.host_units(self.group)
        if not 1 < len(hosts.names) < len(hosts.unit_of):
            return []
        speeds = hosts.loads([group.members[index].speed for index in group.participant_indices])
        current, planned = (
            group_metrics.unit_loads(group, one, hosts)
            for one in (keep_owners(group), self.assignment)
        )
        before, after = map(hosts.relative_loads, (current, planned))
        return [
            {
                "host": hosts.names[unit],
                "members": hosts.unit_of.count(unit),
                "speed": speeds[unit],
                "current": current[unit],
                "planned": planned[unit],
                "relative_current": before[unit],
                "relative_planned": after[unit],
            }
            for unit in sorted(range(len(before)), key=lambda one: (-before[one], hosts.names[one]))
        ]


def plan(
    group: Group,
    *,
    levels: Iterable[Level | str] | str | None = None,
    constraints: Iterable[Constraint] = (),
    batch_size: int = 1,
    limits: SearchLimits | float = LIMITS,
    seed: int = 0,
    progress: Progress = lambda _: None,
    client: str | None = None,
    cycle: int | None = None,
) -> Plan:
    """Plan the moves of a group from its current to a balanced assignment.

    The planned assignment is the one of `solve` with the same levels and constraints.

    Parameters
    ----------
    levels, constraints
        As in `solve`. The default levels are imbalance, then movement. If weights differ, the
        tolerance of the imbalance is 2%, and the third level is the sum of squared loads.
    batch_size
        Maximum number of owned partitions without a consumer at any time.
    limits
        Limits of the search for the planned assignment. The further parts of the plan have at most
        half as much work, and share the safety limit.
    progress
        Function that receives the name of each part of the plan when the part starts.
    client
        Installed client library ``LIBRARY[@VERSION]``, whose own assignors are run.
    cycle
        Length of a cycle of windows in seconds. The plan is tested on the last cycle. Default: see
        `kassay.experiments.planning.window_plan_check.cycle_windows`.

    Raises
    ------
    UsageError
        If the levels do not include movement, partitions can have several members, or the group
        has less than two cycles of windows of the given length.
    LookupError
        If the group has no assignment: it has no members, or capacities are too small.

    Examples
    --------
    >>> from kassay.experiments.study.families.finite_families import NAMED_GROUPS
    >>> result = plan(NAMED_GROUPS["E"].group)
    >>> result.current.makespan, result.makespan.value, result.movement
    (11, 10, 2)
    """
    require_group(group)
    require_single_copies(group)
    levels = requested_levels(group, levels)
    if not any(isinstance(level, Movement) for level in levels):
        names = [level.name for level in levels]
        raise UsageError(f"the levels of a plan must include movement, got {', '.join(names)}")
    constraints = check_constraints(group, constraints)
    cycle_windows(group, cycle)
    own_assignors = () if client is None else client_assignors(client)
    limits = CaseLimits.of(limits)
    if limits.time is not None:
        # The content takes a part of the safety limit.
        content = min(_CONTENT_SECONDS * group.partition_count, limits.time / 2)
        limits = replace(limits, time=limits.time - content)
    budget = SearchBudget.start(limits, seed)
    search = _Search(budget, progress)
    solution = solve(
        group,
        levels=levels,
        constraints=constraints,
        limits=search.part("fewest moves", 1.0),
        seed=seed,
    )
    assignment, kept = solution.assignment, keep_owners(group)
    verdict = plan_result.verdict_of(group, solution, levels, constraints)
    if assignment is None or verdict is None:
        raise LookupError("; ".join(solution.conflict) or _NOT_FOUND)
    # The planned assignment is that of `solve` with all work, so the further parts have their own.
    further = max(_FURTHER_WORK, min(budget.counter.spent, budget.limits.work / 2))
    search = _Search(replace(budget, deadline=budget.counter.spent + further), progress)

    current, planned = assignment_metrics(group, kept), assignment_metrics(group, assignment)
    measure = _scheduled_measure(group_metrics.Measure(solution.imbalance.name))
    batches = move_schedule.schedule_moves(
        group, assignment, batch_size=batch_size, measure=measure
    )
    optimum = _exact_optimum(group, solution, levels, constraints, search)
    verdict = plan_result.verdict_of(group, solution, levels, constraints, optimum) or verdict
    # The planned assignment, and the assignments after each of its first moves.
    is_counted = all(
        level.cost is MovementCost.COUNT for level in levels if isinstance(level, Movement)
    )
    known = [assignment, *islice(move_schedule.after_batches(group, batches), _MAX_POINTS)]
    limiting = limiting_partition(group)
    curve = frontier(
        group,
        measure=group_metrics.Measure(solution.imbalance.name),
        constraints=_without_move_limit(constraints),
        max_points=_MAX_POINTS,
        optimum=optimum,
        known=known if is_counted else (),
        limits=search.part("loads by number of moves", 0.5),
        seed=seed,
    )
    optimum = _lowest(optimum, curve)
    other = _other_reading(group, levels, constraints, search)
    rules = (*group_constraints(group), *constraints)
    outcomes = tuple(
        assignor_outcomes(
            group,
            optimum,
            search.part("results of Kafka's assignors", 0.2 / 8),
            client=own_assignors,
            rules=rules,
        )
    )
    if group.window_count > 1:
        search.part("hold-out", 1)

    def search_windows(part: Group, share: float) -> Solution:
        rest = replace(budget, deadline=budget.counter.spent + share * _FURTHER_WORK).rest()
        return solve(part, levels=levels, constraints=constraints, limits=rest, seed=seed)

    windows = window_advice(group, assignment, search_windows, cycle=cycle)
    windows = None if budget.is_interrupted else windows
    larger = more_members(group, limits=search.part("members that help", 0.1))
    cause, actions = None, tuple[EffectiveAction, ...]()
    if not limits.is_stopped and (windows is None or windows.is_recommended):
        cause = find_cause(
            group,
            assignment,
            levels=levels,
            limiting=limiting,
            outcomes=outcomes,
            limits=search.part("cause of the imbalance", 0.1),
        )
        is_uneven = planned.measures != current.measures or plan_result.has_lost_rebalance(group)
        progress("simulated actions")
        actions = effective_actions(
            group,
            current=current,
            planned=planned,
            outcomes=outcomes,
            forecast=partial(change_forecasts, group, seed=seed) if is_uneven else lambda _: (),
            levels=levels,
            rules=rules,
            is_pending=cause is not None and cause.kind in PENDING,
        )
    recommended = to_do(cause, actions, verdict).action
    return Plan(
        group=group,
        current=current,
        levels=levels,
        constraints=constraints,
        solution=solution,
        optimum=optimum,
        planned=planned,
        verdict=verdict,
        batches=batches,
        steps=move_schedule.move_steps(group, batches),
        options=plan_options(group, solution, optimum, curve),
        frontier=curve,
        client=own_assignors[0].partition(":")[0] if own_assignors else None,
        interrupted=budget.counter.is_interrupted,
        assignor_outcomes=outcomes,
        actions=()
        if is_contradicted(cause, verdict)
        else tuple(sorted(actions, key=lambda one: one is not recommended)),
        other_reading=other,
        limiting_partition=limiting,
        more_members=larger,
        cause=cause,
        windows=windows,
    )


@dataclass(frozen=True, slots=True)
class _Search:
    budget: SearchBudget
    progress: Progress

    def part(self, name: str, share: float) -> CaseLimits:
        """Report the start of a planning stage, and return its search limits."""
        if not self.budget.limits.is_stopped:
            self.progress(name)
        return CaseLimits.of(self.budget.part(share).rest())


def _exact_optimum(
    group: Group,
    solution: Solution,
    levels: tuple[Level, ...],
    constraints: tuple[Constraint, ...],
    search: _Search,
) -> Solution:
    """Find the minimum imbalance without tolerance and without a limit on moves."""
    rules = _without_move_limit(constraints)
    measures = [level.measure for level in levels if isinstance(level, Imbalance)]
    exact = (Imbalance(measures[0] if measures else default_measure(group)), Movement())
    if rules == constraints and levels[:2] == exact:
        return solution
    found = solve(
        group,
        levels=exact,
        constraints=rules,
        limits=search.part("minimum imbalance", 0.4),
        seed=search.budget.seed,
    )
    if found.assignment is None:
        return solution
    given, minimum = solution.levels[0], found.imbalance
    if rules == constraints and given.name == minimum.name and given.bound > minimum.bound:
        proven = replace(minimum, bound=min(given.bound, minimum.value))
        return replace(found, levels=(proven, *found.levels[1:]))
    return found


def _other_reading(
    group: Group, levels: tuple[Level, ...], constraints: tuple[Constraint, ...], search: _Search
) -> Reading | None:
    """Return the result under the other assumption on subscriptions, or None without one."""
    other, limits = other_reading(group), search.part("other subscriptions", 0.3)
    if other is None:
        return None
    with suppress(LookupError):
        return read_group(other, levels, constraints, limits=limits, seed=search.budget.seed)
    return None


def _without_move_limit(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    return tuple(rule for rule in constraints if not isinstance(rule, MaxMoves))


def _lowest(optimum: Solution, curve: Frontier) -> Solution:
    """Return the better of a solution and the frontier's last point, by imbalance, then moves."""
    if not curve.points or optimum.is_optimal:
        return optimum
    last = curve.points[-1]
    values = (optimum.imbalance.value, optimum.movement.value)
    if (last.imbalance.value, last.movement.value) >= values:
        return optimum
    levels = (last.imbalance, last.movement)
    return replace(optimum, assignment=last.assignment, levels=levels, certificate=None)


def plan_options(
    group: Group, solution: Solution, optimum: Solution, frontier: Frontier
) -> tuple[PlanOption, ...]:
    """Return the planned assignment and alternatives with other numbers of moves."""
    measure = _scheduled_measure(group_metrics.Measure(solution.imbalance.name))
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
    if values != (top, optimum.imbalance.value):
        is_proven = optimum.imbalance.gap == 0
        found.append((BALANCED if is_proven else ALMOST_BALANCED, optimum))
    return tuple(
        PlanOption(
            name=name,
            assignment=one.assignment,
            metrics=assignment_metrics(group, one.assignment),
            imbalance=one.imbalance,
            movement=one.movement,
            batches=move_schedule.schedule_moves(group, one.assignment, measure=measure),
        )
        for name, one in found
        if one.assignment is not None
    )


def _within_few_moves(frontier: Frontier, count: int) -> FrontierPoint:
    """Return the last frontier point with few moves, with a bound for `FEW_MOVES` moves.

    If points are missing, the bound is that of the next point: it also holds for fewer moves.
    """
    point = frontier.points[count - 1]
    if frontier.complete or point.movement.value == FEW_MOVES:
        return point
    bound = min((one.imbalance.bound for one in frontier.points[count : count + 1]), default=0)
    return replace(point, imbalance=replace(point.imbalance, bound=bound))


def _scheduled_measure(measure: group_metrics.Measure) -> group_metrics.Measure:
    is_leximax = measure is group_metrics.Measure.LEXIMAX
    return group_metrics.Measure.SUM_OF_SQUARES if is_leximax else measure
