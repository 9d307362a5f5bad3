"""Forecast changes of a group, each with a later rolling restart."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from kassay.experiments.comparison.compare import keep_owners
from kassay.experiments.implementations.assignor_names import shown_name
from kassay.experiments.implementations.run_assignor import Ending, run_until_stable
from kassay.experiments.planning import plan_result
from kassay.experiments.planning.identify_assignor import (
    DEFAULT_LIST,
    identify_assignor,
    lists_default_assignors,
)
from kassay.experiments.prediction import predict
from kassay.experiments.prediction.scenario import (
    Configuration,
    Event,
    NewPartitions,
    Rebalance,
    Restart,
    RollingRestart,
    ScaleTo,
)
from kassay.experiments.prediction.simulate_events import consumer_names
from kassay.experiments.simulation.assignor_policies import POLICIES
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import Measure, loads, measures, member_units, participants
from kassay.solver.capacity_planning import Resizing, grown_topic, with_valid_ownership
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Level, default_levels
from kassay.solver.solution import value_and_bound
from kassay.solver.solve import solve

DEFAULT_CHANGES = ("sticky", "cooperative-sticky", "uniform")
"""Assignors to change to if none is given, as far as the client libraries offer them."""
OPTIMUM = "optimum"
"""Name of the optimum of the group without changes."""
_NUMBERS = re.compile(r"([+-]?)(\d{1,9})(?:\.\.\1(\d{1,9})(?::(\d{1,9}))?)?")
"""Number of members with an optional sign, or a range of numbers with the same sign."""
_MAX_MEMBERS = 10_000
_FULL_SAMPLES = 8
"""Maximum number of forecasts of new sizes with all samples; more of them share this work."""
LOAD_FACTORS = {"maximum_load": 1.02, "squares": 1.02**2}
"""Factors up to which values of a load measure count as equal, as the tolerance of plans."""
_MAX_RESTART_MEMBERS, _MAX_RESTART_PARTITIONS = 500, 5_000
"""Sizes of groups above which no restart of a single member is simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """New numbers of members and partitions of a group."""

    name: str
    members: int | None = None
    partitions: Mapping[str, int] = field(default_factory=dict)
    like: str | None = None
    allow_lag: bool = False

    def events(self, group: Group) -> tuple[Event, ...]:
        """Return the events that change the numbers of partitions and members."""
        like = None if self.like is None else consumer_names(group).get(self.like)
        known = group.topic_table()
        events: list[Event] = [
            NewPartitions(topic=topic, partitions=count)
            for topic, count in self.partitions.items()
            if count != known[topic].partitions
        ]
        if self.members not in (None, len(group.members)):
            events.append(ScaleTo(members=self.members or 0, like=like))
        return tuple(events)

    def changed(self, group: Group) -> Group:
        """Return the group with the new numbers of members and partitions."""
        topics = (
            grown_topic(one, self.partitions.get(one.name, one.partitions)) for one in group.topics
        )
        changed = replace(with_valid_ownership(group), topics=tuple(topics))
        if self.members in (None, len(group.members)):
            return changed
        resizing = Resizing.of(changed, like=self.like, allow_lag=self.allow_lag)
        return resizing.resized(self.members or 0)


