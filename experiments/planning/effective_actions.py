"""Find the actions that balance a group: manual actions and changes of the assignor."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.implementations.client_libraries import is_library_assignor
from kassay.experiments.planning.assignor_outcomes import (
    AssignmentMetrics,
    AssignorOutcome,
    assignment_metrics,
    is_permitted,
)
from kassay.experiments.planning.change_forecast import (
    LOAD_FACTORS,
    Forecast,
    change_samples,
    forecast_changes,
)
from kassay.experiments.planning.configuration_choice import decide
from kassay.experiments.planning.identify_assignor import (
    DEFAULT_LIST,
    IdentifiedAssignor,
    Implementation,
    identify_assignor,
    lists_default_assignors,
    runs_in_client,
)
from kassay.experiments.planning.plan_result import has_lost_rebalance
from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.prediction.scenario import Configuration, Restart, rolling_restarts
from kassay.experiments.prediction.simulate_events import consumer_names
from kassay.experiments.simulation.assignor_policies import POLICIES
from kassay.reference import assignors
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.display import count_of
from kassay.reference.model.group import Group, Protocol
from kassay.reference.model.load_metrics import Measure, member_units
from kassay.solver.constraints import Constraint
from kassay.solver.objective import CrossRack, HostImbalance, Level, TopicSpread

_TEMPLATES = Path(__file__).parent / "templates"
_FEWEST_SAMPLES = 3
"""Changes of groups with fewer samples are not simulated, because a plan would take minutes."""
_EXCESS = 20
"""An action is effective if its maximum load exceeds the planned maximum by at most 1/20."""
FACTORS = {"makespan": LOAD_FACTORS["maximum_load"], "sum_of_squares": LOAD_FACTORS["squares"]}
"""Factors of `decide`: a load is lower only if its multiple by the factor is lower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveAction:
    """Action that is recommended to an operator, with loads and moves.

    ``configuration`` is the assignor after the action. ``changes_assignor`` is true if all members
    need a new configuration.
    ``short`` has the action in few words, ``change`` the name of its forecast.
    ``rebalances`` and ``predicted_load`` are None without a prediction of the change.
    """

    text: str
    short: str
    metrics: AssignmentMetrics
    moves: int | None
    configuration: str | None = None
    changes_assignor: bool = False
    rebalances: int | None = None
    predicted_load: float | None = None
    change: str | None = None

    @property
    def makespan(self) -> int:
        """Return the maximum relative load after the action."""
        return self.metrics.makespan


