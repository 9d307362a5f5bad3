"""Metrics of assignments, results of assignors, and manual actions that balance a group."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from kassay.experiments.comparison.compare import CaseLimits, fewest_moves_within
from kassay.experiments.implementations.library_catalogue import is_library_assignor
from kassay.experiments.implementations.runner import Ending, run_until_stable
from kassay.experiments.planning.identify_assignor import (
    DEFAULT_LIST,
    IdentifiedAssignor,
    Implementation,
    identify_assignor,
    kafka_name,
    lists_default_assignors,
    rolling_restarts,
    runs_in_client,
)
from kassay.experiments.planning.plan_verdict import count_of
from kassay.reference.assignors import ASSIGNORS, Goal, Release
from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.group import Group, Protocol
from kassay.reference.model.metrics import (
    Measure,
    has_racks,
    host_units,
    load_vector,
    loads,
    measures,
    member_units,
    off_rack,
    replica_racks,
)
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import violated
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import EXACT, CrossRack, HostImbalance, Imbalance, Level, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

_SECONDARY_WORK = 5.0
"""Maximum work of a search for the minimum of one secondary value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLocality:
    """Numbers of partitions that members consume across racks: current, planned, minimum.

    ``racks`` has the members, the partitions with a replica and the consumed partitions per rack,
    as in ``plan.json``. The rack of members without a rack has the name None. ``minimum`` is the
    minimum at the imbalance of the plan or less with any movement. It is None if the search did not
    reach this imbalance in time, or if the measure is leximax and the imbalance of the plan is not
    proven to be minimal.
    """

    racks: tuple[dict[str, object], ...]
    current: int
    planned: int
    minimum: LevelValue | None


def compare_racks(
    group: Group,
    current: Assignment,
    planned: Solution,
    *,
    optimum: LevelValue,
    constraints: Sequence[Constraint],
    limits: SearchLimits,
    seed: int,
) -> RackLocality | None:
    """Compare the rack locality of the current and the planned assignment with the minimum.

    ``optimum`` is the minimum imbalance under the constraints. Return None for a group without
    racks.
    """
    if not has_racks(group) or planned.assignment is None:
        return None
    members = Counter(member.rack for member in group.members)
    partitions: Counter[str | None] = Counter(
        rack for racks in replica_racks(group).values() for rack in racks
    )
    before, after = (
        Counter(one.rack for one in group.members for _ in assignment.get(one.id, ()))
        for assignment in (current, planned.assignment)
    )
    return RackLocality(
        racks=tuple(
            {
                "rack": name,
                "members": members[name],
                "partitions": partitions[name],
                "consumed": {"current": before[name], "planned": after[name]},
            }
            for name in sorted({*members, *partitions}, key=lambda name: (name is None, name or ""))
        ),
        current=off_rack(group, current),
        planned=off_rack(group, planned.assignment),
        minimum=_minimum_cross_rack(
            group, planned, optimum, constraints=constraints, limits=limits, seed=seed
        ),
    )