def parse_sizes(
    group: Group,
    *,
    members: str | None = None,
    partitions: Sequence[str] = (),
    like: str | None = None,
    allow_lag: bool = False,
) -> list[Sizes]:
    """Parse the options with new numbers of members and partitions.

    Parameters
    ----------
    members
        Numbers in the syntax of ``kassay forecast --members``.
    partitions
        New partition counts, each as ``TOPIC=COUNT``. They apply to each number of members.
    like
        Id of the member with the subscription, rack, capacity and speed of added members.
    allow_lag
        Accept lag as weights.
    """
    counts, names = dict[str, int](), list[str]()
    for text in partitions:
        topic, separator, count = text.rpartition("=")
        if not separator or not topic or not count.isdecimal():
            raise UsageError(f"--partitions must be TOPIC=COUNT, got {text!r}")
        if topic not in group.topic_table():
            raise InputError(f"{group.label} has no topic {topic!r}; correct --partitions")
        counts[topic] = grown_topic(group.topic_table()[topic], int(count)).partitions
        names.append(f"{topic} {count_of(int(count), 'partition')}")
    given = Sizes(name=", ".join(names), partitions=counts, like=like, allow_lag=allow_lag)
    if members is None:
        return [given] if names else []
    found, current = [], len(group.members)
    if not current:
        raise InputError(f"{group.label} has no members; --members requires at least one member")
    for part in members.split(","):
        sign, numbers = _numbers_of_members(part)
        for number in numbers:
            total = current + int(f"{sign}{number}") if sign else number
            if total < 1:
                raise InputError(
                    f"cannot remove {count_of(current - total, 'member')} from {group.label}, "
                    f"which has {count_of(current, 'member')}; at least 1 member must remain"
                )
            name = f"members {sign}{number}" if sign else count_of(number, "member")
            found.append(replace(given, name=", ".join([*names, name]), members=total))
    return found


def _numbers_of_members(text: str) -> tuple[str, range]:
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
class Change:
    """Change of a group by rolling restarts and by new numbers of members.

    Parameters
    ----------
    start
        Configuration before the change.
    action
        Rebalance or restart that keeps the configuration, or None.
    steps
        Configurations after each rolling restart; empty for the current configuration.
    sizes
        Numbers of members and partitions after the change, or None.
    note
        Behaviour of static members that depends on the release of the broker, or None.
    is_further
        Whether the assignor is in addition to the default ones, and is not recommended.
    """

    name: str
    start: Configuration
    action: Event | None = None
    steps: tuple[Configuration, ...] = ()
    sizes: Sizes | None = None
    note: str | None = None
    is_further: bool = False

    @property
    def final(self) -> Configuration:
        """Return the configuration after the change."""
        return self.steps[-1] if self.steps else self.start

    def events(self, group: Group, restart: RollingRestart) -> list[Event]:
        """Return the events of the change. ``restart`` contains the restart times."""
        sizes = () if self.sizes is None else self.sizes.events(group)
        action = () if self.action is None else (self.action,)
        return [*action, *(replace(restart, to=step) for step in self.steps), *sizes]


