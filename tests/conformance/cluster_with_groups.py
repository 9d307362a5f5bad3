"""Real cluster with a running group per assignor, and the output of its tools."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import ImportedGroup, import_groups
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.model.group import Group
from tests.conformance import jars
from tests.conformance.admin import Administrator, TopicView, administrator
from tests.conformance.broker import KafkaCluster, running_cluster
from tests.conformance.captures import capture_cluster
from tests.conformance.consumers import BROKER_ASSIGNORS, CLIENT_ASSIGNORS, Profile
from tests.conformance.running_group import RunningGroup

TOPICS = {"a.orders": 7, "b.payments": 4, "c.clicks": 11, "d.audit": 1}
EMPTY = "left-long-ago"
PASSWORD = 'pass"word; \\ of = some'
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
RACKS = {"left-c": "left", "right-s": "right"}


@dataclass(frozen=True, slots=True)
class ClusterWithGroups:
    """A cluster, a running group per assignor, and the output of its tools."""

    cluster: KafkaCluster
    admin: Administrator
    groups: Mapping[str, RunningGroup]
    topics: Mapping[str, TopicView]
    captures: Path
    authority: Path

    def client(self) -> LiveCluster:
        return LiveCluster(self.cluster.bootstrap, timeout=20)

    def live(self, options: ImportOptions) -> dict[str, Group]:
        return documents(import_live(self.client(), list(self.groups), options))

    def text(self, options: ImportOptions) -> dict[str, Group]:
        return documents(import_groups([self.captures], options))

    @property
    def subscriptions(self) -> dict[str, dict[str, tuple[str, ...]]]:
        return {name: dict(group.subscriptions) for name, group in self.groups.items()}


def documents(imported: Iterable[ImportedGroup]) -> dict[str, Group]:
    """Return the imported groups by id; none may be an error."""
    results = list(imported)
    assert [result.error for result in results if result.error] == []
    return {result.group.id: result.group for result in results if result.group and result.group.id}


@contextmanager
def running_cluster_with_groups(home: Path) -> Iterator[ClusterWithGroups]:
    """Start a cluster and its groups, and record the output of its tools in ``home``."""
    store, authority = _make_certificate(home)
    with ExitStack() as stack:
        cluster = stack.enter_context(
            running_cluster(
                racks=("left", "right"),
                heap_mib=384,
                listeners={"LOGIN": "SASL_PLAINTEXT", "TLS": "SSL"},
                settings={
                    "group.initial.rebalance.delay.ms": "0",
                    "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
                    "listener.name.login.plain.sasl.jaas.config": (
                        f"{JAAS} user_reader={quoted(PASSWORD)};".replace("\\", "\\\\")
                    ),
                    "listener.name.tls.ssl.keystore.type": "PKCS12",
                    "listener.name.tls.ssl.keystore.location": str(store),
                    "listener.name.tls.ssl.keystore.password": "changeit",
                },
            )
        )
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(TOPICS)
        admin.produce(
            {(name, n): 5 + 3 * n for name, count in TOPICS.items() for n in range(count)}
        )
        groups = {}
        for assignor in (*CLIENT_ASSIGNORS, *BROKER_ASSIGNORS):
            groups[assignor] = RunningGroup(assignor, cluster.bootstrap, admin, TOPICS)
            stack.callback(groups[assignor].close)
            groups[assignor].join(*_profiles(assignor))
        groups[EMPTY] = RunningGroup(EMPTY, cluster.bootstrap, admin, TOPICS)
        groups[EMPTY].join(Profile(client="gone", topics=("b.payments",), assignor="range"))
        for group in groups.values():
            group.await_stable()
            _commit(group)
        groups[EMPTY].leave("gone")
        groups[EMPTY].await_state("Empty")
        capture_cluster(cluster.bootstrap, home / "captures")
        yield ClusterWithGroups(
            cluster, admin, groups, admin.topics(*TOPICS), home / "captures", authority
        )


def _profiles(assignor: str) -> tuple[Profile, ...]:
    """Return members with mixed subscriptions, two with racks and two static."""
    subscriptions = {
        "left-c": ("c.clicks", "a.orders"),
        "right-s": ("a.orders", "b.payments"),
        "plain-c": ("a.orders", "d.audit", "c.clicks"),
        "idle-s": ("d.audit",),
    }
    return tuple(
        Profile(
            client=client,
            topics=topics,
            assignor=assignor,
            rack=RACKS.get(client),
            instance=f"{client}.instance" if client.endswith("-s") else None,
        )
        for client, topics in subscriptions.items()
    )


def _commit(group: RunningGroup) -> None:
    """Commit a third of the messages, for ``c.clicks`` in every other partition."""
    for consumer in group.running.values():
        consumer.commit(
            {
                (topic, n): (5 + 3 * n) // 3
                for topic, n in sorted(consumer.membership.assigned)
                if topic != "c.clicks" or n % 2
            }
        )


def _make_certificate(home: Path) -> tuple[Path, Path]:
    """Create a key and a certificate; return the keystore and the certificate file."""
    (home / "captures").mkdir()
    store, authority = home / "broker.p12", home / "authority.pem"
    keytool = Path(jars.java()).resolve().with_name("keytool")
    common = ["-keystore", str(store), "-storepass", "changeit", "-alias", "broker"]
    naming = ["-dname", "CN=broker", "-ext", "san=ip:127.0.0.1", "-storetype", "PKCS12"]
    for command in (
        ["-genkeypair", "-keyalg", "RSA", "-validity", "30", *naming],
        ["-exportcert", "-rfc", "-file", str(authority)],
    ):
        subprocess.run([keytool, *command, *common], check=True, capture_output=True)
    return store, authority


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
