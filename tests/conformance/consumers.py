"""Real Kafka consumers, each on a thread of its own, driven from Python.

They are Java's ``KafkaConsumer`` over JPype. A consumer joins its group when started
and polls until it is told to leave, to crash or to freeze.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jpype import JClass

from tests.conformance import jars

CLIENT_ASSIGNORS: Mapping[str, str] = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
"""Assignors of the ``classic`` protocol and the classes that Kafka configures them by."""

BROKER_ASSIGNORS: Mapping[str, str] = {"uniform": "uniform", "server-range": "range"}
"""Assignors of the ``consumer`` protocol and the names that brokers know them by."""

_POLL_MILLIS = 100
_CLOSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How one consumer is configured.

    Parameters
    ----------
    client
        ``client.id``; the member id begins with it.
    topics
        What it subscribes to.
    assignor
        A key of `CLIENT_ASSIGNORS` or `BROKER_ASSIGNORS`; it decides the protocol.
    instance
        ``group.instance.id`` of a static member.
    rack
        ``client.rack``.
    session_millis
        ``session.timeout.ms`` under the classic protocol; the other leaves it to brokers.
    """

    client: str
    topics: tuple[str, ...]
    assignor: str
    instance: str | None = None
    rack: str | None = None
    session_millis: int = 45_000

    @property
    def protocol(self) -> str:
        """``group.protocol`` that the assignor belongs to."""
        return "consumer" if self.assignor in BROKER_ASSIGNORS else "classic"

    def properties(self, bootstrap: str, group: str) -> dict[str, str]:
        """Consumer properties, as one writes them into a file."""
        properties = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": self.client,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": "false",
            "group.protocol": self.protocol,
            "max.poll.records": "10",
        }
        if self.assignor in BROKER_ASSIGNORS:
            properties["group.remote.assignor"] = BROKER_ASSIGNORS[self.assignor]
        else:
            properties |= {
                "partition.assignment.strategy": CLIENT_ASSIGNORS[self.assignor],
                "session.timeout.ms": str(self.session_millis),
                "heartbeat.interval.ms": "200",
            }
        if self.instance is not None:
            properties["group.instance.id"] = self.instance
        if self.rack is not None:
            properties["client.rack"] = self.rack
        return properties


@dataclass(frozen=True, slots=True)
class Seen:
    """What a consumer knew of its membership after a poll."""

    assigned: frozenset[tuple[str, int]] = frozenset()
    generation: int = -1


