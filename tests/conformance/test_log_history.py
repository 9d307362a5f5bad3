"""History in the logs of a real broker and of real Java clients, compared with the events.

A group has its own events: joins, leaves, a client that flaps, and a restart of a static member.
The environment variable `REBALANCES` sets the number of flaps.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from kassay.experiments.history.log_messages import client_of
from kassay.experiments.history.log_rebalances import LogRebalance
from kassay.experiments.history.log_summary import summarise_logs
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

pytestmark = pytest.mark.kafka

FLAPS = max(1, int(os.environ.get("REBALANCES", "24")) // 8)
TOPICS = {"a.orders": 7, "b.payments": 4}
ASSIGNORS = ("range", "cooperative-sticky", "uniform")
SETTINGS = {"group.consumer.assignment.interval.ms": "0", "group.initial.rebalance.delay.ms": "0"}
# Double quotes keep the blank in the option; slf4j-simple writes to standard error.
_LAYOUT = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true "
    '"-Dorg.slf4j.simpleLogger.dateTimeFormat=[yyyy-MM-dd HH:mm:ss,SSS]"'
)


@dataclass(frozen=True)
class Event:
    """An event, and the generation of the group after it."""

    kind: str
    client: str
    generation: int


@dataclass(frozen=True)
class Played:
    """Events of each group, and the history in the log of the broker."""

    events: dict[str, list[Event]]
    history: dict[str, dict[int, LogRebalance]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    log = tmp_path_factory.mktemp("log") / "server.log"
    events: dict[str, list[Event]] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAVA_TOOL_OPTIONS", _LAYOUT)
        with (
            running_cluster(heap_mib=384, settings=SETTINGS) as cluster,
            administrator(cluster.bootstrap) as admin,
        ):
            admin.create_topics(TOPICS)
            for name in ASSIGNORS:
                live = RunningGroup(name, cluster.bootstrap, admin, TOPICS)
                try:
                    events[name] = _play(live)
                finally:
                    live.close()
            log.write_bytes((cluster.directory / "node-1.log").read_bytes())
    return Played(events, _history(log))


def _play(live: RunningGroup) -> list[Event]:
    events: list[Event] = []

    def profile(client: str, instance: str | None = None) -> Profile:
        return Profile(client=client, topics=tuple(TOPICS), assignor=live.name, instance=instance)

    def record(kind: str, client: str) -> None:
        live.await_stable()
        events.append(Event(kind, client, live.generation))

    for client in ("c0", "c1"):
        live.join(profile(client))
        record("join", client)
    for _ in range(FLAPS):
        live.leave("c1")
        record("leave", "c1")
        live.join(profile("c1"))
        record("join", "c1")
    live.join(profile("s1", "static-1"))
    record("join", "static-1")
    live.stop("s1")
    live.join(profile("s1", "static-1"))
    record("restart", "static-1")
    return events


def _history(log: Path) -> dict[str, dict[int, LogRebalance]]:
    found: dict[str, dict[int, LogRebalance]] = {}

    def add(one: LogRebalance) -> None:
        assert one.number is not None
        found.setdefault(one.group, {})[one.number] = one

    summarise_logs([log], on_rebalance=add)
    return found


@pytest.mark.parametrize("group", ASSIGNORS)
def test_the_log_has_each_event_with_its_member(played: Played, group: str) -> None:
    found, previous = played.history[group], 0
    for event in played.events[group]:
        if event.kind == "restart":
            assert event.generation == previous
            continue
        first = found[event.generation if group == "uniform" else previous + 1]
        changed = first.joined if event.kind == "join" else first.left
        assert len(changed) == 1
        assert len(first.joined) + len(first.left) + len(first.expired) == 1
        assert group == "uniform" or client_of(changed[0]) == event.client
        causes = ("join", "restart") if event.kind == "join" else ("leave",)
        assert str(first.cause) in causes
        previous = event.generation


@pytest.mark.parametrize("group", ASSIGNORS)
def test_the_log_has_all_generations(played: Played, group: str) -> None:
    found, last = played.history[group], played.events[group][-1].generation
    first = min(found)
    assert set(range(first, last + 1)) <= set(found)
    assert first == (2 if group == "uniform" else 1)


@pytest.mark.parametrize("group", ["range", "cooperative-sticky"])
def test_a_flapping_client_has_restarted(played: Played, group: str) -> None:
    restarts = [one for one in played.history[group].values() if str(one.cause) == "restart"]
    assert [client_of(one.member or "") for one in restarts] == ["c1"] * FLAPS
    assert all(one.not_stable_ms > 0 for one in restarts)
