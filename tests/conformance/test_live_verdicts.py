"""Import, survey and plan of running groups, compared with what their clients report.

The groups have consumers of the Java client, of librdkafka and of kafka-python, under both
protocols.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Self

import confluent_kafka
import pytest

from kassay.experiments.cli import main
from kassay.experiments.planning.group_plan.plan import plan
from kassay.experiments.planning.plan_output.plan_sentences import verdict
from kassay.experiments.sources.import_options import ImportOptions
from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import Protocol
from kassay.solver.limits import SearchLimits
from tests.conformance.admin import Administrator, administrator
from tests.conformance.broker import running_cluster
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

pytestmark = pytest.mark.kafka

TOPICS = {"orders": 6, "lowrate": 6, "billing.eu": 3}
PATTERN = "(orders|low.*)"
SECONDS = 60.0
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Client:
    """A consumer as it describes itself."""

    topics: frozenset[str]
    partitions: Callable[[], frozenset[Partition]]
    rack: str | None = None
    instance: str | None = None


@dataclass(slots=True)
class Site:
    """Running groups: the clients of each group by client id."""

    bootstrap: str
    admin: Administrator
    groups: dict[str, dict[str, Client]] = field(default_factory=dict)

    def imported(self) -> dict[str, Group]:
        live = import_live(LiveCluster(self.bootstrap, timeout=20), (), ImportOptions())
        return {one.id: one.group for one in live if one.group is not None and one.id is not None}


def _java(stack: ExitStack, site: Site, name: str, *profiles: Profile) -> RunningGroup:
    group = RunningGroup(name, site.bootstrap, site.admin, TOPICS)
    stack.callback(group.close)
    group.join(*profiles)
    _register(site, group, *profiles)
    return group


def _register(site: Site, group: RunningGroup, *profiles: Profile) -> None:
    for profile in profiles:
        consumer = group.consumers[profile.client]
        resolved = {"orders", "lowrate"} if profile.topics[0].startswith("pattern:") else None
        site.groups.setdefault(group.name, {})[profile.client] = Client(
            frozenset(resolved or profile.topics),
            lambda consumer=consumer: consumer.membership.assigned,  # type: ignore[misc]
            profile.rack,
            profile.instance,
        )


def _profile(client: str, *topics: str, assignor: str = "uniform", **settings: str) -> Profile:
    return Profile(client=client, topics=topics, assignor=assignor, **settings)  # type: ignore[arg-type]


def _librdkafka(stack: ExitStack, site: Site, name: str, protocol: str) -> None:
    for number in range(2):
        client = f"{name}-{number}"
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": site.bootstrap,
                "group.id": name,
                "client.id": client,
                "group.protocol": protocol,
                "client.rack": "left",
            }
        )
        stack.callback(consumer.close)
        consumer.subscribe(["orders", "lowrate"])

        def partitions(consumer: confluent_kafka.Consumer = consumer) -> frozenset[Partition]:
            consumer.poll(0.1)
            return frozenset((tp.topic, tp.partition) for tp in consumer.assignment())

        site.groups.setdefault(name, {})[client] = Client(
            frozenset({"orders", "lowrate"}), partitions, rack="left"
        )


def _kafka_python(stack: ExitStack, site: Site, name: str) -> None:
    for number in range(2):
        client = f"{name}-{number}"
        consumer = stack.enter_context(_PollingConsumer(site.bootstrap, name, client))
        site.groups.setdefault(name, {})[client] = Client(
            frozenset({"orders"}), consumer.reported_partitions
        )


class _PollingConsumer(Thread):
    """Consumer of kafka-python that polls until the end of the test, so that it stays a member."""

    def __init__(self, bootstrap: str, group: str, client: str) -> None:
        super().__init__(daemon=True)
        self.consumer = kafka.KafkaConsumer(
            "orders", bootstrap_servers=bootstrap, group_id=group, client_id=client
        )
        self.ended = Event()
        self.partitions: frozenset[Partition] = frozenset()

    def run(self) -> None:
        while not self.ended.is_set():
            self.consumer.poll(100)
            assigned = self.consumer.assignment()
            self.partitions = frozenset((tp.topic, tp.partition) for tp in assigned)
        self.consumer.close(autocommit=False)

    def reported_partitions(self) -> frozenset[Partition]:
        return self.partitions

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.join(SECONDS)


def _simple(site: Site, name: str) -> None:
    """Commit an offset from a consumer that calls ``assign()``."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": site.bootstrap, "group.id": name})
    position = confluent_kafka.TopicPartition("orders", 0, 0)
    consumer.assign([position])
    consumer.commit(offsets=[position], asynchronous=False)
    consumer.close()
    site.groups[name] = {}