class CurrentLoads(NamedTuple):
    """Maximum load and sum of squared loads of the current assignment.

    With different weights or speeds, ``squares`` is 0, and so is ``maximum_load`` if the numbers of
    partitions differ by at most 1: Kafka's assignors ignore weights, so the loads are by chance.
    ``shown`` is always the maximum load, ``unowned`` the number of partitions without an owner.
    """

    maximum_load: float
    squares: float
    shown: float
    unowned: int = 0

    @classmethod
    def of(cls, group: Group) -> "CurrentLoads":
        """Compute the current loads of a group."""
        current, shown = keep_owners(group), current_load(group)
        unowned = sum(map(len, plan_result.unowned_partitions(group).values()))
        if group.common_weight is not None and group.has_equal_speeds:
            return cls(shown, measures(group, current)[Measure.SUM_OF_SQUARES], shown, unowned)
        counts = [len(current.get(one.id, ())) for one in group.members]
        return cls(shown if max(counts) > min(counts) + 1 else 0, 0, shown, unowned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Forecast of a change in which ``batch_size`` members restart at a time.

    The last event of the prediction is a rolling restart after the change. ``now`` has the current
    loads.
    """

    change: Change
    batch_size: int
    prediction: predict.Prediction = field(repr=False)
    now: CurrentLoads

    @property
    def cost(self) -> predict.PredictedCost | None:
        """Return the cost of the change, or None if nothing changes."""
        return self.over(0) if len(self.prediction.events) > 1 else None

    @property
    def restart(self) -> predict.EventPrediction:
        """Return the prediction of the later rolling restart."""
        return self.prediction.events[-1]

    @property
    def after(self) -> predict.EventPrediction:
        """Return the prediction of the last change. If nothing changes, return `restart`."""
        return self.prediction.events[-1 if self.cost is None else -2]

    @property
    def maximum_load(self) -> predict.Distribution:
        """Return the maximum load after the last change, or after `restart` if nothing changes."""
        return self.after.maximum_load

    def highest(self, name: str) -> predict.Distribution:
        """Return the higher of two values of a load measure: before and after the later restart.

        Before the later rolling restart, the group has the loads after the change, or else the
        current ones. If weights or speeds differ, ``squares`` are not predicted: return 0.
        """
        later: predict.Distribution | None = getattr(self.restart, name)
        if later is None:
            return predict.Distribution.of([0] * self.prediction.samples)
        before = [getattr(self.now, name)] * len(later.values)
        if self.cost is not None:
            before = getattr(self.after, name).values
        return predict.Distribution.of(list(map(max, before, later.values)))

    @property
    def assigned(self) -> int:
        """Return the minimum number of owned partitions after the change or the later restart."""
        ends = (-1,) if self.cost is None else (-2, -1)
        samples = self.prediction.courses
        return min(sum(one.assignments[end].counts().values()) for one in samples for end in ends)

    def over(self, restarts: float) -> predict.PredictedCost:
        """Return the cost of the change and of several later rolling restarts."""
        return self.prediction.cost_of([1] * (len(self.prediction.events) - 1) + [restarts])

    def record(self) -> dict[str, object]:
        """Convert the forecast to JSON."""
        stopped = dict(self.prediction.stopped_members)
        return {
            "configuration": self.change.name,
            "at_once": self.batch_size,
            "rolling_restarts": len(self.change.steps),
            "change": None if self.cost is None else self.cost.record(),
            "restart": self.restart.cost.record(),
            "maximum_load": self.maximum_load.record(),
            "members": round(self.restart.members.mean),
            "samples": self.prediction.samples,
            **({"stopped_members": stopped} if stopped else {}),
            **({} if self.change.note is None else {"note": self.change.note}),
        }


def forecast_changes(
    group: Group,
    current: Configuration,
    *,
    assignors: Sequence[str] | None = None,
    further: Sequence[str] = (),
    sizes: Sequence[Sizes] = (),
    batch_sizes: Sequence[int] = (1,),
    restart: RollingRestart | None = None,
    samples: int | None = None,
    seed: int = 0,
) -> list[Forecast]:
    """Forecast changes of a group, each followed by a rolling restart.

    Parameters
    ----------
    assignors
        Assignors to change to. The defaults are those of sticky, cooperative-sticky and uniform
        (of the consumer protocol) that the client libraries of the members offer, and roundrobin
        with weights or without sticky. A group of the consumer protocol keeps its protocol.
        The default includes restarts of single members and a rebalance if they can lower the
        current loads. With ``sizes``, the default is the current assignor.
    further
        Assignors in addition to the default.
    sizes
        New numbers of members and partitions; each item is forecast separately.
    batch_sizes
        Numbers of members that restart at the same time.
    restart
        Times of the rolling restarts; by default those of `RollingRestart`.
    samples, seed
        As in `predict`.

    Raises
    ------
    InputError
        If the group has no members.
    UsageError
        If an assignor is unknown.
    """
    rolling = restart or RollingRestart()
    changes = list(_changes(group, current, assignors, sizes))
    known = {one.final.assignor for one in changes}
    others = (_change_to(group, current, name) for name in further if name not in known)
    changes += [replace(one, is_further=True) for one in others]
    if samples is None:
        # Samples of different configurations are compared one by one.
        samples = change_samples(group, current, rolling)
        if sizes:
            count = len(changes) * len(batch_sizes)
            samples = max(2, samples * _FULL_SAMPLES // max(_FULL_SAMPLES, count))
    now = CurrentLoads.of(group)

    def found(changes: Iterable[Change], batch_size: int) -> Iterator[Forecast]:
        later = replace(rolling, at_once=batch_size)
        for one in changes:
            events = [*one.events(group, later), later]
            yield Forecast(
                change=one,
                batch_size=batch_size,
                prediction=predict.predict(group, one.start, events, samples=samples, seed=seed),
                now=now,
            )

    forecasts = [one for size in batch_sizes for one in found(changes, size)]
    if assignors is None and not sizes:
        own = forecasts[0]
        # A rolling restart alone lowers the current loads, or gives partitions an owner.
        is_open = plan_result.has_lost_rebalance(group) or any(
            own.highest(name).is_above(getattr(own.restart, name), factor=factor)
            for name, factor in LOAD_FACTORS.items()
            if getattr(own.restart, name)
        )
        actions = _actions(group, current, is_uneven=is_open)
        named = (
            Change(name=f"{current.assignor}, {one}", start=current, action=one) for one in actions
        )
        forecasts += found(named, batch_sizes[0])
    return forecasts


def change_samples(
    group: Group, current: Configuration, restart: RollingRestart | None = None
) -> int:
    """Return the number of samples per forecast."""
    return predict.sample_count(group, current, [restart or RollingRestart()] * 3)


def _actions(group: Group, current: Configuration, *, is_uneven: bool) -> Iterator[Event]:
    """Yield events that can balance a group without a new configuration.

    These are a rebalance of the classic protocol and, if a rolling restart lowers the current loads
    or gives partitions an owner, restarts of single members: the two with the highest loads and the
    one with the lowest. If all members of the consumer protocol are static, the member with the
    lowest load stays away until its session has ended.
    """
    dynamic = [one.id for one in group.members if one.instance_id is None]
    static = len(dynamic) < len(group.members)
    if not current.is_consumer_protocol and (is_uneven or static):
        yield Rebalance()
    is_large = (
        len(group.members) > _MAX_RESTART_MEMBERS or group.partition_count > _MAX_RESTART_PARTITIONS
    )
    waits = current.is_consumer_protocol and not dynamic
    if is_large or not (is_uneven or waits):
        return
    held = dict.fromkeys((one.id for one in group.members), 0) | loads(group, keep_owners(group))
    names = consumer_names(group)
    if waits:
        least = min(held, key=lambda id: (held[id], id))
        yield Restart(members=(names[least],), downtime=current.session_timeout + 15)
    by_load = sorted(dynamic, key=lambda id: (-held[id], id))
    for id in dict.fromkeys([*by_load[:2], *by_load[-1:]]):
        yield Restart(members=(names[id],))


def _changes(
    group: Group, current: Configuration, assignors: Sequence[str] | None, sizes: Sequence[Sizes]
) -> Iterator[Change]:
    own = current.assignor
    shown = shown_name(own)
    yield Change(name=f"{shown}, current", start=current)
    if sizes:
        names = dict.fromkeys(assignors or [own])
        changes = [_change_to(group, current, name) for name in names]
        yield from (
            replace(one, name=f"{one.name}, {size.name}", sizes=size)
            for size in sizes
            for one in changes
        )
        return
    identified = identify_assignor(group)
    is_dynamic = any(member.instance_id is None for member in group.members)
    if is_dynamic and identified.has_static_members:
        static = (replace(current, is_static=True),)
        yield Change(name=f"{shown}, static members", start=current, steps=static)
    for name in default_assignors(group, current) if assignors is None else assignors:
        change = _change_to(group, current, name)
        if change.steps:
            yield change
        is_listed = name == DEFAULT_LIST[-1] and lists_default_assignors(identified, own)
        if change.steps and is_listed:
            yield replace(
                change,
                name=f"{name}, from the default list",
                start=replace(current, listed=DEFAULT_LIST),
                steps=change.steps[1:],
            )


def default_assignors(group: Group, current: Configuration) -> list[str]:
    """Return the assignors for which changes are forecast by default."""
    own = identify_assignor(group)
    # Assignors ignore weights: each can reach the lowest maximum load.
    if current.is_consumer_protocol:
        names = ["uniform", *(["server-range"] if group.is_weighted else [])]
    else:
        has_other = group.is_weighted or not own.offers("sticky")
        names = [*DEFAULT_CHANGES, *(["roundrobin"] if has_other else [])]
    return [name for name in names if own.offers(name)]


def _change_to(group: Group, current: Configuration, name: str) -> Change:
    """Return the change to an assignor. A change to the current assignor has no steps."""
    if name == current.assignor:
        return Change(name=shown_name(name), start=current)
    if ":" not in name and (name not in ASSIGNORS or name not in POLICIES):
        known = ", ".join(name for name in POLICIES if name in ASSIGNORS)
        raise UsageError(f"unknown assignor {name!r}; choose from {known}")
    steps = tuple(current.steps_to(name))
    is_modern, label = steps[-1].is_consumer_protocol, shown_name(name)
    if is_modern != current.is_consumer_protocol:
        label = f"{label}, {'consumer' if is_modern else 'classic'} protocol"
    note = _static_note(group, current, steps[-1])
    if ":" in name and (result := run_until_stable(group, name)).ending is not Ending.OK:
        note = f"{result.ending} on the group: {result.detail}"
    return Change(name=label, start=current, steps=steps, note=note)


def _static_note(group: Group, current: Configuration, final: Configuration) -> str | None:
    """Describe static members after a change if broker releases differ, or return None."""
    if not final.is_consumer_protocol or not any(one.instance_id for one in group.members):
        return None
    if current.is_consumer_protocol:
        return "on brokers before 4.4.0, static members can keep their partitions (KAFKA-20434)"
    return (
        "static members keep their partitions until a member joins or leaves; brokers of other "
        "releases than 4.4.0 can refuse them with UNRELEASED_INSTANCE_ID"
    )


def optimum_record(
    name: str,
    group: Group,
    *,
    before: Group | None = None,
    levels: Sequence[Level] | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> dict[str, object]:
    """Return the optimum of a changed group as JSON, with the keys of a forecast.

    ``before`` is the group before the change. Loads are in the unit of its fastest member, so that
    the loads of groups with different members are comparable.
    """
    before = group if before is None else before
    chosen = default_levels(group) if levels is None else levels
    solution = solve(group, levels=chosen, limits=limits, seed=seed)
    makespan = plan_result.makespan_of(group, solution)
    scale = Fraction(_max_speed(before), _max_speed(group))
    shown = [
        member_units(group).shown(load, scale)
        for load in ((makespan.bound, makespan.value) if makespan is not None else ())
    ]
    subscribers, known = group.subscribers(), before.subscribers()
    return {
        "configuration": name,
        "change": None,
        "restart": None,
        "maximum_load": dict(zip(("mean", "low", "high"), (shown[1], *shown), strict=True))
        if shown
        else None,
        "members": len(participants(group)),
        "movement": value_and_bound(solution.movement) if shown else None,
        "status": str(solution.status),
        "levels": solution.values_by_level(),
        "proof": solution.proof_by_level(),
        "topics_without_subscribers": [
            topic for topic, one in known.items() if one and not subscribers.get(topic)
        ],
    }


def current_load(group: Group) -> float:
    """Return the current maximum load in the unit of the fastest member."""
    makespan = measures(group, keep_owners(group))[Measure.MAKESPAN]
    return member_units(group).shown(makespan)


def _max_speed(group: Group) -> int:
    return max((group.members[index].speed for index in group.participant_indices), default=1)
