"""Forecast the costs of configurations for a group, and recommend one."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kassay.experiments.planning.identify_assignor import (
    DEFAULT_LIST,
    identify_assignor,
    lists_default_assignors,
    rolling_restarts,
)
from kassay.experiments.planning.plan_verdict import check_planning_start, count_of
from kassay.experiments.simulation.environment import SimulationOptions
from kassay.experiments.simulation.policies import POLICIES
from kassay.experiments.simulation.script import (
    Action,
    MemberPlan,
    Script,
    ScriptEvent,
    Settings,
    TopicPlan,
)
from kassay.experiments.simulation.simulation import (
    InitialGroup,
    InitialMember,
    SegmentCost,
    Simulation,
)
from kassay.reference.assignors import ASSIGNORS, RebalanceProtocol
from kassay.reference.coordinator.runtime import CoordinatorConfig
from kassay.reference.model.assignment import Assignment, current_partitions
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import loads, member_units, relative_loads
from kassay.reference.model.topic_partitions import Partitions

CONSUMER_PROTOCOL = "uniform"
"""Default assignor of the broker under the consumer protocol."""
DEFAULT_CHANGES = ("sticky", "cooperative-sticky", CONSUMER_PROTOCOL)
"""Assignors to change to if none is given, as far as the client libraries offer them."""
_SETTLE = 120_000
"""Time in ms after the last restart until a group is stable, above all default timeouts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartSettings:
    """Timing of a rolling restart, in milliseconds.

    ``pause`` is the time from the start of the members of one batch to the stop of the next.
    """

    downtime: int = 10_000
    pause: int = 30_000
    session: int = 45_000  # session.timeout.ms, group.consumer.session.timeout.ms
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Configuration of all members of a group.

    Parameters
    ----------
    steps
        Supported assignors of the members after each rolling restart that changes the
        configuration; empty for the current configuration.
    is_static
        Whether the members have a ``group.instance.id`` after the change.
    listed
        Assignors that the members list before the change; empty for the current assignor alone.
    """

    name: str
    steps: tuple[tuple[str, ...], ...] = ()
    is_static: bool = False
    listed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Simulated cost of one configuration, if ``batch_size`` members restart at a time.

    ``change`` is None for the current configuration. At the end, ``makespan`` is the maximum
    number of partitions per member, and ``maximum_load`` the maximum load in the unit of the
    fastest member.
    """

    configuration: Configuration
    batch_size: int
    change: SegmentCost | None
    restart: SegmentCost
    makespan: int
    maximum_load: int | float

    def record(self) -> dict[str, object]:
        """Return the forecast as a JSON object."""
        return {
            "configuration": self.configuration.name,
            "at_once": self.batch_size,
            "rolling_restarts": len(self.configuration.steps),
            "change": None if self.change is None else self.change.record(),
            "restart": self.restart.record(),
            "maximum_partitions": self.makespan,
            "maximum_load": self.maximum_load,
        }


def simulate_configurations(
    group: Group,
    *,
    assignors: Sequence[str] | None = None,
    current: str | None = None,
    batch_sizes: Sequence[int] = (1,),
    settings: RestartSettings = RestartSettings(),
) -> list[Forecast]:
    """Simulate changes of the configuration of a group, and a later rolling restart.

    Parameters
    ----------
    assignors
        Assignors to change to. The default are sticky, cooperative-sticky and uniform, which is
        the consumer protocol, as far as the client libraries of the members offer them.
    current
        Current assignor, if the source of the group does not show it.
    batch_sizes
        Numbers of members that restart at the same time.

    Raises
    ------
    InputError
        If the current assignor is not known or has no port, or the group has no members.
    UsageError
        If a batch size is below 1 or an assignor is unknown.
    """
    check_planning_start(group)
    if not group.members:
        raise InputError(f"group {group.id!r} has no members")
    if min(batch_sizes, default=1) < 1:
        raise UsageError(f"batch sizes must be at least 1, got {min(batch_sizes)}")
    own = current_assignor(group, current)
    return [
        simulate_configuration(group, own, configuration, batch_size=size, settings=settings)
        for size in batch_sizes
        for configuration in _configurations(group, own, assignors)
    ]


def current_assignor(group: Group, current: str | None = None) -> str:
    """Return the assignor that a group uses, or ``current`` if the source does not show it."""
    name = identify_assignor(group).name or current
    if name is None:
        raise InputError(
            f"group {group.id!r}: the source does not show the assignor; give --current NAME"
        )
    if name not in POLICIES:
        raise InputError(
            f"group {group.id!r}: kassay cannot simulate the assignor {name!r}, only "
            f"{', '.join(name for name in POLICIES if name in ASSIGNORS)}"
        )
    return name


