"""Running groups of several clients on one cluster, with what the clients report.

A second user has no permissions until a test grants them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import confluent_kafka

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.model.group import Group
from tests.conformance.admin import Administrator, administrator
from tests.conformance.broker import running_cluster
from tests.conformance.cluster_with_groups import JAAS
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)

TOPICS = {"orders": 6, "lowrate": 6, "billing.eu": 3}
PATTERN = "(orders|low.*)"
SECONDS = 60.0
_COORDINATOR_MOVES = {
    confluent_kafka.KafkaError.COORDINATOR_NOT_AVAILABLE,
    confluent_kafka.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    confluent_kafka.KafkaError.NOT_COORDINATOR,
}
READER = "reader"
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
    login: str  # listener that requires a password
    admin: Administrator
    groups: dict[str, dict[str, Client]] = field(default_factory=dict)

    def imported(self) -> dict[str, Group]:
        live = import_live(LiveCluster(self.bootstrap, timeout=20), (), ImportOptions())
        return {one.id: one.group for one in live if one.group is not None and one.id is not None}

    def imported_when_stable(self) -> dict[str, Group]:
        """Import all groups, and repeat this while a group of a busy machine rebalances."""
        for _ in range(10):
            groups = self.imported()
            if not any(str(one.status.state).endswith("Rebalance") for one in groups.values()):
                break
            _await_agreement(self, without="reconciling")
        return groups


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


def _simple(site: Site, name: str) -> None:
    """Commit an offset from a consumer that calls ``assign()``."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": site.bootstrap, "group.id": name})
    position = confluent_kafka.TopicPartition("orders", 0, 0)
    consumer.assign([position])
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            consumer.commit(offsets=[position], asynchronous=False)
            break
        except confluent_kafka.KafkaException as error:
            # The coordinator of a new group is still loading, or moves, on a busy machine.
            if error.args[0].code() not in _COORDINATOR_MOVES or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    consumer.close()
    site.groups[name] = {}


def _await_agreement(site: Site, *, without: str = "") -> None:
    """Wait until the brokers report the partitions that the clients report."""
    for name, clients in site.groups.items():
        if clients:  # the coordinator may not know the group of new clients yet
            site.admin.await_group(name, lambda view: bool(view.members))
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


@contextmanager
def running_site() -> Iterator[Site]:
    """Start the cluster and its groups, and wait until brokers and clients agree."""
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f"{JAAS} user_{READER}={READER};",
    }
    with ExitStack() as stack:
        cluster = stack.enter_context(
            running_cluster(
                racks=("left", "right"),
                heap_mib=384,
                settings=settings,
                listeners={"LOGIN": "SASL_PLAINTEXT"},
            )
        )
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(TOPICS)
        site = Site(cluster.bootstrap, cluster.listeners["LOGIN"], admin)
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