def _minimum_cross_rack(
    group: Group,
    planned: Solution,
    optimum: LevelValue,
    *,
    constraints: Sequence[Constraint],
    limits: SearchLimits,
    seed: int,
) -> LevelValue | None:
    allowed = planned.imbalance
    measure = Measure(allowed.name)
    is_minimum = optimum.gap == 0 and optimum.value == allowed.value
    if measure is Measure.LEXIMAX and not is_minimum:
        return None  # leximax takes no upper limit
    tolerance = EXACT if is_minimum else Tolerance(up_to=allowed.value)
    solution = solve(
        group,
        levels=(Imbalance(measure, tolerance), CrossRack()),
        constraints=constraints,
        initial_assignment=planned.assignment,
        limits=replace(limits, work=min(limits.work, _SECONDARY_WORK)),
        seed=seed,
    )
    # The second level is valid only at the imbalance of the plan.
    if solution.assignment is None or solution.imbalance.value > allowed.value:
        return None
    return solution.level(CrossRack.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentMetrics:
    """Loads and imbalance metrics of one assignment.

    ``loads`` has the members with a consumed topic. ``cross_rack`` is the number of partitions
    whose member is in a rack without a replica, None for a group without racks. ``host_makespan``
    is the maximum relative load of the hosts.
    """

    loads: dict[str, int]
    measures: dict[str, int]
    cross_rack: int | None
    host_makespan: int

    @property
    def makespan(self) -> int:
        """Return the maximum relative load of the members."""
        return self.measures[Measure.MAKESPAN]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorOutcome:
    """Result of rebalancing repeatedly with one of Kafka's assignors until nothing changes.

    ``detail`` is the error message of an assignor that failed; it has no metrics.
    ``minimum_movement`` is the minimum for an equal or lower imbalance, None if not proven.
    ``is_permitted`` states whether the result meets the constraints of the plan.
    """

    assignor: str
    ending: str
    detail: str | None
    rebalances: int
    metrics: AssignmentMetrics | None = None
    movement: int | None = None
    minimum_movement: int | None = None
    is_permitted: bool = True


def assignment_metrics(group: Group, assignment: Assignment) -> AssignmentMetrics:
    """Compute the loads and imbalance metrics of an assignment."""
    hosts = host_units(group)
    host_loads = hosts.loads(load_vector(group, assignment))
    return AssignmentMetrics(
        loads=loads(group, assignment),
        measures={str(name): value for name, value in measures(group, assignment).items()},
        cross_rack=off_rack(group, assignment) if has_racks(group) else None,
        host_makespan=max(hosts.relative_loads(host_loads), default=0),
    )


def rebalance(group: Group, assignor: str, *, rules: Sequence[Constraint] = ()) -> AssignorOutcome:
    """Rebalance a group with an assignor until nothing changes, and measure the result.

    ``rules`` are constraints and capacities, which no assignor knows.
    """
    stable = run_until_stable(group, assignor)
    outcome = AssignorOutcome(
        assignor=assignor, ending=str(stable.ending), detail=stable.detail, rebalances=stable.rounds
    )
    assignment = stable.assignment
    if assignment is None or stable.ending is not Ending.OK:
        return outcome
    return replace(
        outcome,
        metrics=assignment_metrics(group, assignment),
        movement=movement(group, assignment),
        is_permitted=_is_permitted(group, assignment, rules),
    )


def assignor_outcomes(
    group: Group,
    optimum: Solution,
    limits: CaseLimits,
    *,
    client: Sequence[str] = (),
    rules: Sequence[Constraint] = (),
) -> Iterator[AssignorOutcome]:
    """Run the assignors of a client library and of Kafka on a group, and yield the results.

    Assignors of the old ZooKeeper consumer are skipped. ``rules`` are those of `rebalance`. If the
    search is stopped, the outcomes of further ports are missing.
    """
    ports = (n for n, port in ASSIGNORS.items() if port.release is not Release.ZOOKEEPER_CONSUMER)
    for assignor in (*client, *ports):
        if limits.is_stopped:
            return
        outcome = rebalance(group, assignor, rules=rules)
        if outcome.metrics is not None and not rules:
            fewest = _minimum_movement(group, outcome.metrics, optimum, limits)
            outcome = replace(outcome, minimum_movement=fewest)
        yield outcome


def _is_permitted(group: Group, assignment: Assignment, rules: Sequence[Constraint]) -> bool:
    """Return whether an assignment of all partitions meets constraints."""
    if not rules:
        return True
    problem = build_problem(group)
    placement = problem.to_placement(assignment)
    return placement is not None and not any(violated(problem, rules, placement))


def _minimum_movement(
    group: Group, metrics: AssignmentMetrics, optimum: Solution, limits: CaseLimits
) -> int | None:
    is_measured = optimum.imbalance.name in metrics.measures
    if optimum.imbalance.gap or optimum.movement.gap or not is_measured:
        return None
    imbalance = metrics.measures[optimum.imbalance.name]
    brief = replace(limits, work=min(limits.work, _SECONDARY_WORK))
    return fewest_moves_within(group, imbalance, optimum=optimum, limits=brief)


_FEW_MOVES = frozenset(
    name
    for name, port in ASSIGNORS.items()
    if port.goal is Goal.BALANCE_AND_FEW_MOVES and port.release is Release.NEWEST
)
_RESTARTED = 3
"""Number of members whose restart is evaluated: those with the highest loads."""
_EXCESS = 20
"""An action is effective if its maximum load exceeds the planned maximum by at most 1/20."""
_UNEVEN = 6
"""More partitions are recommended if the maximum load exceeds the mean by more than 1/6."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendedAction:
    """Recommended manual action, with the loads after it and the number of moves.

    ``metrics`` is None if the action changes the partitions. ``changes_assignor`` is true if all
    members need another configuration.
    """

    text: str
    metrics: AssignmentMetrics | None
    moves: int | None
    changes_assignor: bool = False

    @property
    def makespan(self) -> int | None:
        """Return the maximum relative load after the action."""
        return None if self.metrics is None else self.metrics.makespan


def effective_actions(
    group: Group,
    *,
    current: AssignmentMetrics,
    planned: AssignmentMetrics,
    makespan: LevelValue,
    outcomes: Sequence[AssignorOutcome],
    levels: Sequence[Level] = (),
    rules: Sequence[Constraint] = (),
) -> tuple[RecommendedAction, ...]:
    """Find manual actions that balance a group, those with the fewest moves first.

    An action almost reaches the maximum load of the plan, and the values of its other levels for
    hosts and racks. It lowers at least one of them, or the sum of squares if the plan keeps the
    maximum load.

    Parameters
    ----------
    makespan
        Maximum load of the planned assignment, and a lower bound on the maximum load.
    outcomes
        Results of Kafka's assignors for the group.
    levels, rules
        Levels and constraints of the plan, with the capacities. The results of actions meet the
        constraints.
    """
    found = [
        *_assignor_changes(group, outcomes),
        *_restarts(group, current, rules),
        *(() if rules else _further_partitions(group, planned, makespan)),
    ]
    values = compared_measures(current, planned, levels).values()

    def is_effective(reached: AssignmentMetrics | None) -> bool:
        """Return whether an action lowers a value, and almost reaches the values of the plan."""
        if reached is None:
            return True
        is_near = all(v(reached) <= v(planned) + v(planned) // _EXCESS for v in values)
        return is_near and any(value(reached) < value(current) for value in values)

    effective = [one for one in found if is_effective(one.metrics)]
    return tuple(sorted(effective, key=lambda one: (one.moves is None, one.moves or 0)))


def compared_measures(
    current: AssignmentMetrics, planned: AssignmentMetrics, levels: Sequence[Level]
) -> dict[str, Callable[[AssignmentMetrics], int]]:
    """Return the measures of which an effective action almost reaches the planned values."""
    values: dict[str, Callable[[AssignmentMetrics], int]] = {"makespan": lambda one: one.makespan}
    if planned.makespan >= current.makespan:
        values["sum_of_squares"] = lambda one: one.measures[Measure.SUM_OF_SQUARES]
    if any(isinstance(level, HostImbalance) for level in levels):
        values["host_makespan"] = lambda one: one.host_makespan
    if any(isinstance(level, CrossRack) for level in levels):
        values["cross_rack"] = lambda one: one.cross_rack or 0
    return values


def _assignor_changes(
    group: Group, outcomes: Sequence[AssignorOutcome]
) -> Iterator[RecommendedAction]:
    own = identify_assignor(group)
    is_other = own.implementation is Implementation.OTHER
    has_client = any(is_library_assignor(one.assignor) for one in outcomes)
    for outcome in outcomes:
        if outcome.metrics is None or outcome.movement is None or not outcome.is_permitted:
            continue
        origin, of_library, name = "", "", outcome.assignor
        if is_library_assignor(name):
            library, _, name = name.partition(":")
            of_library = f" of {library}"
        elif ASSIGNORS[name].release is not Release.NEWEST or not own.offers(name):
            continue
        elif runs_in_client(name) and has_client:
            continue  # The results of the library itself replace those of the ports.
        elif is_other:
            if name == own.name:
                continue
            origin = f"computed with the {name} of Java, " if runs_in_client(name) else ""
        if name == own.name:
            text = f"trigger a rebalance: {name}{of_library} then balances the group"
        else:
            text = f"{_switch(group, name)}{of_library}"
        restarts = "" if of_library or name == own.name else _restarts_of_change(own, name)
        result = _result(group, outcome.metrics, outcome.movement)
        yield RecommendedAction(
            text=f"{text} ({origin}{result}{restarts})",
            metrics=outcome.metrics,
            moves=outcome.movement,
            changes_assignor=name != own.name,
        )


def _restarts_of_change(own: IdentifiedAssignor, name: str) -> str:
    """Describe the number of rolling restarts that change the assignor of a group."""
    if own.implementation is Implementation.BROKER and runs_in_client(name):
        return ""
    count = len(rolling_restarts(own.name, name))
    if count > 1 and lists_default_assignors(own, own.name or DEFAULT_LIST[0]):
        return f"; {count} rolling restarts, or 1 from the default list of the Java client"
    return f"; {count_of(count, 'rolling restart')}"


def _switch(group: Group, name: str) -> str:
    """Describe the change to another assignor, and to another protocol if the group needs it."""
    own, is_client = identify_assignor(group), runs_in_client(name)
    shown = kafka_name(name)
    runs_classic = group.status.protocol is Protocol.CLASSIC or (
        own.name is not None and runs_in_client(own.name)
    )
    if own.implementation is Implementation.BROKER and is_client:
        return f"switch to the classic protocol with the assignor {shown}"
    if runs_classic and not is_client:
        return f"switch to the consumer protocol with the assignor {shown}"
    return f"switch the assignor to {shown}{'' if is_client else ' of the consumer protocol'}"


def _result(group: Group, metrics: AssignmentMetrics, moves: int) -> str:
    load = member_units(group).shown(metrics.makespan)
    return f"{count_of(moves, 'move')}, maximum load {load:,}"


def _restarts(
    group: Group, current: AssignmentMetrics, rules: Sequence[Constraint]
) -> Iterator[RecommendedAction]:
    """Evaluate a restart of each of the members with the highest loads."""
    assignor = identify_assignor(group)
    own = assignor.port
    if own not in _FEW_MOVES or assignor.implementation is Implementation.OTHER:
        return
    hot = sorted(current.loads.items(), key=lambda item: -item[1])[:_RESTARTED]
    for member, _ in hot:
        members = tuple(
            replace(one, owned=NO_PARTITIONS) if one.id == member else one for one in group.members
        )
        stable = run_until_stable(replace(group, members=members), own)
        if stable.ending is not Ending.OK or stable.assignment is None:
            continue
        if not _is_permitted(group, stable.assignment, rules):
            continue
        metrics = assignment_metrics(group, stable.assignment)
        moves = movement(group, stable.assignment)
        text = f"restart {member}, so that {own} redistributes its partitions"
        result = _result(group, metrics, moves)
        yield RecommendedAction(text=f"{text} ({result})", metrics=metrics, moves=moves)


def _further_partitions(
    group: Group, planned: AssignmentMetrics, makespan: LevelValue
) -> Iterator[RecommendedAction]:
    """Recommend more partitions for a topic if the minimum makespan is far above the mean load.

    All members with less than the maximum load must subscribe to the topic: then each new
    partition of the topic goes to such a member, and no partition moves.
    """
    loads, maximum = planned.loads, makespan.value
    total = sum(loads.values())
    more = maximum * len(loads) - total
    if group.uniform_weight != 1 or makespan.gap or not total or more <= total // _UNEVEN:
        return
    light = [one for one in group.members if loads.get(one.id, maximum) < maximum]
    topics = [t for t in group.topics if all(t.name in one.subscription for one in light)]
    if not topics:
        return
    topic = max(topics, key=lambda one: (one.partitions, one.name))
    yield RecommendedAction(
        text=f"give topic {topic.name} {count_of(more, 'more partition')}: every member can then "
        f"have {count_of(maximum, 'partition')} (keys move between partitions)",
        metrics=None,
        moves=None,
    )
