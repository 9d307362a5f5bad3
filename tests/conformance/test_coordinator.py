"""A real broker and real consumers go through the same generations as the simulation.

Each scenario is played twice: on a real cluster, one step at a time, each awaited until
the group has settled; then in the simulation, with the member ids and topic ids that the
cluster gave out. After every step, generation (or epoch), state, members and what each of
them has must be the same. Only the timing is left out.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest

from kassay.experiments.simulation.policies import POLICIES
from kassay.experiments.simulation.script import (
    Action,
    MemberPlan,
    Script,
    ScriptEvent,
    Settings,
    TopicPlan,
)
from kassay.experiments.simulation.simulation import Simulation
from kassay.reference.coordinator.config import CoordinatorConfig
from tests.conformance.admin import Administrator, administrator
from tests.conformance.broker import KafkaCluster, running_cluster
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

pytestmark = [pytest.mark.kafka, pytest.mark.coordinator, pytest.mark.slow]

TOPICS = {"orders": 7, "payments": 4, "clicks": 11}
SESSION = 8_000
STEP = 60_000
"""Virtual time between two steps, in ms: more than any time-out."""

_BROKER = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.session.timeout.ms": str(SESSION),
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One thing that happens to one client."""

    act: str
    client: str
    topics: tuple[str, ...] = ()
    static: bool = False


def _join(client: str, *topics: str, static: bool = False) -> PlannedStep:
    return PlannedStep(act="join", client=client, topics=topics or ("orders",), static=static)


def _step(act: str, client: str, *topics: str) -> PlannedStep:
    return PlannedStep(act=act, client=client, topics=topics)


SCENARIOS: Mapping[str, tuple[PlannedStep, ...]] = {
    "scale out and in": (
        _join("a"),
        _join("b"),
        _join("c"),
        _step("leave", "a"),
        _step("leave", "c"),
    ),
    "several topics": (
        _join("a", "orders", "payments", "clicks"),
        _join("b", "orders", "payments", "clicks"),
        _join("c", "orders", "payments", "clicks"),
        _step("leave", "b"),
        _join("d", "orders", "payments", "clicks"),
    ),
    "deploy with changed subscriptions": (
        _join("a", "orders"),
        _join("b", "orders"),
        _step("subscribe", "a", "orders", "payments"),
        _step("subscribe", "b", "orders", "payments"),
        _step("subscribe", "a", "payments"),
    ),
    "crash": (
        _join("a"),
        _join("b"),
        PlannedStep(act="join doomed", client="c", topics=("orders",)),
        _step("crash", "c"),
        _join("d"),
    ),
    "static members": (
        _join("a", static=True),
        _join("b", static=True),
        _join("c"),
        _step("restart", "b"),
        _step("restart", "a"),
        _step("leave", "c"),
    ),
}
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "server-range")


@dataclass(slots=True)
class Course:
    """What was seen after every step: generation, state, and what each client has."""

    seen: list[tuple[int, str, dict[str, tuple[tuple[str, int], ...]]]] = field(
        default_factory=list
    )
    ids: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[KafkaCluster, Administrator]]:
    with ExitStack() as stack:
        running = stack.enter_context(running_cluster(heap_mib=384, settings=_BROKER))
        admin = stack.enter_context(administrator(running.bootstrap))
        admin.create_topics(TOPICS)
        yield running, admin


def _play_really(
    cluster: tuple[KafkaCluster, Administrator],
    name: str,
    assignor: str,
    steps: tuple[PlannedStep, ...],
) -> Course:
    running, admin = cluster
    live, course = RunningGroup(name, running.bootstrap, admin, TOPICS), Course()
    profiles: dict[str, Profile] = {}
    try:
        for step in steps:
            _happen(live, step, profiles, assignor)
            view = live.await_stable()
            for client, member in sorted(view.members.items()):
                if member.id not in course.ids[client]:
                    course.ids[client].append(member.id)
            course.seen.append(
                (
                    live.generation if view.epoch is None else view.epoch,
                    view.state,
                    {c: tuple(sorted(m.assigned)) for c, m in sorted(view.members.items())},
                )
            )
    finally:
        live.close()
    return course


def _happen(
    live: RunningGroup, step: PlannedStep, profiles: dict[str, Profile], assignor: str
) -> None:
    if step.act in ("join", "join doomed"):
        profile = profiles[step.client] = Profile(
            client=step.client,
            topics=step.topics,
            assignor=assignor,
            instance=step.client if step.static else None,
            session_millis=SESSION,
        )
        (live.join if step.act == "join" else live.join_killable)(profile)
    elif step.act == "leave":
        live.leave(step.client)
    elif step.act == "crash":
        live.kill(step.client)
    elif step.act == "restart":
        live.running[step.client].abandon()
        live.join(profiles[step.client])
    else:
        live.subscribe(step.client, *step.topics)


def _script(cluster: tuple[KafkaCluster, Administrator], steps: tuple[PlannedStep, ...]) -> Script:
    known = cluster[1].topics(*TOPICS)
    events = []
    for number, step in enumerate(steps):
        action = Action.JOIN if step.act == "join doomed" else Action(step.act)
        event = ScriptEvent(at=number * STEP, action=action, member=step.client, topics=step.topics)
        if action is Action.JOIN:
            plan = MemberPlan(id=step.client, topics=step.topics, static=step.static)
            event = replace(event, new_member=plan)
        events.append(replace(event, duration=500) if action is Action.RESTART else event)
    return Script(
        name="conformance",
        topics=tuple(
            TopicPlan(name=name, partitions=count, id=known[name].id)
            for name, count in TOPICS.items()
        ),
        members=(),
        events=tuple(events),
        until=len(steps) * STEP,
        settings=Settings(session=SESSION, heartbeat=200, poll=100),
        broker=CoordinatorConfig(
            initial_rebalance_delay=0,
            assignment_interval=0,
            heartbeat_interval=500,
            session_timeout=SESSION,
        ),
    )


def _play_in_simulation(script: Script, assignor: str, ids: Mapping[str, deque[str]]) -> Course:
    course = Course()
    simulation = Simulation(script, POLICIES[assignor], new_id=lambda client: ids[client].popleft())
    for number in range(len(script.events)):
        simulation.clock.run((number + 1) * STEP - 1)
        members = set(simulation.broker.member_ids)
        consumers = sorted(simulation.consumers.items())
        course.seen.append(
            (
                simulation.broker.generation,
                simulation.broker.state,
                {
                    client: tuple(sorted(tuple(tp) for tp in consumer.owned))
                    for client, consumer in consumers
                    if consumer.member_id in members
                },
            )
        )
    return course


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_simulation_goes_the_way_of_the_real_group(
    cluster: tuple[KafkaCluster, Administrator], scenario: str, assignor: str
) -> None:
    steps = SCENARIOS[scenario]
    real = _play_really(cluster, f"{scenario}/{assignor}", assignor, steps)
    simulated = _play_in_simulation(_script(cluster, steps), assignor, real.ids)
    for step, was, shall in zip(steps, real.seen, simulated.seen, strict=True):
        assert was == shall, f"after {step.act} {step.client}: {was} is real, {shall} simulated"
