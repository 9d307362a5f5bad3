"""Predictions for a group: optimum and assignors after changes, costs of configurations."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from kassay.experiments.planning.actions import AssignorOutcome, rebalance
from kassay.experiments.planning.identify_assignor import (
    DEFAULT_LIST,
    identify_assignor,
    lists_default_assignors,
    rolling_restarts,
)
from kassay.experiments.planning.plan_verdict import count_of, makespan_of
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
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.metrics import (
    load_vector,
    loads,
    member_units,
    participants,
    relative_loads,
)
from kassay.reference.model.topic_partitions import Partitions
from kassay.solver.constraints import Constraint
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Level, default_levels
from kassay.solver.sizing import Resizing, with_valid_ownership
from kassay.solver.solution import LevelValue, Solution, value_and_bound
from kassay.solver.solve import solve

AS_IS, OPTIMUM = "current", "optimum"
"""Names of the current assignment, and of the optimum of the group without changes."""
_NUMBERS = re.compile(r"([+-]?)(\d{1,9})(?:\.\.\1(\d{1,9})(?::(\d{1,9}))?)?")
"""Number of members with an optional sign, or a range of numbers with the same sign."""
_MAX_MEMBERS = 10_000


def grown_topic(topic: Topic, count: int) -> Topic:
    """Add partitions to a topic. They get no racks, and the mean weight, rounded up."""
    if count < topic.partitions:
        raise InputError(
            f"topic {topic.name!r} has {topic.partitions} partitions; "
            f"Kafka cannot reduce them to {count}"
        )
    added = count - topic.partitions
    weights, racks = topic.weights, topic.racks
    if weights is not None:
        mean = -(-topic.total_weight // max(1, topic.partitions))
        weights = (*weights, *[mean] * added)
    if racks is not None:
        racks = (*racks, *[() for _ in range(added)])
    return replace(topic, partitions=count, weights=weights, racks=racks)


def changed_groups(
    group: Group,
    *,
    members: str | None = None,
    partitions: Sequence[str] = (),
    like: str | None = None,
    allow_lag: bool = False,
) -> dict[str, Group]:
    """Return the changed groups by name, one per number of members.

    Parameters
    ----------
    members
        Numbers of members in the syntax of ``kassay forecast --members``.
    partitions
        New partition counts, each as ``TOPIC=COUNT``. They apply to each number of members.
    like
        Id of the member with the subscription, rack, capacity and speed of added members. By
        default they subscribe to every topic that has a subscriber. If the number decreases, the
        last members leave.
    allow_lag
        Accept weights that are lag.

    Examples
    --------
    >>> from kassay.reference.model.group import Member
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),), members=(Member(id="a", subscription=("t",)),)
    ... )
    >>> groups = changed_groups(group, members="+0..+3")
    >>> {name: predict(one).makespan.value for name, one in groups.items()}
    {'members +0': 4, 'members +1': 2, 'members +2': 2, 'members +3': 1}
    """
    changed, names = with_valid_ownership(group), []
    for text in partitions:
        topic, separator, count = text.rpartition("=")
        if not separator or not topic or not count.isdecimal():
            raise UsageError(f"--partitions must be TOPIC=COUNT, got {text!r}")
        if topic not in changed.topic_table():
            raise InputError(f"group {group.id!r} has no topic {topic!r}")
        topics = (
            grown_topic(one, int(count)) if one.name == topic else one for one in changed.topics
        )
        changed = replace(changed, topics=tuple(topics))
        names.append(f"{topic} {count} partitions")
    if members is None:
        return {", ".join(names): changed} if names else {}
    groups, current = {}, len(group.members)
    for part in members.split(","):
        sign, numbers = _numbers_of_members(part)
        for number in numbers:
            total = current + int(f"{sign}{number}") if sign else number
            if total < 0:
                raise InputError(
                    f"cannot remove {number} members from group {group.id!r}, "
                    f"which has {current} members"
                )
            resized = changed
            if total != current:
                resizing = Resizing.of(changed, like=like, allow_lag=allow_lag)
                resized = resizing.resized(total)
            name = f"members {sign}{number}" if sign else f"{number} members"
            groups[", ".join([*names, name])] = resized
    return groups


def _numbers_of_members(text: str) -> tuple[str, range]:
    """Parse a number of members or a range, and return the sign and the numbers."""
    match = _NUMBERS.fullmatch(text)
    if match is not None:
        first, last, step = int(match[2]), int(match[3] or match[2]), int(match[4] or 1)
        if step and first <= last <= _MAX_MEMBERS:
            return match[1], range(first, last + 1, step)
    raise UsageError(
        "--members must be a number, +N, -N or FIRST..LAST[:STEP], with FIRST at most LAST, STEP "
        f"above 0 and numbers up to {_MAX_MEMBERS:,}, got {text!r}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Optimum of a changed group, and the results of assignors.

    ``before`` is the unchanged group. ``makespan`` is the maximum load of the optimum, None
    without an assignment.
    """

    group: Group
    before: Group
    solution: Solution = field(repr=False)
    makespan: LevelValue | None
    outcomes: tuple[AssignorOutcome, ...]

    def shown(self, relative_load: int) -> int | float:
        """Convert a maximum relative load to the unit of the fastest member before the changes.

        The maximum loads of groups with different members are comparable then.
        """
        scale = Fraction(_max_speed(self.before), _max_speed(self.group))
        return member_units(self.group).shown(relative_load, scale)

    def record(self, name: str) -> dict[str, object]:
        """Return the prediction as a JSON object. ``name`` describes the changes."""
        found, group, makespan = self.solution.assignment, self.group, self.makespan
        subscribers, before = group.subscribers(), self.before.subscribers()
        return {
            **_entry(name, group, str(self.solution.status), found),
            "makespan": None
            if makespan is None
            else {"value": self.shown(makespan.value), "bound": self.shown(makespan.bound)},
            "movement": None if found is None else value_and_bound(self.solution.movement),
            "levels": self.solution.values_by_level(),
            "topics_without_subscribers": [
                topic for topic, one in before.items() if one and not subscribers.get(topic)
            ],
            "assignors": [self._outcome_record(one) for one in self.outcomes],
            "seconds": round(self.solution.seconds, 3),
            "proof": self.solution.proof_by_level(),
        }

    def _outcome_record(self, found: AssignorOutcome) -> dict[str, object]:
        metrics = found.metrics
        return {
            "assignor": found.assignor,
            "ending": found.ending,
            "makespan": None if metrics is None else self.shown(metrics.makespan),
            "movement": found.movement,
            "idle": None if metrics is None else list(metrics.loads.values()).count(0),
        }