def effective_actions(
    group: Group,
    *,
    current: AssignmentMetrics,
    planned: AssignmentMetrics,
    outcomes: Sequence[AssignorOutcome],
    forecast: Callable[[Sequence[str]], Sequence[Forecast]] = lambda _: (),
    levels: Sequence[Level] = (),
    rules: Sequence[Constraint] = (),
    is_pending: bool = False,
) -> tuple[EffectiveAction, ...]:
    """Find the actions that balance a group, with the best action first.

    If partitions have no owner although no rebalance is in progress, a rebalance and a restart are
    effective. Then other actions must improve the result of the first of them, not the current one.

    Among actions with equal loads, those that keep the configuration come first, then those with
    fewer moves.

    An action is effective if it almost reaches the plan's values and lowers at least one of them by
    more than the tolerance of `decide`. The values are the maximum load, those of the levels for
    hosts, topics and racks, and the sum of squares if the plan keeps the maximum load. If no action
    is effective, the action of `decide` counts if it lowers a value. If a rebalance is pending,
    actions that keep the assignor need not almost reach the plan's values.

    Parameters
    ----------
    forecast
        `change_forecasts` of the group, by further assignors.
    levels, rules
        Levels and constraints of the plan, with the capacities. The results of actions meet the
        constraints.
    """
    compared = compared_measures(current, planned, levels)
    values = compared.values()
    before = current

    def is_effective(reached: AssignmentMetrics, *, almost: bool = True) -> bool:
        """Return whether an action lowers a value, and almost reaches those of the plan."""
        if reached.assigned < planned.assigned:
            return False  # An assignor that does not end leaves partitions without an owner.
        is_near = not almost or all(
            v(reached) <= v(planned) + v(planned) // _EXCESS for v in values
        )
        return is_near and any(
            FACTORS.get(name, 1) * value(reached) < value(before)
            for name, value in compared.items()
        )

    def order(action: EffectiveAction) -> tuple[object, ...]:
        """Return the sort key of an action: values, sum of squares, new configuration, moves."""
        if action.moves is None:
            return (True,)
        reached = [value(action.metrics) for value in values]
        squares = action.metrics.measures[Measure.SUM_OF_SQUARES]
        return (False, reached, squares, action.changes_assignor, action.moves)

    own = identify_assignor(group)
    further = [
        one.assignor
        for one in outcomes
        if one.assignor in assignors.NEWEST_ASSIGNORS and own.name != one.assignor
        if own.offers(one.assignor) and one.metrics is not None and is_effective(one.metrics)
    ]
    forecasts = forecast(further)
    predicted = [_predicted_action(group, one, rules, forecasts[0]) for one in forecasts]
    # The results of the client library itself replace forecasts, which use Java's assignors.
    results = [one for one in outcomes if is_library_assignor(one.assignor)]
    kept = [x for x in predicted if x and not (results and runs_in_client(str(x.configuration)))]
    found = [*kept, *_assignor_changes(group, results if forecasts else outcomes)]
    first = predicted[forecasts.index(decide(forecasts))] if forecasts else None
    # A group changes to the classic protocol only if no assignor of the broker helps.
    stays = own.implementation is Implementation.BROKER and any(
        not runs_in_client(one.assignor) and is_effective(one.metrics)
        for one in outcomes
        if one.metrics is not None and one.is_permitted and not is_library_assignor(one.assignor)
    )
    owners = [one for one in kept if has_lost_rebalance(group) and not one.changes_assignor]
    before = next((one.metrics for one in owners), current)
    effective = [
        one
        for one in found
        if one in owners or is_effective(one.metrics, almost=one.changes_assignor or not is_pending)
        if not (stays and one.configuration is not None and runs_in_client(one.configuration))
    ]
    if not effective and first in kept and first and is_effective(first.metrics, almost=False):
        effective = [first]
    return tuple(sorted(effective, key=lambda one: (one is not first, order(one))))


def change_forecasts(group: Group, further: Sequence[str] = (), *, seed: int = 0) -> list[Forecast]:
    """Forecast the default changes of a group, and its changes to further assignors.

    Return an empty list if kassay cannot simulate the group's assignor, or if the simulation takes
    too long for a plan.
    """
    if not is_simulated(group):
        return []
    return forecast_changes(group, Configuration.of(group), further=further, seed=seed)


def is_simulated(group: Group) -> bool:
    """Return whether a plan contains simulated changes of the group."""
    if identify_assignor(group).name not in POLICIES or not group.members:
        return False
    return change_samples(group, Configuration.of(group)) >= _FEWEST_SAMPLES


def _predicted_action(
    group: Group, forecast: Forecast, rules: Sequence[Constraint], unchanged: Forecast
) -> EffectiveAction | None:
    """Convert a forecast to an action, or return None if it changes nothing or is not permitted.

    ``unchanged`` is the forecast of the current configuration. The text compares the restarts.
    """
    change, cost, prediction = forecast.change, forecast.cost, forecast.prediction
    if cost is None or prediction.stopped_members:
        return None
    names, after = consumer_names(group), prediction.assignment_after(-2)
    assignment = Assignment({id: after.get(name, ()) for id, name in names.items()})
    if not is_permitted(group, assignment, rules):
        return None
    own, final = identify_assignor(group), change.final
    ids = {name: id for id, name in names.items()}
    restarted = change.action.members if isinstance(change.action, Restart) else ()
    short, text = (
        environment(_TEMPLATES, autoescape=False)
        .get_template("action.j2")
        .render(
            forecast=forecast,
            unchanged=unchanged,
            member=next((ids[name] for name in restarted), None),
            trigger=_trigger(group),
            switch=_switch(group, final.assignor),
            assignor=assignors.kafka_name(final.assignor),
            is_of_java=own.implementation is Implementation.OTHER
            and runs_in_client(final.assignor),
        )
        .split(": ", 1)
    )
    return EffectiveAction(
        text=text,
        short=short,
        metrics=assignment_metrics(group, assignment),
        moves=round(cost.moves.record()["mean"]),
        configuration=final.assignor,
        changes_assignor=bool(change.steps),
        rebalances=round(cost.rebalances.record()["mean"]),
        predicted_load=forecast.maximum_load.record()["mean"],
        change=change.name,
    )