class RunningConsumer:
    """One consumer at work; ``seen`` is what it knew after its latest poll."""

    def __init__(self, bootstrap: str, group: str, profile: Profile) -> None:
        jars.start_jvm()
        self.profile = profile
        self.seen = Seen()
        self._properties = profile.properties(bootstrap, group)
        self._requests: queue.SimpleQueue[Callable[[Any], None]] = queue.SimpleQueue()
        self._frozen = threading.Event()
        self._ending: str | None = None
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=profile.client, daemon=True)
        self._thread.start()

    def subscribe(self, *topics: str) -> int:
        """Change the subscription; the generation in which that was done."""
        generations: list[int] = []

        def request(consumer: Any) -> None:
            generations.append(int(consumer.groupMetadata().generationId()))
            consumer.subscribe(_java_list(topics))

        self._await(request)
        return generations[0]

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets of its own partitions, and wait until the broker has them."""
        table = JClass("java.util.HashMap")()
        partition_of = JClass("org.apache.kafka.common.TopicPartition")
        offset_of = JClass("org.apache.kafka.clients.consumer.OffsetAndMetadata")
        for (topic, partition), offset in offsets.items():
            table.put(partition_of(topic, partition), offset_of(offset))
        self._await(lambda consumer: consumer.commitSync(table))

    def freeze(self) -> None:
        """Stop polling for good; heartbeats go on, so the group still counts it in."""
        self._frozen.set()

    def leave(self) -> None:
        """Close it, leaving the group in so many words; a static member too."""
        self._end("LEAVE_GROUP")

    def crash(self) -> None:
        """End it without a word to the group, which must find out by time-out."""
        self._end("REMAIN_IN_GROUP")

    def check(self) -> None:
        """Raise what ended the thread, if anything did that was not asked for."""
        if self._failure is not None:
            raise RuntimeError(f"consumer {self.profile.client!r} failed") from self._failure

    def _await(self, request: Callable[[Any], None]) -> None:
        """Have the consumer's own thread do something, and wait until it has."""
        done = threading.Event()

        def answered(consumer: Any) -> None:
            request(consumer)
            done.set()

        self._requests.put(answered)
        while not done.wait(0.05):
            self.check()

    def _end(self, membership: str) -> None:
        self._ending = membership
        self._thread.join(_CLOSE_SECONDS)
        if self._thread.is_alive():
            raise TimeoutError(f"consumer {self.profile.client!r} not closed in {_CLOSE_SECONDS} s")
        self.check()

    def _run(self) -> None:
        """Be the consumer's one thread, from creation to close."""
        try:
            properties = JClass("java.util.Properties")()
            for key, value in self._properties.items():
                properties.setProperty(key, value)
            bytes_reader = JClass("org.apache.kafka.common.serialization.ByteArrayDeserializer")
            consumer = JClass("org.apache.kafka.clients.consumer.KafkaConsumer")(
                properties, bytes_reader(), bytes_reader()
            )
            try:
                consumer.subscribe(_java_list(self.profile.topics))
                while self._ending is None:
                    self._turn(consumer)
            finally:
                self._close(consumer)
        except Exception as failure:  # noqa: BLE001 - it is raised again by check()
            self._failure = failure

    def _turn(self, consumer: Any) -> None:
        """Poll once, do what was asked for, and note what the consumer now knows."""
        if self._frozen.is_set():
            time.sleep(_POLL_MILLIS / 1000)
            return
        consumer.poll(JClass("java.time.Duration").ofMillis(_POLL_MILLIS))
        while not self._requests.empty():
            self._requests.get()(consumer)
        # Membership is what matters here: records would only cost time.
        assignment = consumer.assignment()
        consumer.pause(assignment)
        self.seen = Seen(
            assigned=frozenset((str(tp.topic()), int(tp.partition())) for tp in assignment),
            generation=int(consumer.groupMetadata().generationId()),
        )

    def _close(self, consumer: Any) -> None:
        options = JClass("org.apache.kafka.clients.consumer.CloseOptions")
        membership = JClass(
            "org.apache.kafka.clients.consumer.CloseOptions$GroupMembershipOperation"
        )
        timeout = JClass("java.time.Duration").ofSeconds(5)
        consumer.close(
            options.timeout(timeout).withGroupMembershipOperation(
                membership.valueOf(self._ending or "LEAVE_GROUP")
            )
        )


class DoomedConsumer:
    """A consumer in a process of its own, which dies of a kill and not of a close."""

    def __init__(self, bootstrap: str, group: str, profile: Profile) -> None:
        self.profile = profile
        arguments = [bootstrap, group, json.dumps(asdict(profile))]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.consumers", *arguments],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
        )

    def kill(self) -> None:
        """Kill the process and with it the consumer, its heartbeats and its connections."""
        self._process.kill()
        self._process.communicate()


def _java_list(values: tuple[str, ...]) -> Any:
    strings = JClass("java.util.ArrayList")()
    for value in values:
        strings.add(value)
    return strings


def _main(bootstrap: str, group: str, profile: str) -> None:
    """Be a consumer until killed, or until whoever started this is gone."""
    fields = json.loads(profile)
    consumer = RunningConsumer(
        bootstrap, group, Profile(**fields | {"topics": tuple(fields["topics"])})
    )
    sys.stdin.read()
    consumer.crash()


if __name__ == "__main__":
    _main(*sys.argv[1:])
