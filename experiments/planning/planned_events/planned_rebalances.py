"""Rebalances that planned events of a group cause: the members and topics at each of them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from kassay.experiments.planning.configuration_forecast import planned_members
from kassay.experiments.simulation.script import (
    Action,
    Script,
    ScriptEvent,
    TopicPlan,
    parse_planned_events,
)
from kassay.reference.documents.text_files import read_text
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Member, Topic

NewId = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class PlannedRebalance:
    """A rebalance, and the events that cause it.

    Parameters
    ----------
    at
        Time in ms.
    group
        Members and topics. Owned partitions matter in the first rebalance only.
    clients
        Client id of each member, by member id.
    """

    at: int
    events: tuple[str, ...]
    group: Group
    clients: Mapping[str, str]


def load_planned_events(file: Path, group: Group) -> Script:
    """Read planned events of a group from a YAML or JSON file. Members have their client ids."""
    members, _ = planned_members(group)
    topics = [TopicPlan(name=one.name, partitions=one.partitions) for one in group.topics]
    return parse_planned_events(read_text(file), str(file), topics=topics, members=members)


def planned_rebalances(
    group: Group, script: Script, *, new_id: NewId | None = None
) -> list[PlannedRebalance]:
    """Return the rebalances of planned events, in order of time.

    Events at the same time cause one rebalance. A restart causes two: the member leaves, and
    returns with a new member id. A crashed member leaves after the session timeout. A static
    member leaves only if its restart takes longer than the session timeout. If weights differ, new
    partitions of a topic have its mean weight, and those of a new topic that of the group.

    Parameters
    ----------
    new_id
        Creates the id of a member that joins, from its client id.

    Raises
    ------
    InputError
        If an event is not supported, a topic shrinks, a rebalance has no members, or the speed of
        a new member is unknown.
    """
    state = _State(group, script, new_id or _numbered_ids())
    changes = sorted(_changes(script), key=attrgetter("at"))
    rebalances: list[PlannedRebalance] = []
    events: list[str] = []
    before = state.consumed()
    for at, batch in groupby(changes, key=attrgetter("at")):
        events += [text for change in batch for text in state.apply(change)]
        if state.consumed() != before:
            if not state.members:
                raise InputError(f"{script.name}: at {at} ms, the group has no members")
            rebalances.append(state.rebalance(at, events))
            before, events = state.consumed(), []
    if not rebalances:
        raise InputError(
            f"{script.name}: the events cause no rebalance; add an event that "
            "changes members, subscriptions or partitions"
        )
    return rebalances


def _changes(script: Script) -> Iterator[ScriptEvent]:
    """Yield a join, leave, subscription or growth for each event, at the time of its effect."""
    session = script.settings.session
    static = {plan.id: plan.static for plan in script.members}
    for event in script.events:
        match event.action:
            case Action.RESTART:
                delay = session if static.get(event.member) else 0
                if not static.get(event.member) or event.duration > session:
                    yield replace(event, action=Action.LEAVE, at=event.at + delay)
                    yield replace(event, action=Action.JOIN, at=event.at + event.duration)
            case Action.CRASH:
                yield replace(event, action=Action.LEAVE, at=event.at + session)
            case Action.JOIN:
                if event.new_member is not None:
                    static[event.member] = event.new_member.static
                yield event
            case Action.LEAVE | Action.SUBSCRIBE | Action.GROW:
                yield event
            case _:
                raise InputError(f"{script.name}: planned events cannot have '{event.action}'")


def _numbered_ids() -> NewId:
    """Return a function that numbers the ids of each client, from 1."""
    used: Counter[str] = Counter()

    def new_id(client: str) -> str:
        used[client] += 1
        return f"{client}-{used[client]}"

    return new_id


@dataclass
class _State:
    """Members and topics of the group after some events."""

    group: Group
    script: Script
    new_id: NewId
    topics: dict[str, Topic] = field(init=False)
    members: dict[str, Member] = field(init=False)  # by client id
    plans: dict[str, Member] = field(init=False)  # members that may return, by client id

    def __post_init__(self) -> None:
        plans, initial = planned_members(self.group)
        table = self.group.member_table()
        known = self.group.topic_table()
        self.topics = {
            plan.name: known.get(plan.name) or self._new_topic(plan) for plan in self.script.topics
        }
        self.members = {one.client: table[one.id] for one in initial.members}
        self.plans = {plan.id: _new_member(self.members[plan.id]) for plan in plans}

    def _new_topic(self, plan: TopicPlan) -> Topic:
        """Return a new topic, with the mean weight of the group's partitions if weights differ."""
        if not self.group.is_weighted:
            return Topic(plan.name, plan.partitions)
        total = sum(topic.total_weight for topic in self.group.topics)
        weight = round(Fraction(total, self.group.partition_count))
        return Topic(plan.name, plan.partitions, weights=(weight,) * plan.partitions)

    def apply(self, change: ScriptEvent) -> Sequence[str]:
        """Apply a join, leave, subscription or growth, and return its description."""
        client = change.member
        match change.action:
            case Action.LEAVE:
                return [f"{client} leaves"] if self.members.pop(client, None) else []
            case Action.JOIN:
                return self._join(change)
            case Action.SUBSCRIBE:
                for members in (self.plans, self.members):
                    if client in members:
                        members[client] = replace(members[client], subscription=change.topics)
                return [f"{client} subscribes to {', '.join(change.topics)}"]
            case _:
                return self._grow(change)

    def _join(self, change: ScriptEvent) -> Sequence[str]:
        client, plan = change.member, change.new_member
        if client in self.members:
            return []
        if plan is not None:
            if not self.group.has_equal_speeds:
                raise InputError(
                    f"{self.script.name}: the speed of the new member {client!r} is unknown, and "
                    "the speeds of the group differ; let members of the group join again, or "
                    "remove the speeds"
                )
            self.plans[client] = Member(
                id=client,
                subscription=plan.topics,
                rack=plan.rack,
                instance_id=client if plan.static else None,
                speed=next((one.speed for one in self.group.members), 1),
            )
        self.members[client] = replace(self.plans[client], id=self.new_id(client))
        return [f"{client} joins"]

    def _grow(self, change: ScriptEvent) -> Sequence[str]:
        topic = self.topics[change.topic]
        if change.partitions < topic.partitions:
            raise InputError(
                f"{self.script.name}: topic {topic.name!r} has {topic.partitions} partitions; it "
                f"cannot shrink to {change.partitions}"
            )
        weights = topic.weights
        if weights is not None:
            mean = round(Fraction(topic.total_weight, topic.partitions)) if topic.partitions else 1
            weights = (*weights, *(mean,) * (change.partitions - topic.partitions))
        grown = Topic(topic.name, change.partitions, id=topic.id, weights=weights)
        self.topics[topic.name] = grown
        return [f"{topic.name} grows to {grown.partitions} partitions"]

    def consumed(self) -> object:
        """Return the parts of the state whose changes cause a rebalance."""
        names = {name for one in self.members.values() for name in one.subscription}
        return (
            [(one.id, sorted(one.subscription)) for one in self.members.values()],
            [(one.name, one.partitions) for one in self.topics.values() if one.name in names],
        )

    def rebalance(self, at: int, events: Sequence[str]) -> PlannedRebalance:
        """Return the rebalance of the current state."""
        group = replace(
            self.group, topics=tuple(self.topics.values()), members=tuple(self.members.values())
        )
        clients = {member.id: client for client, member in self.members.items()}
        return PlannedRebalance(at, tuple(events), group, clients)


def _new_member(member: Member) -> Member:
    return Member(
        id=member.id,
        subscription=member.subscription,
        rack=member.rack,
        instance_id=member.instance_id,
        capacity=member.capacity,
        speed=member.speed,
        client=member.client,
    )