def compared_measures(
    current: AssignmentMetrics, planned: AssignmentMetrics, levels: Sequence[Level]
) -> dict[str, Callable[[AssignmentMetrics], int]]:
    """Return functions for the measures, one of which an effective action must improve."""
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
    group: Group, outcomes: Sequence[AssignorOutcome]
) -> Iterator[EffectiveAction]:
    """Yield actions from the results of assignors, for changes that are not simulated.

    Moves are given only for the group's own assignor, or if the current assignor cannot be
    simulated. Otherwise the rolling restarts cause further moves.
    """
    if not group.members:
        return  # Kafka assigns nothing.
    own = identify_assignor(group)
    has_client = any(is_library_assignor(one.assignor) for one in outcomes)
    for one in outcomes:
        library, _, name = one.assignor.rpartition(":")
        is_own = name == own.name
        is_offered = _is_offered(own, library, name, has_client=has_client)
        if one.metrics is None or not one.is_permitted or not is_offered:
            continue
        of_library = f" of {library}" if library else ""
        text = f"{_switch(group, name)}{of_library}"
        if is_own:
            text = f"{_trigger(group)}: {name}{of_library} then divides the partitions again"
        is_java = not library and own.implementation is Implementation.OTHER
        origin = f"computed with the {name} of Java, " if is_java and runs_in_client(name) else ""
        restarts = "" if library or is_own else _restarts_of_change(own, name)
        moves = one.movement if is_own or own.name not in POLICIES else None
        result = f"maximum load {member_units(group).shown(one.metrics.makespan):,}"
        if moves is not None:
            times = "one rebalance" if one.rebalances == 1 else f"{one.rebalances} rebalances"
            within = f" in {times}" if own.name is None else ""
            result = f"{count_of(moves, 'move')}{within}, {result}"
        yield EffectiveAction(
            text=f"{text} ({origin}{result}{restarts})",
            short="trigger a rebalance" if is_own else f"switch to {assignors.kafka_name(name)}",
            metrics=one.metrics,
            moves=moves,
            configuration=name,
            changes_assignor=not is_own,
            rebalances=one.rebalances if is_own else None,
        )


def _is_offered(own: IdentifiedAssignor, library: str, name: str, *, has_client: bool) -> bool:
    """Return whether a change to an assignor of a library, or of Java, may be an action."""
    if name == own.name and not runs_in_client(name):
        return False  # Only a member that joins or leaves triggers a rebalance: see the restarts.
    if library:
        return True
    is_other = own.implementation is Implementation.OTHER
    if assignors.ASSIGNORS[name].release is not assignors.Release.NEWEST or not own.offers(name):
        return False
    # The results of the library itself replace those of the ports.
    return not (runs_in_client(name) and has_client) and not (is_other and name == own.name)


def _restarts_of_change(own: IdentifiedAssignor, name: str) -> str:
    if own.implementation is Implementation.BROKER and runs_in_client(name):
        return ""
    count = len(rolling_restarts(own.name, name))
    if count > 1 and lists_default_assignors(own, own.name or DEFAULT_LIST[0]):
        return f"; {count} rolling restarts, or 1 from the default list of the Java client"
    return f"; {count_of(count, 'rolling restart')}, with further moves"


def _trigger(group: Group) -> str:
    is_other = identify_assignor(group).implementation is Implementation.OTHER
    how = (
        f"with {'' if is_other else 'enforceRebalance() of the leader, or '}a changed subscription"
    )
    if any(one.instance_id is not None for one in group.members):
        how += ", or remove a static member with removeMembersFromConsumerGroup() of the admin "
        how += "client, as its restart causes no rebalance"
    return f"trigger a rebalance {how}"


def _switch(group: Group, name: str) -> str:
    own, is_client = identify_assignor(group), runs_in_client(name)
    shown = assignors.kafka_name(name)
    runs_classic = group.status.protocol is Protocol.CLASSIC or (
        own.name is not None and runs_in_client(own.name)
    )
    if own.implementation is Implementation.BROKER and is_client:
        return f"switch to the classic protocol with the assignor {shown}"
    if runs_classic and not is_client:
        return f"switch to the consumer protocol with the assignor {shown}"
    if group.status.protocol is Protocol.CONSUMER and not is_client:
        return f"switch the assignor to {shown} with group.remote.assignor={shown} in all members"
    return f"switch the assignor to {shown}{'' if is_client else ' of the consumer protocol'}"