def _configurations(
    group: Group, own: str, assignors: Sequence[str] | None
) -> Iterator[Configuration]:
    yield Configuration(name=f"{own}, current")
    protocol = POLICIES[own].protocol
    if any(member.instance_id is None for member in group.members):
        yield Configuration(name=f"{own}, static members", steps=((own,),), is_static=True)
    identified = identify_assignor(group)
    is_classic = protocol is not RebalanceProtocol.CONSUMER
    if assignors is None:
        # A change from the consumer protocol to the classic protocol needs a stop of the group.
        assignors = [name for name in DEFAULT_CHANGES if is_classic and identified.offers(name)]
    for name in assignors:
        if name not in ASSIGNORS or name not in POLICIES:
            known = ", ".join(name for name in POLICIES if name in ASSIGNORS)
            raise UsageError(f"unknown assignor {name!r}; choose from {known}")
        is_target_classic = POLICIES[name].protocol is not RebalanceProtocol.CONSUMER
        if name == own:
            continue
        if is_target_classic and not is_classic:
            raise UsageError(
                f"group {group.id!r} uses the consumer protocol; a change to {name!r} stops the "
                "whole group, which the forecast does not simulate"
            )
        steps = rolling_restarts(own, name)
        label = name if is_target_classic else f"{name}, consumer protocol"
        yield Configuration(name=label, steps=steps)
        if name == DEFAULT_LIST[-1] and lists_default_assignors(identified, own):
            yield Configuration(
                name=f"{name}, from the default list", steps=steps[1:], listed=DEFAULT_LIST
            )


def simulate_configuration(
    group: Group,
    own: str,
    configuration: Configuration,
    *,
    batch_size: int = 1,
    settings: RestartSettings = RestartSettings(),
    new_id: Callable[[str], str] | None = None,
) -> Forecast:
    """Simulate the change of a group to one configuration, and a later rolling restart.

    ``own`` is the current assignor. ``new_id`` creates the id of a restarted member from its
    client id.
    """
    plans, initial = planned_members(group)
    events: list[ScriptEvent] = []
    at, changed = settings.pause, plans
    if configuration.listed:
        # The first restart only sets the list, and is not part of the change.
        changed = [replace(plan, assignors=configuration.listed) for plan in plans]
        at = _add_rolling_restart(events, changed, at, batch_size, settings)
    change_at = at
    for step in configuration.steps:
        changed = [
            replace(plan, assignors=step, static=plan.static or configuration.is_static)
            for plan in plans
        ]
        at = _add_rolling_restart(events, changed, at, batch_size, settings)
    changed_at = at
    end = _add_rolling_restart(events, changed, at, batch_size, settings)
    script = Script(
        name="forecast",
        topics=tuple(
            TopicPlan(name=one.name, partitions=one.partitions, id=one.id) for one in group.topics
        ),
        members=tuple(plans),
        events=tuple(events),
        until=end,
        seed=settings.seed,
        settings=Settings(session=settings.session),
        broker=CoordinatorConfig(session_timeout=settings.session),
    )
    server = configuration.steps[-1][0] if configuration.steps else own
    options = SimulationOptions(server_policy=POLICIES[server], new_id=new_id)
    simulation = Simulation(script, POLICIES[own], options, initial_group=initial)
    simulation.clock.run(change_at - 1)
    change = simulation.run_segment(changed_at - 1)
    restart = simulation.run_segment(end - 1)
    owned = Assignment({one.id: simulation.consumers[one.client].owned for one in initial.members})
    return Forecast(
        configuration=configuration,
        batch_size=batch_size,
        change=change if configuration.steps else None,
        restart=restart,
        makespan=max(owned.counts().values()),
        maximum_load=member_units(group).shown(
            max(relative_loads(group, loads(group, owned)).values(), default=0)
        ),
    )


def _add_rolling_restart(
    events: list[ScriptEvent],
    plans: Sequence[MemberPlan],
    at: int,
    size: int,
    settings: RestartSettings,
) -> int:
    """Add the restart of all members in batches, in the order of their names.

    Return the time at which the group is stable.
    """
    ordered = sorted(plans, key=lambda plan: plan.id)
    for first in range(0, len(ordered), size):
        restart = ScriptEvent(at=at, action=Action.RESTART, duration=settings.downtime)
        batch = ordered[first : first + size]
        events += [replace(restart, member=plan.id, new_member=plan) for plan in batch]
        at += settings.downtime + settings.pause
    return at + _SETTLE


