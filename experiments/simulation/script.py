"""Data types and parser of simulation scripts, and the built-in scripts.

A script has topics, members, settings and timed events. All times are in milliseconds, all rates
in messages per second. Errors contain the file, the line and the field.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from kassay.experiments.implementations import client_libraries
from kassay.experiments.simulation.assignor_policies import POLICIES
from kassay.reference.coordinator.runtime import CoordinatorConfig
from kassay.reference.documents.config_nodes import ConfigNode, format_choices, read_nodes
from kassay.reference.documents.files import read_text
from kassay.reference.model.errors import InputError


class Action(StrEnum):
    """Kind of a timed event in a simulation script."""

    JOIN = "join"
    LEAVE = "leave"
    CRASH = "crash"
    RESTART = "restart"
    FREEZE = "freeze"
    STALL = "stall"
    SUBSCRIBE = "subscribe"
    GROW = "grow"
    FAIL_OVER = "fail over"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """Topic in a simulation script. ``rate`` is in messages per second and partition."""

    name: str
    partitions: int
    rate: int = 0
    id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlan:
    """Consumer in a simulation script."""

    id: str  # client.id; for a static member also group.instance.id
    topics: tuple[str, ...]
    static: bool = False
    rack: str | None = None
    rate: int | None = None  # maximum rate of processing; None for no limit
    assignment_time: int = 0  # duration of an assignment when this member leads
    start_at: int = 0  # time of its first start
    assignors: tuple[str, ...] = ()  # supported assignors in order; empty for that of the policy
    library: str | None = None  # client library, LIBRARY[@VERSION]; None for that of the policy
    # Whether its assignments of cooperative-sticky contain data, as those of librdkafka.
    sends_user_data: bool = False
    joins_twice: bool = False  # whether it joins twice as a leader with sticky, as aiokafka does
    leaves: bool = True  # whether it leaves the group when it is closed


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptEvent:
    """Timed event of a simulation script. The ``action`` determines the used fields."""

    at: int
    action: Action
    member: str = ""
    duration: int = 0  # downtime of a restart or fail-over, length of a stall or freeze
    topics: tuple[str, ...] = ()  # new subscription of the member
    topic: str = ""  # topic that grows
    partitions: int = 0  # its new partition count
    # Member that joins, or configuration with which a member restarts if it changes.
    new_member: MemberPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the clients, with Kafka's defaults, and of the simulation."""

    session: int = 45_000  # session.timeout.ms
    heartbeat: int = 3_000  # heartbeat.interval.ms
    max_poll: int = 300_000  # max.poll.interval.ms, which is also the rebalance timeout
    latency: int = 5  # time from a request to its response
    jitter: int = 0  # maximum random addition to the latency
    backoff: int = 100  # delay before a request that reached no coordinator is repeated
    drift: int = 100  # maximum delay of a heartbeat: the wake-up interval of its thread
    poll: int = 500  # time between two polls; a consumer joins a rebalance at its next poll
    commit: int = 5_000  # auto.commit.interval.ms
    metadata: int = 300_000  # time until the leader detects that a topic has grown
    reconcile: int = 0  # maximum time until a member of the consumer protocol revokes or acquires
    start_up: int = 0  # time from the start of a process to its first request
    # Maximum difference between the heartbeat times of the members of an existing group.
    spread: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Simulation script: topics, members, settings and timed events."""

    name: str
    topics: tuple[TopicPlan, ...]
    members: tuple[MemberPlan, ...]
    events: tuple[ScriptEvent, ...] = ()
    policies: tuple[str, ...] = ("sticky",)
    until: int = 300_000
    seed: int = 0
    settings: Settings = field(default_factory=Settings)
    broker: CoordinatorConfig = field(default_factory=CoordinatorConfig)

    @property
    def measured_from(self) -> int:
        """Return the time of the first event in ms. Costs are measured from this time."""
        return min((event.at for event in self.events), default=0)


_DURATION = re.compile(r"(\d+)(ms|s|m|h)")
_MAX_PARTITIONS, _MAX_MEMBERS, _MAX_TIMES = 1_000_000, 10_000, 100_000
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_T = TypeVar("_T", Settings, CoordinatorConfig)
_Parser = Callable[[ConfigNode], Any]

_EVENT_KEYS: dict[Action, tuple[str, ...]] = {
    Action.JOIN: ("member",),
    Action.LEAVE: ("member",),
    Action.CRASH: ("member",),
    Action.RESTART: ("member", "for"),
    Action.FREEZE: ("member", "for"),
    Action.STALL: ("member", "for"),
    Action.SUBSCRIBE: ("member", "topics"),
    Action.GROW: ("topic", "partitions"),
    Action.FAIL_OVER: ("for",),
}


def parse_script(text: str, name: str) -> Script:
    """Parse a simulation script in YAML or JSON.

    ``name`` is the file name in error messages.

    Examples
    --------
    >>> parse_script("topics: {orders: 2}", "bad.yaml")
    Traceback (most recent call last):
    kassay...InputError: bad.yaml:1: the document: the key 'members' is missing
    """
    root = read_nodes(text, name)
    keys = ("name", "policies", "topics", "members", "events", "until", "seed", "settings")
    items = root.only(*keys, "broker")
    _require(root, items, "topics", "members")
    topics = tuple(_topic(key, node) for key, node in items["topics"].items().items())
    known = {topic.name: topic for topic in topics}
    members = tuple(_members(items["members"], known))
    parsers: dict[str, _Parser] = {
        "name": ConfigNode.text,
        "settings": _client_settings,
        "broker": lambda node: _settings(node, CoordinatorConfig(), _broker_value),
        "seed": ConfigNode.integer,
        "until": _duration,
        "policies": _policies,
        "events": lambda node: tuple(_events(node, members, known)),
    }
    given = {"name": name, "topics": topics, "members": members, **_given(items, parsers)}
    return Script(**given)


def parse_planned_events(
    text: str, name: str, *, topics: Sequence[TopicPlan], members: Sequence[MemberPlan]
) -> Script:
    """Parse the events, new topics and settings of a script for an existing group."""
    root = read_nodes(text, name)
    items = root.only("topics", "events", "settings")
    _require(root, items, "events")
    known = {topic.name: topic for topic in topics}
    for key, node in items["topics"].items().items() if "topics" in items else ():
        if key in known:
            node.fail(f"the group already has topic {key!r}; list only new topics under 'topics'")
        known[key] = _topic(key, node)
    parsers: dict[str, _Parser] = {
        "events": lambda node: tuple(_events(node, members, known)),
        "settings": lambda node: _settings(node, Settings(), _duration),
    }
    given = _given(items, parsers)
    return Script(name=name, topics=tuple(known.values()), members=tuple(members), **given)


def _given(items: Mapping[str, ConfigNode], parsers: Mapping[str, _Parser]) -> dict[str, Any]:
    return {key: parse(items[key]) for key, parse in parsers.items() if key in items}


def _require(node: ConfigNode, items: Mapping[str, ConfigNode], *keys: str) -> None:
    for key in keys:
        if key not in items:
            node.fail(f"the key {key!r} is missing")


def _topic(name: str, node: ConfigNode) -> TopicPlan:
    if not isinstance(node.value, dict):
        return TopicPlan(name=name, partitions=node.integer(maximum=_MAX_PARTITIONS))
    items = node.only("partitions", "rate")
    _require(node, items, "partitions")
    partitions = items["partitions"].integer(maximum=_MAX_PARTITIONS)
    return TopicPlan(
        name=name, partitions=partitions, **_given(items, {"rate": ConfigNode.integer})
    )


def _members(node: ConfigNode, topics: Mapping[str, TopicPlan]) -> Iterable[MemberPlan]:
    ids: set[str] = set()
    for element in node.elements():
        for member in _numbered_members(element, topics):
            if member.id in ids:
                element.fail(f"member {member.id!r} is listed twice")
            ids.add(member.id)
            yield member


def _numbered_members(node: ConfigNode, topics: Mapping[str, TopicPlan]) -> tuple[MemberPlan, ...]:
    parsers: dict[str, _Parser] = {
        "id": ConfigNode.text,
        "topics": lambda node: _topics(node, topics),
        "static": ConfigNode.flag,
        "rack": ConfigNode.text,
        "rate": lambda node: node.integer(1),
        "assignment_time": _duration,
        "start_at": _duration,
        "library": _library,
    }
    keys = ("id", "count", "topics", "static", "rack", "rate", "every", "library")
    items = node.only(*keys, "assignment_time", "start_at")
    _require(node, items, "id", "topics")
    plan = MemberPlan(**_given(items, parsers))
    every = _optional_duration(items, "every")
    if "count" not in items:
        if every:
            items["every"].fail("requires 'count'")
        return (plan,)
    count = items["count"].integer(1, _MAX_MEMBERS)
    width = len(str(count - 1))
    return tuple(
        replace(plan, id=f"{plan.id}{n:0{width}d}", start_at=plan.start_at + n * every)
        for n in range(count)
    )


def _library(node: ConfigNode) -> str:
    try:
        client_libraries.parse_library_version(node.text())
    except InputError as error:
        node.fail(str(error))
    return node.text()


def _topics(node: ConfigNode, topics: Mapping[str, TopicPlan]) -> tuple[str, ...]:
    names: list[str] = []
    for element in node.elements():
        name = _known(element, topics, "topic")
        if name in names:
            element.fail(f"topic {name!r} is listed twice")
        names.append(name)
    return tuple(names)


def _known(node: ConfigNode, names: Mapping[str, object], kind: str) -> str:
    if node.text() not in names:
        known = format_choices(names)
        node.fail(f"unknown {kind} {node.text()!r}, expected one of {known}")
    return node.text()


def _events(
    node: ConfigNode, plans: Iterable[MemberPlan], topics: Mapping[str, TopicPlan]
) -> Iterable[ScriptEvent]:
    members = {member.id: None for member in plans}
    for element in node.elements():
        items = element.items()
        _require(element, items, "at", "do")
        action = Action(_known(items["do"], {action.value: None for action in Action}, "action"))
        keys = _EVENT_KEYS[action]
        element.only("at", "do", "every", "times", *keys)
        for key in keys:
            if key not in items:
                element.fail(f"action {action} requires the key {key!r}")
        events = tuple(_event(action, items, topics, members))
        every = _optional_duration(items, "every")
        if "member" in items and _is_pattern(items["member"]):
            if "times" in items:
                items["times"].fail("requires the name of one member")
            yield from (replace(event, at=event.at + n * every) for n, event in enumerate(events))
            continue
        if ("every" in items) != ("times" in items):
            element.fail("'every' and 'times' must be given together")
        times = items["times"].integer(1, _MAX_TIMES) if "times" in items else 1
        for event in events:
            yield from (replace(event, at=event.at + n * every) for n in range(times))


def _event(
    action: Action,
    items: Mapping[str, ConfigNode],
    topics: Mapping[str, TopicPlan],
    members: dict[str, None],
) -> Iterable[ScriptEvent]:
    event = ScriptEvent(
        at=_duration(items["at"]),
        action=action,
        duration=_optional_duration(items, "for"),
        topics=_topics(items["topics"], topics) if "topics" in items else (),
    )
    if action is Action.JOIN:
        for member in _numbered_members(items["member"], topics):
            if member.id in members:
                items["member"].fail(f"member {member.id!r} exists already; use another id")
            members[member.id] = None
            yield replace(event, at=event.at + member.start_at, member=member.id, new_member=member)
    elif "member" in items:
        for name in _matching(items["member"], members):
            yield replace(event, member=name)
    elif action is Action.GROW:
        topic = _known(items["topic"], topics, "topic")
        count = items["partitions"].integer(topics[topic].partitions, _MAX_PARTITIONS)
        yield replace(event, topic=topic, partitions=count)
    else:
        yield event


def _is_pattern(node: ConfigNode) -> bool:
    return isinstance(node.value, str) and "*" in node.value


def _matching(node: ConfigNode, members: Mapping[str, None]) -> list[str]:
    if not _is_pattern(node):
        return [_known(node, members, "member")]
    names = [name for name in members if fnmatchcase(name, node.text())]
    if not names:
        node.fail(f"no member matches {node.text()!r}; members: {format_choices(members)}")
    return names


def _policies(node: ConfigNode) -> tuple[str, ...]:
    elements: Sequence[ConfigNode] = node.elements() if isinstance(node.value, list) else [node]
    if not elements:
        node.fail("at least one policy is required")
    return tuple(map(_policy, elements))


def _policy(node: ConfigNode) -> str:
    name = node.text()
    if client_libraries.is_library_assignor(name):
        return str(client_libraries.parse_library_assignor(name))
    return _known(node, POLICIES, "policy")


def _settings(node: ConfigNode, default: _T, parse: Callable[[ConfigNode], int]) -> _T:
    items = node.only(*(field.name for field in fields(default)))
    return replace(default, **{key: parse(value) for key, value in items.items()})


def _client_settings(node: ConfigNode) -> Settings:
    settings = _settings(node, Settings(), _duration)
    if not 0 < settings.heartbeat < min(settings.session, settings.max_poll):
        node.fail(
            f"heartbeat must be above 0 and below session and max_poll, got {settings.heartbeat} ms"
        )
    for name in ("poll", "commit", "backoff"):
        if getattr(settings, name) == 0:
            node.fail(f"{name} must be above 0 ms, got 0 ms")
    return settings


def _broker_value(node: ConfigNode) -> int:
    return node.integer(1) if node.path.endswith("max_size") else _duration(node)


def _optional_duration(items: Mapping[str, ConfigNode], key: str) -> int:
    return _duration(items[key]) if key in items else 0


def _duration(node: ConfigNode) -> int:
    if node.value == 0 and not isinstance(node.value, bool):
        return 0
    match = _DURATION.fullmatch(node.value) if isinstance(node.value, str) else None
    if match is None:
        node.fail(f"expected a time such as 500ms, 30s or 5m, got {node.value!r}")
    return int(match[1]) * _UNITS[match[2]]


_TEXTS = files(__package__).joinpath("built_in_scripts.yaml").read_text(encoding="utf-8")
BUILT_IN_SCRIPTS = dict(re.findall(r"^--- # (.+)\n((?:(?!---).*\n)+)", _TEXTS, re.MULTILINE))
"""Texts of built-in scripts by name."""


def load_script(script: str) -> Script:
    """Read a script file, or load a built-in script by name."""
    if script in BUILT_IN_SCRIPTS:
        return parse_script(BUILT_IN_SCRIPTS[script], f"{script}.yaml")
    file = Path(script)
    if not file.exists() and "/" not in script and not file.suffix:
        known = format_choices(BUILT_IN_SCRIPTS)
        raise InputError(
            f"{script!r} is neither a file nor a built-in script; built-in scripts: {known}"
        )
    return parse_script(read_text(file), script)
