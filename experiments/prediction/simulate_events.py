"""Convert the events of a prediction to a simulation script, and run it."""

import base64
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from kassay.experiments.prediction import scenario
from kassay.experiments.simulation import run_simulation as simulations
from kassay.experiments.simulation.script import (
    Action,
    MemberPlan,
    Script,
    ScriptEvent,
    Settings,
    TopicPlan,
)
from kassay.reference.coordinator.runtime import CoordinatorConfig
from kassay.reference.model.assignment import Assignment, current_partitions
from kassay.reference.model.display import by_ordinal, next_names
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import Partitions

_START = 30_000
"""Time of the first event in ms, at which all members have sent heartbeats."""
SETTLE_MS = 75_000
"""Time in ms, in addition to the session timeout, until a group is stable after an event."""
_LIBRDKAFKA, _AIOKAFKA = "librdkafka", "aiokafka"


@dataclass(frozen=True, slots=True)
class Sample:
    """Result of one simulation, with the cost of, and the assignment after, each event.

    ``rebalances`` has the group of each run of an assignor.
    """

    costs: tuple[simulations.SegmentCost, ...]
    assignments: tuple[Assignment, ...]
    notes: tuple[str, ...]
    rebalances: tuple[Group, ...] = ()


def consumer_names(group: Group) -> dict[str, str]:
    """Return the names that members have in simulations, by member id.

    A name is the instance id, the client id if no other member has it, or the member id.
    """
    uses = Counter(one.client.id for one in group.members)
    return {
        one.id: one.instance_id or (one.client.id if uses[one.client.id] == 1 else None) or one.id
        for one in group.members
    }


def planned_members(group: Group) -> tuple[list[MemberPlan], simulations.InitialGroup]:
    """Convert the members of a group to simulated members and their owned partitions."""
    names, owned = consumer_names(group), current_partitions(group)
    plans = [
        MemberPlan(
            id=names[one.id],
            topics=one.subscription,
            static=one.instance_id is not None,
            rack=one.rack,
            sends_user_data=one.client.library == _LIBRDKAFKA,
            joins_twice=one.client.library == _AIOKAFKA,
        )
        for one in group.members
    ]
    members = tuple(
        simulations.InitialMember(client=name, id=id, owned=Partitions.of(owned.get(id, ())))
        for id, name in names.items()
    )
    generation = max([1, *(member.generation for member in group.members)])
    return plans, simulations.InitialGroup(generation=generation, members=members)