def planned_members(group: Group) -> tuple[list[MemberPlan], InitialGroup]:
    """Return the members of a group as plans of a script, and their current partitions."""
    ids = Counter(member.client.id for member in group.members)
    owned = current_partitions(group)
    plans, members = [], []
    for member in group.members:
        is_unique = member.client.id and ids[member.client.id] == 1
        client = member.instance_id or (member.client.id if is_unique else None) or member.id
        is_static = member.instance_id is not None
        plans.append(
            MemberPlan(id=client, topics=member.subscription, static=is_static, rack=member.rack)
        )
        partitions = Partitions.of(owned.get(member.id, ()))
        members.append(InitialMember(client=client, id=member.id, owned=partitions))
    generation = max(1, *(member.generation for member in group.members))
    return plans, InitialGroup(generation=generation, members=tuple(members))


_UNOWNED = "partition-seconds without an owner"


class Criterion(StrEnum):
    """Cost that decides between configurations."""

    UNOWNED = "unowned"
    MOVES = "moves"
    REBALANCES = "rebalances"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Configuration and batch size with the lowest cost of a rolling restart, and the reason."""

    configuration: str
    at_once: int
    reason: str


def recommend(
    forecasts: Sequence[Forecast], criterion: Criterion = Criterion.UNOWNED
) -> Recommendation:
    """Recommend the configuration and batch size with the cheapest later rolling restart.

    The other costs, and then those of the change, decide between equal values of the criterion.
    The reason compares the result with the current configuration and the first batch size, and
    its change with the cheapest change to another assignor or to static members.
    """
    best = min(forecasts, key=lambda one: (_costs(one.restart, criterion), _change(one, criterion)))
    old, new = forecasts[0].restart, best.restart
    if best is forecasts[0]:
        unit = _UNOWNED if criterion is Criterion.UNOWNED else str(criterion)
        reason = (
            f"a later rolling restart has {_text(new)}; no other configuration has fewer {unit}"
        )
    else:
        numbers = {"rebalances": (new.rebalances, old.rebalances), "moves": (new.moves, old.moves)}
        compared = ", and ".join(
            f"{after} {unit} as before"
            if after == before
            else f"{after} instead of {before} {unit}"
            for unit, (after, before) in numbers.items()
        )
        reason = (
            f"a later rolling restart has {_seconds(new)} instead of {_seconds(old)} {_UNOWNED}, "
            f"{compared}: {_cause(best)}"
        )
    if best.change is not None:
        changes = [one for one in forecasts if one.change is not None]
        cheapest = min(changes, key=lambda one: _change(one, criterion))
        reason += f". The change itself takes {_change_text(best)}"
        if cheapest.change != best.change:
            reason += f". The cheapest change is {cheapest.configuration.name}: "
            reason += _change_text(cheapest)
        if best.configuration.listed:
            reason += f". Condition: the members list {' and '.join(best.configuration.listed)}"
    return Recommendation(
        configuration=best.configuration.name, at_once=best.batch_size, reason=reason
    )


def _costs(cost: SegmentCost, criterion: Criterion) -> tuple[int, ...]:
    """Return the cost of a criterion, and then all costs, which decide between equal values."""
    costs = {
        Criterion.UNOWNED: cost.unowned_ms,
        Criterion.MOVES: cost.moves,
        Criterion.REBALANCES: cost.rebalances,
    }
    return costs[criterion], *costs.values()


def _change(one: Forecast, criterion: Criterion) -> tuple[int, ...]:
    """Return the costs of the change to a configuration; none for the current one."""
    return () if one.change is None else _costs(one.change, criterion)


def _change_text(one: Forecast) -> str:
    cost = "" if one.change is None else f" with {_text(one.change)}"
    return f"{count_of(len(one.configuration.steps), 'rolling restart')}{cost}"


def _seconds(cost: SegmentCost) -> str:
    return f"{cost.unowned_ms / 1000:.1f}"


def _text(cost: SegmentCost) -> str:
    return f"{_seconds(cost)} {_UNOWNED}, {cost.rebalances} rebalances and {cost.moves} moves"


def _cause(best: Forecast) -> str:
    if best.configuration.is_static and not best.restart.rebalances:
        return "static members return within the session timeout and keep their partitions"
    names = best.configuration.steps[-1] if best.configuration.steps else ()
    protocol = POLICIES[names[0]].protocol if names else None
    if protocol is RebalanceProtocol.CONSUMER:
        return "under the consumer protocol, only moved partitions wait, for one heartbeat"
    if protocol is RebalanceProtocol.COOPERATIVE:
        return "a cooperative assignor revokes only the partitions that move"
    if names:
        return "this assignor moves fewer partitions"
    return "fewer batches cause fewer rebalances"
