"""Random scripts for property tests and benchmarks."""

from __future__ import annotations

import random
from dataclasses import replace

from kassay.experiments.simulation import script as scripts
from kassay.reference.coordinator.runtime import CoordinatorConfig

QUIET = 120_000
"""Length in ms of the last part of a script, without events: longer than all timeouts."""


def random_script(seed: int, *, events: int = 12, quiet: int = QUIET) -> scripts.Script:
    """Create a script with a few members and up to three topics."""
    rng = random.Random(seed)
    topics = tuple(
        scripts.TopicPlan(name=f"t{n}", partitions=rng.randint(1, 9), rate=rng.choice((0, 0, 20)))
        for n in range(rng.randint(1, 3))
    )
    names = [topic.name for topic in topics]
    members = [_member(rng, f"m{n}", names) for n in range(rng.randint(1, 5))]
    script_events: list[scripts.ScriptEvent] = []
    at = 0
    for number in range(rng.randint(1, events)):
        at += rng.choice((0, 1, 50, 700, 3_000, 9_000, 20_000))
        script_events.append(_event(rng, at, number, members, topics))
    if any(event.action is scripts.Action.GROW for event in script_events):
        # A static leader that is down when a topic grows never detects it, in Kafka too.
        members = [replace(member, static=False) for member in members]
        script_events = [
            event
            if event.new_member is None
            else replace(event, new_member=replace(event.new_member, static=False))
            for event in script_events
        ]
    return scripts.Script(
        name=f"random {seed}",
        topics=topics,
        members=tuple(m for m in members if not m.id.startswith("late")),
        events=tuple(script_events),
        until=at + quiet,
        seed=seed,
        settings=scripts.Settings(
            session=rng.choice((6_000, 10_000)),
            heartbeat=rng.choice((500, 1_900)),
            max_poll=rng.choice((8_000, 20_000)),
            latency=rng.choice((0, 5, 40)),
            jitter=rng.choice((0, 30)),
            poll=rng.choice((100, 700)),
            metadata=5_000,
        ),
        broker=CoordinatorConfig(
            initial_rebalance_delay=rng.choice((0, 3_000)),
            heartbeat_interval=rng.choice((700, 2_000)),
            session_timeout=8_000,
            assignment_interval=rng.choice((0, 1_000)),
        ),
    )


def _member(rng: random.Random, name: str, topics: list[str]) -> scripts.MemberPlan:
    return scripts.MemberPlan(
        id=name,
        topics=tuple(rng.sample(topics, rng.randint(1, len(topics)))),
        static=rng.random() < 0.3,
        rate=rng.choice((None, 100)),
        assignment_time=rng.choice((0, 0, 0, 2_500)),
        start_at=rng.choice((0, 0, 10, 2_000)),
    )


def _event(
    rng: random.Random,
    at: int,
    number: int,
    members: list[scripts.MemberPlan],
    topics: tuple[scripts.TopicPlan, ...],
) -> scripts.ScriptEvent:
    action = rng.choice(tuple(scripts.Action))
    member = rng.choice(members).id
    duration = rng.choice((100, 2_000, 9_000, 25_000))
    if action is scripts.Action.JOIN:
        plan = _member(rng, f"late{number}", [topic.name for topic in topics])
        members.append(plan)
        return scripts.ScriptEvent(at=at, action=action, member=plan.id, new_member=plan)
    if action is scripts.Action.GROW:
        topic = rng.choice(topics)
        partitions = topic.partitions + rng.randint(0, 5)
        return scripts.ScriptEvent(at=at, action=action, topic=topic.name, partitions=partitions)
    if action is scripts.Action.SUBSCRIBE:
        chosen = rng.sample(topics, rng.randint(1, len(topics)))
        return scripts.ScriptEvent(
            at=at, action=action, member=member, topics=tuple(t.name for t in chosen)
        )
    return scripts.ScriptEvent(at=at, action=action, member=member, duration=duration)