def _await_agreement(site: Site, *, without: str = "") -> None:
    """Wait until the brokers report the partitions that the clients report."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        reported = {
            name: {client: one.partitions() for client, one in clients.items()}
            for name, clients in site.groups.items()
            if clients and name != without
        }
        seen = {
            name: {client: one.assigned for client, one in site.admin.group(name).members.items()}
            for name in reported
        }
        if reported == seen and all(
            {topic for tps in of_group.values() for topic, _ in tps}
            >= set().union(*(one.topics for one in site.groups[name].values()))
            for name, of_group in reported.items()
        ):
            return
    raise TimeoutError(f"clients and brokers differ: {reported}, {seen}")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with ExitStack() as stack:
        cluster = stack.enter_context(
            running_cluster(racks=("left", "right"), heap_mib=384, settings=settings)
        )
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(TOPICS)
        site = Site(cluster.bootstrap, admin)
        both = ("orders", "lowrate")
        _java(stack, site, "two-topics", _profile("e1", *both), _profile("e2", *both))
        _java(
            stack, site, "mixed", _profile("x1", "billing.eu"), _profile("x2", "billing.eu", *both)
        )
        _java(stack, site, "pattern", _profile("p1", f"pattern:{PATTERN}"))
        _java(
            stack,
            site,
            "racks",
            _profile("r1", "orders", rack="left"),
            _profile("r2", "orders", rack="right"),
        )
        _java(stack, site, "static", _profile("s1", "orders", instance="seat-1"))
        _java(stack, site, "classic", _profile("c1", *both, assignor="range", rack="left"))
        half = _java(stack, site, "half-upgraded", _profile("h1", "orders", assignor="range"))
        _librdkafka(stack, site, "librdkafka-consumer", "consumer")
        _librdkafka(stack, site, "librdkafka-classic", "classic")
        _kafka_python(stack, site, "kafka-python")
        _simple(site, "simple")
        moving = _java(stack, site, "reconciling", _profile("m1", "orders"))
        left = _java(stack, site, "left", _profile("gone", "orders"))
        _await_agreement(site)
        left.leave("gone")
        left.await_state("Empty")
        site.groups["left"] = {}
        upgraded, second = _profile("h2", "orders", "lowrate"), _profile("m2", "orders")
        half.join(upgraded)
        _register(site, half, upgraded)
        _await_agreement(site)
        moving.freeze("m1")
        moving.join(second)
        moving.await_state("Reconciling")
        _register(site, moving, second)
        _await_agreement(site, without="reconciling")
        yield site


@pytest.fixture(scope="module")
def groups(site: Site) -> Mapping[str, Group]:
    return site.imported()


def test_members_are_as_the_clients_report_them(site: Site, groups: Mapping[str, Group]) -> None:
    assert sorted(groups) == sorted(site.groups)
    for name, clients in site.groups.items():
        members = {member.client.id: member for member in groups[name].members}
        assert {
            client: (frozenset(m.subscription), frozenset(m.owned), m.rack, m.instance_id)
            for client, m in members.items()
        } == {
            client: (one.topics, one.partitions(), one.rack, one.instance)
            for client, one in clients.items()
        }, name
        assert {member.assumed for member in members.values()} <= {()}, name


def test_states_and_protocols_are_named(groups: Mapping[str, Group]) -> None:
    states = {name: group.status.state for name, group in groups.items()}
    other = {"reconciling": "Reconciling", "left": "Empty", "simple": "Empty"}
    assert states == dict.fromkeys(groups, "Stable") | other
    assert groups["simple"].status.protocol is Protocol.SIMPLE
    assert groups["half-upgraded"].notes[-1] == "1 of 2 members still use the classic protocol"
    assert any(PATTERN in note for note in groups["pattern"].notes)


def test_plans_start_from_the_partitions_of_the_clients(
    site: Site, groups: Mapping[str, Group]
) -> None:
    for name, group in groups.items():
        result = plan(group, limits=SearchLimits(time=10))
        sizes = {len(one.partitions()) for one in site.groups[name].values()}
        text = verdict(result)
        assert result.current.makespan == max(sizes, default=0), name
        assert not text.startswith("If "), name
        if not group.members:
            assert "the group has no members" in text
        if name == "reconciling":
            assert "The group is reconciling" in text
            assert (result.movement, result.planned.makespan) == (3, 3)


def test_the_survey_contains_every_group(
    site: Site, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server = ("--bootstrap-server", site.bootstrap)
    with pytest.raises(SystemExit) as ended:
        main(["survey", *server, "--format", "jsonl", "-o", str(tmp_path), "--plans", "0"])
    assert ended.value.code == 0
    rows = {row["id"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert sorted(rows) == sorted(site.groups)
    assert {name: row["members"] for name, row in rows.items()} == {
        name: len(clients) for name, clients in site.groups.items()
    }
    assert rows["reconciling"]["target"] == {"makespan": 3, "moves": 3}
    assert {row["condition"] for row in rows.values()} == {None}
