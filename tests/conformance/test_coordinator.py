"""Simulated coordinator compared with a real broker and Java consumers.

Each event sequence runs on a real cluster, one step at a time, and then in the simulation with the
same member and topic ids. After every step, generation (or epoch), state, members and their
partitions must be equal. Timing is not compared.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest

from kassay.experiments.simulation import script as scripts
from kassay.experiments.simulation.assignor_policies import POLICIES
from kassay.experiments.simulation.run_simulation import Simulation
from kassay.reference.coordinator.runtime import CoordinatorConfig
from tests.conformance.admin import Administrator, cluster_with_topics
from tests.conformance.broker import KafkaCluster
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

pytestmark = [pytest.mark.kafka, pytest.mark.coordinator]

TOPICS = {"orders": 7, "payments": 4, "clicks": 11}
SESSION = 8_000
STEP_INTERVAL = 60_000
"""Virtual time between two steps in ms, longer than all timeouts."""

_BROKER = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.session.timeout.ms": str(SESSION),
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One event of one client."""

    action: str
    client: str
    topics: tuple[str, ...] = ()
    static: bool = False


def _join(client: str, *topics: str, static: bool = False) -> PlannedStep:
    return PlannedStep(action="join", client=client, topics=topics or ("orders",), static=static)


def _step(action: str, client: str, *topics: str) -> PlannedStep:
    return PlannedStep(action=action, client=client, topics=topics)


EVENT_SEQUENCES: Mapping[str, tuple[PlannedStep, ...]] = {
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
        PlannedStep(action="join killable", client="c", topics=("orders",)),
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
class ObservedRun:
    """Generation, state and partitions per client after every step; member ids per client."""

    states: list[tuple[int, str, dict[str, tuple[tuple[str, int], ...]]]] = field(
        default_factory=list
    )
    ids: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[KafkaCluster, Administrator]]:
    with cluster_with_topics(TOPICS, _BROKER) as running:
        yield running


def _play_on_cluster(
    cluster: tuple[KafkaCluster, Administrator],
    name: str,
    assignor: str,
    steps: tuple[PlannedStep, ...],
) -> ObservedRun:
    running, admin = cluster
    live, run = RunningGroup(name, running.bootstrap, admin, TOPICS), ObservedRun()
    profiles: dict[str, Profile] = {}
    try:
        for step in steps:
            _apply(live, step, profiles, assignor)
            view = live.await_stable()
            for client, member in sorted(view.members.items()):
                if member.id not in run.ids[client]:
                    run.ids[client].append(member.id)
            run.states.append(
                (
                    live.generation if view.epoch is None else view.epoch,
                    view.state,
                    {c: tuple(sorted(m.assigned)) for c, m in sorted(view.members.items())},
                )
            )
    finally:
        live.close()
    return run


def _apply(
    live: RunningGroup, step: PlannedStep, profiles: dict[str, Profile], assignor: str
) -> None:
    if step.action in ("join", "join killable"):
        profile = profiles[step.client] = Profile(
            client=step.client,
            topics=step.topics,
            assignor=assignor,
            instance=step.client if step.static else None,
            session_millis=SESSION,
        )
        (live.join if step.action == "join" else live.join_killable)(profile)
    elif step.action == "leave":
        live.leave(step.client)
    elif step.action == "crash":
        live.kill(step.client)
    elif step.action == "restart":
        live.running[step.client].abandon()
        live.join(profiles[step.client])
    else:
        live.subscribe(step.client, *step.topics)


def _script(
    cluster: tuple[KafkaCluster, Administrator], steps: tuple[PlannedStep, ...]
) -> scripts.Script:
    known = cluster[1].topics(*TOPICS)
    events = []
    for number, step in enumerate(steps):
        action = (
            scripts.Action.JOIN if step.action == "join killable" else scripts.Action(step.action)
        )
        event = scripts.ScriptEvent(
            at=number * STEP_INTERVAL, action=action, member=step.client, topics=step.topics
        )
        if action is scripts.Action.JOIN:
            plan = scripts.MemberPlan(id=step.client, topics=step.topics, static=step.static)
            event = replace(event, new_member=plan)
        events.append(replace(event, duration=500) if action is scripts.Action.RESTART else event)
    return scripts.Script(
        name="conformance",
        topics=tuple(
            scripts.TopicPlan(name=name, partitions=count, id=known[name].id)
            for name, count in TOPICS.items()
        ),
        members=(),
        events=tuple(events),
        until=len(steps) * STEP_INTERVAL,
        settings=scripts.Settings(session=SESSION, heartbeat=200, poll=100),
        broker=CoordinatorConfig(
            initial_rebalance_delay=0,
            assignment_interval=0,
            heartbeat_interval=500,
            session_timeout=SESSION,
        ),
    )


def _play_in_simulation(
    script: scripts.Script, assignor: str, ids: Mapping[str, deque[str]]
) -> ObservedRun:
    run = ObservedRun()
    simulation = Simulation(
        script, POLICIES[assignor], new_id=lambda client, _: ids[client].popleft()
    )
    for number in range(len(script.events)):
        simulation.clock.run((number + 1) * STEP_INTERVAL - 1)
        coordinator = simulation.broker.classic or simulation.broker.consumer
        members = set() if coordinator is None else set(coordinator.group.members)
        consumers = sorted(simulation.consumers.items())
        run.states.append(
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
    return run


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize("sequence", EVENT_SEQUENCES)
def test_simulation_agrees_with_the_cluster(
    cluster: tuple[KafkaCluster, Administrator], sequence: str, assignor: str
) -> None:
    steps = EVENT_SEQUENCES[sequence]
    real = _play_on_cluster(cluster, f"{sequence}/{assignor}", assignor, steps)
    simulated = _play_in_simulation(_script(cluster, steps), assignor, real.ids)
    for step, expected, actual in zip(steps, real.states, simulated.states, strict=True):
        assert actual == expected, f"after {step.action} {step.client}"