def _max_speed(group: Group) -> int:
    """Return the maximum speed of the members that subscribe to a topic with partitions."""
    return max((group.members[index].speed for index in group.participant_indices), default=1)


def _entry(
    name: str, group: Group, status: str, assignment: Assignment | None
) -> dict[str, object]:
    """Return the sizes of a group, and its idle members with an assignment."""
    subscribers = group.subscribers()
    partitions = sum(topic.partitions for topic in group.topics if subscribers[topic.name])
    owned = sum(len(member.owned) for member in with_valid_ownership(group).members)
    return {
        "configuration": name,
        "change": None,
        "restart": None,
        "members": len(participants(group)),
        "partitions": partitions,
        "placed": partitions - owned,
        "status": status,
        "idle": None if assignment is None else load_vector(group, assignment).count(0),
    }


def current_record(group: Group) -> dict[str, object]:
    """Return the loads of the owned partitions as a JSON object like those of predictions."""
    kept = Assignment({one.id: one.owned for one in with_valid_ownership(group).members})
    held = loads(group, kept)
    makespan = member_units(group).shown(max(relative_loads(group, held).values(), default=0))
    return {
        **_entry(AS_IS, group, AS_IS, kept),
        "makespan": {"value": makespan, "bound": makespan},
        "movement": {"value": 0, "bound": 0},
        "loads": held,
    }


def predict(
    group: Group,
    *,
    before: Group | None = None,
    levels: Sequence[Level] | None = None,
    constraints: Iterable[Constraint] = (),
    assignors: Sequence[str] = (),
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> Prediction:
    """Find the optimal assignment of a changed group, and run assignors for comparison.

    ``before`` is the unchanged group. The default assignor is the port with the name of the
    assignor that the group runs, see `identify_assignor`.
    """
    constraints, own = tuple(constraints), identify_assignor(group).port
    solution = solve(
        group,
        levels=default_levels(group) if levels is None else levels,
        constraints=constraints,
        limits=limits,
        seed=seed,
    )
    names = assignors or ([] if own is None else [own])
    return Prediction(
        group=group,
        before=group if before is None else before,
        solution=solution,
        makespan=makespan_of(group, solution, constraints),
        outcomes=() if limits.is_stopped else tuple(rebalance(group, name) for name in names),
    )


DEFAULT_CHANGES = ("sticky", "cooperative-sticky", "uniform")
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
    own: str,
    *,
    assignors: Sequence[str] | None = None,
    batch_sizes: Sequence[int] = (1,),
    settings: RestartSettings = RestartSettings(),
) -> list[Forecast]:
    """Simulate changes of the configuration of a group, and a later rolling restart.

    ``own`` is the current assignor, see `current_assignor`.

    Parameters
    ----------
    assignors
        Assignors to change to. The default are sticky, cooperative-sticky and uniform, which is
        the consumer protocol, as far as the client libraries of the members offer them.
    batch_sizes
        Numbers of members that restart at the same time.

    Raises
    ------
    InputError
        If the group has no members.
    UsageError
        If an assignor is unknown, or a change to it cannot be simulated.
    """
    if not group.members:
        raise InputError(f"group {group.id!r} has no members")
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
    generation = max([1, *(member.generation for member in group.members)])
    return plans, InitialGroup(generation=generation, members=tuple(members))


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


_UNOWNED = "partition-seconds without an owner"


def recommend(
    forecasts: Sequence[Forecast], criterion: Criterion = Criterion.UNOWNED
) -> Recommendation:
    """Recommend the configuration and batch size with the cheapest later rolling restart.

    The other costs, and then those of the change, decide between equal values of the criterion.
    The reason compares the result with the current configuration and the first batch size, and
    its change with the cheapest change to another assignor or to static members.
    """

    def key(cost: SegmentCost | None) -> tuple[int, ...]:
        if cost is None:
            return ()
        costs = dict(zip(Criterion, (cost.unowned_ms, cost.moves, cost.rebalances), strict=True))
        return costs[criterion], *costs.values()

    best = min(forecasts, key=lambda one: (key(one.restart), key(one.change)))
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
        cheapest = min(
            (one for one in forecasts if one.change is not None), key=lambda one: key(one.change)
        )
        reason += f". The change itself takes {_change_text(best)}"
        if cheapest.change != best.change:
            reason += f". The cheapest change is {cheapest.configuration.name}: "
            reason += _change_text(cheapest)
        if best.configuration.listed:
            reason += f". Condition: the members list {' and '.join(best.configuration.listed)}"
    return Recommendation(
        configuration=best.configuration.name, at_once=best.batch_size, reason=reason
    )


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
