"""Cluster administration through Kafka's Java ``Admin`` client."""

from __future__ import annotations

import time
import uuid
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jpype import JClass

from tests.conformance import jars
from tests.conformance.broker import KafkaCluster, running_cluster

Pairs = frozenset[tuple[str, int]]

_CALL_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """Description of a topic; ``racks`` are those of the replicas of each partition."""

    id: uuid.UUID
    racks: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """Description of a member; only the consumer protocol has a ``target``."""

    id: str
    client: str
    instance: str | None
    assigned: Pairs
    target: Pairs | None
    epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """Description of a group by its coordinator."""

    state: str
    assignor: str
    epoch: int | None
    members: Mapping[str, MemberView]

    @property
    def is_stable(self) -> bool:
        """Whether it is stable and every member has its target assignment."""
        return self.state == "Stable" and all(
            member.target in (None, member.assigned) for member in self.members.values()
        )


class Administrator:
    """Python interface of Kafka's ``Admin`` and of a producer."""

    def __init__(self, bootstrap: str) -> None:
        jars.start_jvm()
        properties = JClass("java.util.Properties")()
        properties.setProperty("bootstrap.servers", bootstrap)
        self._properties = properties
        self._admin = JClass("org.apache.kafka.clients.admin.Admin").create(properties)

    def close(self) -> None:
        self._admin.close()

    def create_topics(
        self,
        counts: Mapping[str, int],
        replicas: Mapping[str, Mapping[int, tuple[int, ...]]] | None = None,
    ) -> None:
        """Create topics by partition count, or by replica brokers per partition.

        Wait until all replicas are stored: the controller responds before the brokers know
        the topics.
        """
        new_topic, topics = JClass("org.apache.kafka.clients.admin.NewTopic"), _list()
        for name, count in counts.items():
            if replicas is None or name not in replicas:
                topics.add(new_topic(name, count, JClass("java.lang.Short")(1)))
                continue
            table = JClass("java.util.HashMap")()
            for partition, brokers in replicas[name].items():
                table.put(JClass("java.lang.Integer")(partition), _list(*map(_integer, brokers)))
            topics.add(new_topic(name, table))
        _result(self._admin.createTopics(topics).all())
        self._await_replicas({(name, n) for name, count in counts.items() for n in range(count)})

    def topics(self, *names: str) -> dict[str, TopicView]:
        """Describe topics."""
        descriptions = _result(self._admin.describeTopics(_list(*names)).allTopicNames())
        return {name: _topic(descriptions.get(name)) for name in names}

    def produce(self, messages: Mapping[tuple[str, int], int]) -> None:
        """Append a number of small messages to each partition."""
        writer = JClass("org.apache.kafka.common.serialization.StringSerializer")
        producer = JClass("org.apache.kafka.clients.producer.KafkaProducer")(
            self._properties, writer(), writer()
        )
        record = JClass("org.apache.kafka.clients.producer.ProducerRecord")
        try:
            for (topic, partition), count in messages.items():
                message = record(topic, _integer(partition), None, "x")
                for _ in range(count):
                    producer.send(message)
        finally:
            producer.close()

    def group(self, name: str) -> GroupView:
        """Describe one group."""
        described = _result(self._admin.describeConsumerGroups(_list(name)).all()).get(name)
        epoch = described.groupEpoch()
        members = (_member(member) for member in described.members())
        return GroupView(
            state=str(described.groupState()),
            assignor=str(described.partitionAssignor()),
            epoch=int(epoch.get()) if epoch.isPresent() else None,
            members={member.client: member for member in members},
        )

    def members(self, name: str) -> list[MemberView]:
        """Describe the members of a group, in the order of the coordinator."""
        described = _result(self._admin.describeConsumerGroups(_list(name)).all()).get(name)
        return [_member(member) for member in described.members()]

    def await_group(
        self, name: str, condition: Callable[[GroupView], bool], *, seconds: float = 60.0
    ) -> GroupView:
        """Describe a group repeatedly until ``condition`` holds."""
        deadline = time.monotonic() + seconds
        view: GroupView | None = None
        while time.monotonic() < deadline:
            try:
                view = self.group(name)
            except JClass("java.util.concurrent.ExecutionException"):
                view = None  # The group does not exist yet.
            if view is not None and condition(view):
                return view
            time.sleep(0.1)
        raise TimeoutError(
            f"group {name!r} did not reach the expected state in {seconds} s: {view}"
        )

    def _await_replicas(self, expected: set[tuple[str, int]]) -> None:
        deadline = time.monotonic() + _CALL_SECONDS
        while missing := expected - self._stored():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not stored after {_CALL_SECONDS} s: {sorted(missing)}")
            time.sleep(0.1)

    def _stored(self) -> Pairs:
        """Return the partitions in the log directories of all brokers."""
        nodes = _result(self._admin.describeCluster().nodes())
        described = self._admin.describeLogDirs(_list(*(_integer(node.id()) for node in nodes)))
        return frozenset(
            (str(stored.topic()), int(stored.partition()))
            for directories in _result(described.allDescriptions()).values()
            for directory in directories.values()
            for stored in directory.replicaInfos().keySet()
        )


@contextmanager
def administrator(bootstrap: str) -> Iterator[Administrator]:
    """Provide an `Administrator`."""
    admin = Administrator(bootstrap)
    try:
        yield admin
    finally:
        admin.close()


@contextmanager
def cluster_with_topics(
    topics: dict[str, int], settings: dict[str, str]
) -> Iterator[tuple[KafkaCluster, Administrator]]:
    """Start a small cluster with topics, and connect an administrator to it."""
    with (
        running_cluster(heap_mib=384, settings=settings) as running,
        administrator(running.bootstrap) as admin,
    ):
        admin.create_topics(topics)
        yield running, admin


def _member(described: Any) -> MemberView:
    instance, target = described.groupInstanceId(), described.targetAssignment()
    epoch = described.memberEpoch()
    return MemberView(
        id=str(described.consumerId()),
        client=str(described.clientId()),
        instance=str(instance.get()) if instance.isPresent() else None,
        assigned=_pairs(described.assignment()),
        target=_pairs(target.get()) if target.isPresent() else None,
        epoch=int(epoch.get()) if epoch.isPresent() else None,
    )


def _topic(described: Any) -> TopicView:
    return TopicView(
        id=uuid.UUID(bytes=urlsafe_b64decode(str(described.topicId()) + "==")),
        racks=tuple(
            tuple(str(node.rack()) if node.hasRack() else None for node in partition.replicas())
            for partition in described.partitions()
        ),
    )


def _pairs(assignment: Any) -> Pairs:
    return frozenset((str(tp.topic()), int(tp.partition())) for tp in assignment.topicPartitions())


def _integer(value: int) -> Any:
    return JClass("java.lang.Integer")(value)


def _list(*values: Any) -> Any:
    result = JClass("java.util.ArrayList")()
    for value in values:
        result.add(value)
    return result


def _result(future: Any) -> Any:
    return future.get(_CALL_SECONDS, JClass("java.util.concurrent.TimeUnit").SECONDS)
