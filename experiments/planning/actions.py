"""Metrics of assignments, results of assignors, and manual actions that balance a group."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kassay.experiments.comparison.compare import CaseLimits, fewest_moves_within
from kassay.experiments.implementations.library_catalogue import is_library_assignor
from kassay.experiments.implementations.runner import Ending, run_until_stable
from kassay.experiments.planning.identify_assignor import (
    DEFAULT_LIST,
    IdentifiedAssignor,
    Implementation,
    identify_assignor,
    lists_default_assignors,
    runs_in_client,
)
from kassay.experiments.planning.plan_verdict import count_of
from kassay.experiments.prediction.predict import Distribution, predict, sample_count
from kassay.experiments.prediction.sample import consumer_names
from kassay.experiments.prediction.scenario import (
    Configuration,
    Event,
    Rebalance,
    Restart,
    RollingRestart,
    rolling_restarts,
)
from kassay.experiments.simulation.policies import POLICIES
from kassay.reference.assignors import ASSIGNORS, DEFAULT_ASSIGNORS, Goal, Release, kafka_name
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
)
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import violated
from kassay.solver.objective import CrossRack, HostImbalance, Level, TopicSpread
from kassay.solver.problem import build_problem
from kassay.solver.solution import LevelValue, Solution

_SECONDARY_WORK = 5.0
"""Maximum work of a search for the minimum of one secondary value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentMetrics:
    """Loads and imbalance metrics of one assignment.

    ``loads`` has the members with a consumed topic. ``cross_rack`` is the number of partitions
    whose member is in a rack without a replica, None for a group without racks. ``host_makespan``
    is the maximum relative load of the hosts. ``topic_spread`` is the value of the level.
    """

    loads: dict[str, int]
    measures: dict[str, int]
    cross_rack: int | None
    host_makespan: int
    topic_spread: int

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
        topic_spread=sum(
            int((np.bincount(partitions.codes) ** 2).sum())
            for partitions in assignment.values()
            if len(partitions)
        ),
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
        is_permitted=is_permitted(group, assignment, rules),
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

    Assignors of the old ZooKeeper consumer and previews are skipped. ``rules`` are those of
    `rebalance`. If the search is stopped, the outcomes of further ports are missing.
    """
    for assignor in (*client, *DEFAULT_ASSIGNORS):
        if limits.is_stopped:
            return
        outcome = rebalance(group, assignor, rules=rules)
        if outcome.metrics is not None and not rules:
            fewest = _minimum_movement(group, outcome.metrics, optimum, limits)
            outcome = replace(outcome, minimum_movement=fewest)
        yield outcome


def is_permitted(group: Group, assignment: Assignment, rules: Sequence[Constraint]) -> bool:
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


_SAMPLES_OF_CHANGES = 3
"""Minimum samples of a change of the assignor. A third of those of a forecast are used, because
only changes between assignors of the broker have different moves."""
_RESTART_SAMPLES = 3
"""Number of simulations per member. They differ in the new member id, which breaks ties."""
_RESTARTED_MEMBERS = 4
"""Minimum number of members whose restart is simulated."""
_MAX_RESTART_PARTITIONS = 5_000
"""Number of partitions above which no restart is simulated: each simulation takes seconds then."""
_MAX_RESTART_MEMBERS = 500
_EXCESS = 20
"""An action is effective if its maximum load exceeds the planned maximum by at most 1/20."""
_UNEVEN = 6
"""More partitions are recommended if the maximum load exceeds the mean by more than 1/6."""


_Result = tuple[AssignmentMetrics, Distribution | None, int | None]
"""Loads after an action, its moves and its rebalances, None if they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendedAction:
    """Recommended manual action, with the loads after it and the number of moves.

    ``metrics`` is None if the action changes the partitions. ``configuration`` is the assignor
    after the action. ``changes_assignor`` is true if all members need another configuration.
    ``rebalances`` is None if only a simulation of the change shows their number.
    """

    text: str
    metrics: AssignmentMetrics | None
    moves: int | None
    configuration: str | None = None
    changes_assignor: bool = False
    rebalances: int | None = None

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
    restarts: Iterable[RecommendedAction] = (),
    levels: Sequence[Level] = (),
    rules: Sequence[Constraint] = (),
) -> tuple[RecommendedAction, ...]:
    """Find manual actions that balance a group, those with the lowest loads first.

    Of actions with equal loads, those come first that keep the configuration, then those with the
    fewest moves.

    An action almost reaches the maximum load of the plan, and the values of its other levels for
    hosts and racks. It lowers at least one of them, or the sum of squares if the plan keeps the
    maximum load.

    Parameters
    ----------
    makespan
        Maximum load of the planned assignment, and a lower bound on the maximum load.
    outcomes
        Results of Kafka's assignors for the group.
    restarts
        Restarts of single members, with their simulated results.
    levels, rules
        Levels and constraints of the plan, with the capacities. The results of actions meet the
        constraints.
    """
    found = [
        *_assignor_changes(group, outcomes, rules),
        *restarts,
        *(() if rules else _further_partitions(group, planned, makespan)),
    ]
    values = compared_measures(current, planned, levels).values()

    def is_effective(reached: AssignmentMetrics | None) -> bool:
        """Return whether an action lowers a value, and almost reaches the values of the plan."""
        if reached is None:
            return True
        is_near = all(v(reached) <= v(planned) + v(planned) // _EXCESS for v in values)
        return is_near and any(value(reached) < value(current) for value in values)

    def order(action: RecommendedAction) -> tuple[object, ...]:
        """Return the order of an action: its loads first, then its cost."""
        if action.metrics is None or action.moves is None:
            return (True,)
        reached = [value(action.metrics) for value in values]
        squares = action.metrics.measures[Measure.SUM_OF_SQUARES]
        return (False, reached, squares, action.changes_assignor, action.moves)

    effective = [one for one in found if is_effective(one.metrics)]
    return tuple(sorted(_without_downgrades(group, effective), key=order))


def _without_downgrades(
    group: Group, actions: Sequence[RecommendedAction]
) -> Iterator[RecommendedAction]:
    """Yield actions; a change to the classic protocol only if the consumer protocol has none."""
    is_consumer = identify_assignor(group).implementation is Implementation.BROKER
    modern = [
        one for one in actions if one.configuration is None or not runs_in_client(one.configuration)
    ]
    yield from modern if is_consumer and any(one.metrics for one in modern) else actions


def compared_measures(
    current: AssignmentMetrics, planned: AssignmentMetrics, levels: Sequence[Level]
) -> dict[str, Callable[[AssignmentMetrics], int]]:
    """Return the measures of which an effective action almost reaches the planned values."""
    values: dict[str, Callable[[AssignmentMetrics], int]] = {"makespan": lambda one: one.makespan}
    if planned.makespan >= current.makespan:
        values["sum_of_squares"] = lambda one: one.measures[Measure.SUM_OF_SQUARES]
    if any(isinstance(level, HostImbalance) for level in levels):
        values["host_makespan"] = lambda one: one.host_makespan
    if any(isinstance(level, TopicSpread) for level in levels):
        values["topic_spread"] = lambda one: one.topic_spread
    if any(isinstance(level, CrossRack) for level in levels):
        values["cross_rack"] = lambda one: one.cross_rack or 0
    return values


def _assignor_changes(
    group: Group, outcomes: Sequence[AssignorOutcome], rules: Sequence[Constraint]
) -> Iterator[RecommendedAction]:
    if not group.members:
        return  # `predict` and Kafka assign nothing
    own = identify_assignor(group)
    has_client = any(is_library_assignor(one.assignor) for one in outcomes)
    for outcome in outcomes:
        library, _, name = outcome.assignor.rpartition(":")
        if not _is_offered(own, library, name, has_client=has_client):
            continue
        is_own = name == own.name
        result = _result_of(group, own.name, name, outcome, rules)
        if result is None:
            continue
        of_library = f" of {library}" if library else ""
        text = f"{_switch(group, name)}{of_library}"
        if is_own:
            text = f"trigger a rebalance: {name}{of_library} then balances the group"
        origin = "" if library else _origin(own, name)
        restarts = "" if library or is_own else _restarts_of_change(own, name)
        if own.name is None:
            restarts += "; values of one rebalance, as the current assignor is not known"
        yield RecommendedAction(
            text=f"{text} ({origin}{_action_result(group, *result[:2])}{restarts})",
            metrics=result[0],
            moves=None if result[1] is None else round(result[1].mean),
            configuration=name,
            changes_assignor=not is_own,
            rebalances=result[2],
        )


def _origin(own: IdentifiedAssignor, name: str) -> str:
    """Describe the assignor that computed an action, if it is not that of the client library."""
    is_java = own.implementation is Implementation.OTHER and runs_in_client(name)
    return f"computed with the {name} of Java, " if is_java else ""


def _is_offered(own: IdentifiedAssignor, library: str, name: str, *, has_client: bool) -> bool:
    """Return whether the group can use an assignor, and kassay has its results."""
    if name == own.name and not runs_in_client(name):
        return False  # Only a member that joins or leaves triggers a rebalance: see the restarts.
    if library:
        return True
    is_other = own.implementation is Implementation.OTHER
    if ASSIGNORS[name].release is not Release.NEWEST or not own.offers(name):
        return False
    # The results of the library itself replace those of the ports.
    return not (runs_in_client(name) and has_client) and not (is_other and name == own.name)


def _result_of(
    group: Group, own: str | None, name: str, outcome: AssignorOutcome, rules: Sequence[Constraint]
) -> _Result | None:
    """Predict a rebalance by the own assignor, or the rolling restarts to another one.

    Return None if members would end, or the result is not permitted. The results of client
    libraries for their own assignor, and results without a known current assignor, are those of one
    rebalance. If the prediction takes too long for a plan, its cost is not known.
    """
    if outcome.metrics is None or not outcome.is_permitted:
        return None
    if name == own and is_library_assignor(outcome.assignor):
        return outcome.metrics, _moves_of(outcome), outcome.rebalances
    if own not in POLICIES or name not in POLICIES:
        return outcome.metrics, _moves_of(outcome), None
    current = Configuration.of(group, own)
    events: list[Event] = [RollingRestart(to=step) for step in current.steps_to(name)]
    if name == own:
        events = [Rebalance()]
    count = sample_count(group, current, events)
    if count <= _SAMPLES_OF_CHANGES:
        return outcome.metrics, None, None
    found = predict(group, current, events, samples=max(_SAMPLES_OF_CHANGES, count // 3))
    assignment = _by_member_id(group, found.final)
    if found.stopped_members or not is_permitted(group, assignment, rules):
        return None
    cost = found.total
    return assignment_metrics(group, assignment), cost.moves, round(cost.rebalances.mean)


def _moves_of(outcome: AssignorOutcome) -> Distribution | None:
    return None if outcome.movement is None else Distribution.of([outcome.movement])


def _by_member_id(group: Group, assignment: Assignment) -> Assignment:
    """Return an assignment of simulated consumers by the member ids of the group."""
    names = consumer_names(group)
    return Assignment({id: assignment.get(name, ()) for id, name in names.items()})


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


def _action_result(group: Group, metrics: AssignmentMetrics, moves: Distribution | None) -> str:
    """Describe the moves of an action, and the maximum load after it."""
    load = f"maximum load {member_units(group).shown(metrics.makespan):,}"
    if moves is None:
        return load
    mean, low, high = map(round, (moves.mean, moves.low, moves.high))
    between = "" if low == high else f", from {low} to {high}"
    return f"{count_of(mean, 'move')}{between}, {load}"


def _further_partitions(
    group: Group, planned: AssignmentMetrics, makespan: LevelValue
) -> Iterator[RecommendedAction]:
    """Recommend more partitions for a topic if the minimum makespan is far above the mean load.

    All members with less than the maximum load must subscribe to the topic: then each new
    partition of the topic goes to such a member, and no partition moves.
    """
    loads, maximum, total = planned.loads, makespan.value, sum(planned.loads.values())
    more = maximum * len(loads) - total
    if group.uniform_weight != 1 or makespan.gap or not total or more <= total // _UNEVEN:
        return
    light = [one for one in group.members if loads.get(one.id, maximum) < maximum]
    topics = [t for t in group.topics if all(t.name in one.subscription for one in light)]
    if not topics:
        return
    topic = max(topics, key=lambda one: (one.partitions, one.name))
    who = "every member" if len(loads) == len(group.members) else "every member with a topic"
    yield RecommendedAction(
        text=f"give topic {topic.name} {count_of(more, 'more partition')}: {who} can then have "
        f"{count_of(maximum, 'partition')} (keys move between partitions)",
        metrics=None,
        moves=None,
    )


def member_restarts(
    group: Group,
    *,
    current: AssignmentMetrics,
    outcomes: Sequence[AssignorOutcome] = (),
    rules: Sequence[Constraint] = (),
) -> Iterator[RecommendedAction]:
    """Yield the restart of each of a few members, with its simulated result.

    The members are the one with the lowest load, which loses the fewest partitions, and those with
    the highest loads; of a small group, all. The loads are the worst of several simulations.

    Parameters
    ----------
    outcomes
        Results of assignors. No restart is simulated for an assignor that ignores the owned
        partitions, if its result has the current loads.
    rules
        Constraints that the assignment after the restart must meet.
    """
    own = identify_assignor(group)
    if not _is_restart_simulated(group, own, current, outcomes):
        return
    configuration = Configuration.of(group, own.port)
    names = consumer_names(group)
    by_load = sorted(current.loads, key=lambda member: (-current.loads[member], member))
    count = sample_count(group, configuration, [Restart(members=())]) // _RESTART_SAMPLES
    for member in [*by_load[-1:], *by_load[:-1]][: max(_RESTARTED_MEMBERS, count)]:
        found = predict(
            group, configuration, Restart(members=(names[member],)), samples=_RESTART_SAMPLES
        )
        assignments = [_by_member_id(group, one.assignments[-1]) for one in found.courses]
        if not all(is_permitted(group, one, rules) for one in assignments):
            continue
        metrics = max(
            (assignment_metrics(group, one) for one in assignments),
            key=lambda one: (one.makespan, one.measures[Measure.SUM_OF_SQUARES]),
        )
        rebalances = round(found.total.rebalances.mean)
        result = _action_result(group, metrics, found.total.moves)
        yield RecommendedAction(
            text=f"restart {member}: {kafka_name(str(own.port))} divides the partitions again when "
            f"it leaves and returns ({_origin(own, str(own.port))}{result}, "
            f"{count_of(rebalances, 'rebalance')})",
            metrics=metrics,
            moves=round(found.total.moves.mean),
            configuration=own.port,
            rebalances=rebalances,
        )


def _is_restart_simulated(
    group: Group,
    own: IdentifiedAssignor,
    current: AssignmentMetrics,
    outcomes: Sequence[AssignorOutcome],
) -> bool:
    """Return whether the restart of a member can change the loads, and kassay can simulate it."""
    if own.port not in POLICIES:
        return False
    if group.partition_count > _MAX_RESTART_PARTITIONS or len(group.members) > _MAX_RESTART_MEMBERS:
        return False
    if ASSIGNORS[own.port].goal is Goal.BALANCE_AND_FEW_MOVES:
        return True
    after = next((one.metrics for one in outcomes if one.assignor == own.port), None)
    return after is not None and sorted(after.loads.values()) != sorted(current.loads.values())