class Course:
    """Simulation script for the events of a prediction."""

    def __init__(
        self,
        group: Group,
        configuration: scenario.Configuration,
        events: Sequence[scenario.Event],
        seed: int,
    ) -> None:
        self.group, self.configuration = group, configuration
        self.draw = draw = random.Random(seed)  # noqa: S311 - not for security
        plans, self.initial = planned_members(group)
        self.plans = {plan.id: self._configured(plan, configuration) for plan in plans}
        self.present = dict.fromkeys(self.plans)
        self.known_topics = {topic.name: topic.partitions for topic in group.topics}
        self.topics = tuple(
            TopicPlan(name=one.name, partitions=one.partitions, id=one.id) for one in group.topics
        )
        self.initial_plans = tuple(self.plans.values())
        self.settle = round(1000 * configuration.session_timeout) + SETTLE_MS
        self.script_events: list[ScriptEvent] = []
        self.starts: list[int] = []
        self.metadata = round(1000 * configuration.metadata_max_age)
        # These are drawn before all events: further events do not change the costs of earlier ones.
        self.script_seed, self.refreshed = draw.getrandbits(32), draw.randint(0, self.metadata)
        self.draw_of_ids = random.Random(draw.getrandbits(64))  # noqa: S311 - not for security
        names = consumer_names(group)
        # Members can have equal client ids.
        self.client_ids = {names[one.id]: one.client.id or names[one.id] for one in group.members}
        at = _START
        for event in events:
            at = at + self._jitter() if event.at is None else _START + round(1000 * event.at)
            if self.starts and at < self.starts[-1]:
                raise UsageError(
                    f"events must be in order of time, got {event.at:g} s after a later event"
                    if event.at is not None
                    else "events must be in order of time"
                )
            self.starts.append(at)
            at = self._add(event, at)
        self.end = at

    def _configured(
        self, plan: MemberPlan, configuration: scenario.Configuration, *, keep_static: bool = False
    ) -> MemberPlan:
        static = configuration.is_static
        data = configuration.sends_user_data
        return replace(
            plan,
            assignors=configuration.assignors,
            static=plan.static if keep_static or static is None else static,
            sends_user_data=plan.sends_user_data if data is None else data,
            leaves=configuration.leaves_on_close,
        )

    def _simulation(self, busy: float) -> simulations.Simulation:
        configuration = self.configuration
        timing = configuration.timing
        # Most machines are idle most of the time.
        square, cube = busy**3, busy**4

        def between(times: tuple[int, int], share: float) -> int:
            return round(times[0] + share * (times[1] - times[0]))

        start_up = between(timing.start_up, busy)
        session = round(1000 * configuration.session_timeout)
        script = Script(
            name="prediction",
            topics=self.topics,
            members=self.initial_plans,
            events=tuple(self.script_events),
            until=self.end,
            seed=self.script_seed,
            settings=Settings(
                session=session,
                heartbeat=round(1000 * configuration.heartbeat_interval),
                max_poll=round(1000 * configuration.max_poll_interval),
                latency=between(timing.latency, cube),
                # With equal times, cooperative groups need fewer rebalances than real ones.
                jitter=1 + 4 * between(timing.latency, cube),
                drift=between(timing.drift, square),
                poll=between(timing.poll, cube),
                reconcile=between(timing.poll, cube),
                spread=between(timing.spread, square),
                start_up=start_up,
                metadata=self.refreshed,
            ),
            broker=CoordinatorConfig(
                session_timeout=session,
                heartbeat_interval=round(1000 * configuration.consumer_heartbeat_interval),
                assignment_interval=configuration.batching_ms,
            ),
        )
        return simulations.Simulation(
            script, configuration.policy, initial_group=self.initial, new_id=self._new_id
        )

    def _new_id(self, name: str, is_classic: bool) -> str:
        while True:
            uuid = UUID(int=self.draw_of_ids.getrandbits(128), version=4)
            if is_classic:
                return f"{self.client_ids.get(name, name)}-{uuid}"
            text = base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=")
            if not text.startswith("-"):
                return text

    def _add(self, event: scenario.Event, at: int) -> int:
        """Add an event to the script, and return the time in ms when the group is stable again."""
        match event:
            case scenario.RollingRestart():
                at = self._rolling_restart(event, at)
            case scenario.Restart():
                for name in self._members(event.members):
                    self._restart(name, at, round(1000 * event.downtime))
                at += round(1000 * event.downtime)
            case scenario.ScaleTo():
                self._scale(event, at)
            case scenario.Leave():
                self._end(event.members, Action.LEAVE, at)
            case scenario.Crash():
                self._end(event.members, Action.CRASH, at)
            case scenario.Return():
                for name in self._members(event.members, absent=True):
                    self._restart(name, at, 0)
                    self.present[name] = None
            case scenario.Scripted():
                return self._scripted(event, at)
            case _:
                return self._add_other(event, at)
        return at + self.settle

    def _add_other(self, event: scenario.Event, at: int) -> int:
        match event:
            case scenario.NewPartitions():
                self._grow(event.topic, event.partitions, at)
                return at + self.metadata + self.settle
            case scenario.NewTopic():
                self._new_topic(event, at)
            case scenario.Rebalance():
                # The coordinator rebalances a stable group if its leader joins again.
                leader = next(iter(self.present))
                self._subscribe((leader,), self.plans[leader].topics, at)
            case scenario.Subscribe():
                self._subscribe(self._members(event.members), event.topics, at)
            case _:
                raise UsageError(f"unknown event {type(event).__name__}; use a subclass of Event")
        return at + self.settle

    def _end(self, names: Sequence[str], action: Action, at: int) -> None:
        for name in self._members(names):
            self.script_events.append(ScriptEvent(at=at, action=action, member=name))
            self.present.pop(name)

    def _members(self, names: Sequence[str], *, absent: bool = False) -> Sequence[str]:
        for name in names:
            if name not in self.plans:
                known = ", ".join(list(self.plans)[:10])
                raise InputError(f"{self.group.label} has no member {name!r}; choose from {known}")
            if absent == (name in self.present):
                state = "is already in the group" if absent else "has left the group before"
                raise InputError(f"{self.group.label}: member {name!r} {state}; remove the event")
        return names

    def _restart(self, name: str, at: int, downtime: int) -> None:
        plan = self.plans[name]
        self.script_events.append(
            ScriptEvent(
                at=at, action=Action.RESTART, member=name, duration=downtime, new_member=plan
            )
        )

    def _rolling_restart(self, event: scenario.RollingRestart, at: int) -> int:
        if event.at_once < 1:
            raise UsageError(f"at_once must be at least 1, got {event.at_once}")
        downtime, pause = round(1000 * event.downtime), round(1000 * event.pause)
        if downtime < 0 or pause < 0:
            raise UsageError(
                "downtime and pause must be at least 0 seconds, "
                f"got {event.downtime:g} and {event.pause:g}"
            )
        if event.to is not None:
            to = event.to
            self.plans = {name: self._configured(plan, to) for name, plan in self.plans.items()}
        names = self._ordered(event.order)
        for first in range(0, len(names), event.at_once):
            for name in names[first : first + event.at_once]:
                self._restart(name, at, downtime)
            # Restarts are not synchronous with heartbeats.
            at += downtime + pause + self._jitter()
        return at

    def _jitter(self) -> int:
        configuration = self.configuration
        longest = max(configuration.heartbeat_interval, configuration.consumer_heartbeat_interval)
        return self.draw.randrange(round(1000 * longest))

    def _ordered(self, order: scenario.Order) -> list[str]:
        names = list(self.present)
        sorted_names = by_ordinal(names)
        if sorted_names is None and len(set(self.client_ids.values())) == len(names):
            sorted_names = sorted(names)
        if order is scenario.Order.RANDOM or sorted_names is None:
            self.draw.shuffle(names)
            return names
        return sorted_names if order is scenario.Order.NAMES else sorted_names[::-1]

    def _scale(self, event: scenario.ScaleTo, at: int) -> None:
        if event.members < 1:
            raise UsageError(f"members must be at least 1, got {event.members}")
        names = list(self.present)
        self._end(self._leaving(names, len(names) - event.members), Action.LEAVE, at)
        if event.members <= len(names):
            return
        like = None if event.like is None else self.plans[self._members((event.like,))[0]]
        topics = sorted({topic for name in names for topic in self.plans[name].topics})
        is_static = bool(names) and all(self.plans[name].static for name in names)
        for name in next_names(self.plans, event.members - len(names)):
            plan = MemberPlan(
                id=name,
                topics=tuple(topics) if like is None else like.topics,
                static=is_static,
                rack=None if like is None else like.rack,
            )
            plan = self.plans[name] = self._configured(plan, self._current(), keep_static=True)
            self.script_events.append(
                ScriptEvent(at=at, action=Action.JOIN, member=name, new_member=plan)
            )
            self.present[name] = None

    def _current(self) -> scenario.Configuration:
        plan = next(iter(self.plans.values()))
        return replace(self.configuration, assignor=plan.assignors[0], listed=plan.assignors)

    def _leaving(self, names: Sequence[str], count: int) -> Sequence[str]:
        """Choose the members that leave: those with the highest ordinals, or random ones."""
        if count <= 0:
            return ()
        sorted_names = by_ordinal(names)
        if sorted_names is None:
            return self.draw.sample(list(names), count)
        return sorted_names[-count:]

    def _grow(self, topic: str, partitions: int, at: int) -> None:
        known = self.known_topics.get(topic)
        if known is None:
            raise InputError(f"{self.group.label} has no topic {topic!r}; correct the event")
        if partitions < known:
            raise InputError(
                f"topic {topic!r}: new partition count must be at least {known}, got {partitions}"
            )
        self.known_topics[topic] = partitions
        self.script_events.append(
            ScriptEvent(at=at, action=Action.GROW, topic=topic, partitions=partitions)
        )

    def _new_topic(self, event: scenario.NewTopic, at: int) -> None:
        if event.topic in self.known_topics:
            raise InputError(
                f"{self.group.label} already has the topic {event.topic!r}; use another name"
            )
        self.known_topics[event.topic] = event.partitions
        self.topics += (TopicPlan(name=event.topic, partitions=event.partitions),)
        for name in self._members(event.members) or list(self.present):
            self._subscribe((name,), (*self.plans[name].topics, event.topic), at)

    def _subscribe(self, names: Sequence[str], topics: Sequence[str], at: int) -> None:
        for topic in topics:
            if topic not in self.known_topics:
                raise InputError(f"{self.group.label} has no topic {topic!r}; correct the event")
        for name in names:
            self.plans[name] = replace(self.plans[name], topics=tuple(topics))
            self.script_events.append(
                ScriptEvent(at=at, action=Action.SUBSCRIBE, member=name, topics=tuple(topics))
            )

    def _scripted(self, event: scenario.Scripted, at: int) -> int:
        """Add scripted events, and return the time in ms when the group is stable again."""
        last = at
        for topic in event.topics:
            if topic.name not in self.known_topics:
                self.known_topics[topic.name] = topic.partitions
                self.topics += (topic,)
        for one in event.events:
            moved = replace(one, at=at)
            if one.new_member is not None:
                plan = self._configured(one.new_member, self._current(), keep_static=True)
                self.plans[plan.id] = plan
                moved = replace(moved, new_member=plan)
            elif one.action is Action.RESTART:
                moved = replace(moved, new_member=self.plans[one.member])
            elif one.action is Action.GROW:
                self.known_topics[one.topic] = one.partitions
                last += self.metadata
            self.script_events.append(moved)
            last = max(last, at + one.duration)
        return last + self.settle

    def run(self, busy: float) -> Sample:
        """Run the simulation, with consumers from idle (``busy`` is 0) to busy (1)."""
        simulation = self._simulation(busy)
        simulation.clock.run(self.starts[0] - 1)
        costs, assignments = [], []
        for end in (*self.starts[1:], self.end):
            costs.append(simulation.run_segment(end - 1))
            assignments.append(
                Assignment(
                    {name: one.owned for name, one in simulation.consumers.items() if one.is_up}
                )
            )
        result = simulation.environment.result
        return Sample(
            tuple(costs),
            tuple(assignments),
            tuple(one.text for one in result.notes if "stops with" in one.text),
            tuple(one.group for one in result.rebalances),
        )
