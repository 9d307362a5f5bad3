"""Scripts as people write them, to `Script`; every error names file, line and field."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import TypeVar

from kassay.experiments.simulation.policies import POLICIES
from kassay.experiments.simulation.script import (
    Action,
    MemberPlan,
    Script,
    ScriptEvent,
    Settings,
    TopicPlan,
)
from kassay.reference.coordinator.config import CoordinatorConfig
from kassay.reference.documents.config_nodes import ConfigNode, format_choices, read_nodes

_DURATION = re.compile(r"(\d+)(ms|s|m|h)")
_MOST_PARTITIONS, _MOST_MEMBERS, _MOST_TIMES = 1_000_000, 10_000, 100_000
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_T = TypeVar("_T", Settings, CoordinatorConfig)

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
_SETTINGS = tuple(f.name for f in fields(Settings))
_UNTIL = 300_000
_BROKER = tuple(f.name for f in fields(CoordinatorConfig))


def parse_script(text: str, name: str) -> Script:
    """Read a script.

    Parameters
    ----------
    text
        YAML or JSON.
    name
        Name of the file, for errors.

    Raises
    ------
    InvalidGroupError
        If it is not a script; the message begins with file and line.

    Examples
    --------
    >>> script = parse_script(
    ...     '''
    ... topics: {orders: 2}
    ... members: [{id: c0, topics: [orders]}]
    ... events:
    ...   - {at: 30s, do: leave, member: c0}
    ... ''',
    ...     "example.yaml",
    ... )
    >>> script.events[0].at, str(script.events[0].act)
    (30000, 'leave')
    >>> parse_script("topics: {orders: 2}", "bad.yaml")
    Traceback (most recent call last):
    kassay...InputError: bad.yaml:1: the script: 'members' is missing
    """
    root = read_nodes(text, name)
    keys = ("name", "policies", "topics", "members", "events", "until", "seed", "settings")
    items = root.only(*keys, "broker")
    for needed in ("topics", "members"):
        if needed not in items:
            root.fail(f"{needed!r} is missing")
    topics = tuple(_topic(key, place) for key, place in items["topics"].items().items())
    known = {topic.name: topic for topic in topics}
    members = tuple(_members(items["members"], known))
    settings = _knobs(items.get("settings"), Settings(), _SETTINGS, _duration)
    script = Script(
        name=items["name"].text() if "name" in items else name,
        topics=topics,
        members=members,
        settings=settings,
        broker=_knobs(items.get("broker"), CoordinatorConfig(), _BROKER, _broker_value),
        until=_duration(items["until"]) if "until" in items else _UNTIL,
        seed=items["seed"].integer() if "seed" in items else 0,
    )
    if "policies" in items:
        script = replace(script, policies=_policies(items["policies"]))
    if "settings" in items:
        _check_settings(items["settings"], settings)
    if "events" in items:
        script = replace(script, events=tuple(_events(items["events"], script, known)))
    return script


def _topic(name: str, place: ConfigNode) -> TopicPlan:
    if not isinstance(place.value, dict):
        return TopicPlan(name=name, partitions=place.integer(most=_MOST_PARTITIONS))
    items = place.only("partitions", "rate")
    if "partitions" not in items:
        place.fail("'partitions' is missing")
    rate = items["rate"].integer() if "rate" in items else 0
    return TopicPlan(
        name=name, partitions=items["partitions"].integer(most=_MOST_PARTITIONS), rate=rate
    )


def _members(place: ConfigNode, known: dict[str, TopicPlan]) -> Iterable[MemberPlan]:
    seen: dict[str, None] = {}
    for element in place.elements():
        for member in _expanded(element, known):
            if member.id in seen:
                element.fail(f"member {member.id!r} is listed twice")
            seen[member.id] = None
            yield member


def _expanded(place: ConfigNode, known: dict[str, TopicPlan]) -> Iterable[MemberPlan]:
    """Read one entry; with ``count`` it stands for that many members, numbered from 0."""
    keys = ("id", "count", "topics", "static", "rack", "rate", "assigning", "starts", "every")
    items = place.only(*keys)
    for needed in ("id", "topics"):
        if needed not in items:
            place.fail(f"{needed!r} is missing")
    plan = MemberPlan(
        id=items["id"].text(),
        topics=_topics(items["topics"], known),
        static=items["static"].flag() if "static" in items else False,
        rack=items["rack"].text() if "rack" in items else None,
        rate=items["rate"].integer(1) if "rate" in items else None,
        assigning=_duration(items["assigning"]) if "assigning" in items else 0,
        starts=_duration(items["starts"]) if "starts" in items else 0,
    )
    every = _duration(items["every"]) if "every" in items else 0
    if "count" not in items:
        if every:
            items["every"].fail("goes with 'count' only")
        return (plan,)
    count = items["count"].integer(1, _MOST_MEMBERS)
    width = len(str(count - 1))
    return tuple(
        replace(plan, id=f"{plan.id}{n:0{width}d}", starts=plan.starts + n * every)
        for n in range(count)
    )


def _topics(place: ConfigNode, known: dict[str, TopicPlan]) -> tuple[str, ...]:
    names = []
    for element in place.elements():
        if element.text() not in known:
            element.fail(
                f"no topic is called {element.text()!r}, there are {format_choices(known)}"
            )
        if element.text() in names:
            element.fail(f"topic {element.text()!r} is subscribed to twice")
        names.append(element.text())
    return tuple(names)


def _events(
    place: ConfigNode, script: Script, known: dict[str, TopicPlan]
) -> Iterable[ScriptEvent]:
    members = {member.id: None for member in script.members}
    for element in place.elements():
        items = element.items()
        for needed in ("at", "do"):
            if needed not in items:
                element.fail(f"{needed!r} is missing")
        act = _act(items["do"])
        wanted = _EVENT_KEYS[act]
        element.only("at", "do", "every", "times", *wanted)
        for needed in wanted:
            if needed not in items:
                element.fail(f"{needed!r} is missing, {act} needs it")
        event = _event(act, items, known, members)
        if ("every" in items) != ("times" in items):
            element.fail("'every' and 'times' go together")
        every = _duration(items["every"]) if "every" in items else 0
        times = items["times"].integer(1, _MOST_TIMES) if "times" in items else 1
        yield from (replace(event, at=event.at + n * every) for n in range(times))


def _event(
    act: Action, items: dict[str, ConfigNode], known: dict[str, TopicPlan], members: dict[str, None]
) -> ScriptEvent:
    event = ScriptEvent(
        at=_duration(items["at"]),
        act=act,
        lasts=_duration(items["for"]) if "for" in items else 0,
        topics=_topics(items["topics"], known) if "topics" in items else (),
    )
    if act is Action.JOIN:
        (joins,) = _expanded(items["member"], known)
        if joins.id in members:
            items["member"].fail(f"member {joins.id!r} is there already")
        members[joins.id] = None
        return replace(event, member=joins.id, joins=joins)
    if "member" in items:
        member = items["member"].text()
        if member not in members:
            items["member"].fail(
                f"no member is called {member!r}, there are {format_choices(members)}"
            )
        return replace(event, member=member)
    if act is Action.GROW:
        topic = items["topic"].text()
        if topic not in known:
            items["topic"].fail(f"no topic is called {topic!r}, there are {format_choices(known)}")
        count = items["partitions"].integer(known[topic].partitions, _MOST_PARTITIONS)
        return replace(event, topic=topic, partitions=count)
    return event


def _act(place: ConfigNode) -> Action:
    acts = [act.value for act in Action]
    if place.text() not in acts:
        place.fail(f"expected one of {', '.join(map(repr, acts))}, got {place.text()!r}")
    return Action(place.text())


def _policies(place: ConfigNode) -> tuple[str, ...]:
    elements: Sequence[ConfigNode] = place.elements() if isinstance(place.value, list) else [place]
    for element in elements:
        if element.text() not in POLICIES:
            element.fail(
                f"no policy is called {element.text()!r}, there are {format_choices(POLICIES)}"
            )
    if not elements:
        place.fail("at least one policy is needed")
    return tuple(element.text() for element in elements)


def _knobs(
    place: ConfigNode | None, default: _T, names: Sequence[str], read: Callable[[ConfigNode], int]
) -> _T:
    if place is None:
        return default
    return replace(default, **{key: read(value) for key, value in place.only(*names).items()})


def _check_settings(place: ConfigNode, settings: Settings) -> None:
    if not 0 < settings.heartbeat < min(settings.session, settings.max_poll):
        place.fail(
            f"heartbeat must be above 0 and below session and max_poll, got {settings.heartbeat} ms"
        )
    for name in ("poll", "commit", "backoff"):
        if getattr(settings, name) == 0:
            place.fail(f"{name} must be above 0 ms")


def _broker_value(place: ConfigNode) -> int:
    return place.integer(1) if place.path.endswith("max_size") else _duration(place)


def _duration(place: ConfigNode) -> int:
    """Read a time, as ``30s``, in milliseconds."""
    if place.value == 0 and not isinstance(place.value, bool):
        return 0
    match = _DURATION.fullmatch(place.value) if isinstance(place.value, str) else None
    if match is None:
        place.fail(f"expected a time such as 500ms, 30s or 5m, got {place.value!r}")
    return int(match[1]) * _UNITS[match[2]]
