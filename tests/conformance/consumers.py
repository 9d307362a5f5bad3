"""Real Kafka consumers, driven from Python.

A consumer joins its group when started, and polls until it is told to leave, to freeze
or to be gone. Polling is Java's own business: Python threads that share JPype's classes
would trip over each other.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.conformance.jvm import java_class, java_map

CLIENT_ASSIGNORS: Mapping[str, str] = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
"""Assignors of the ``classic`` protocol and the classes that Kafka configures them by."""

BROKER_ASSIGNORS: Mapping[str, str] = {"uniform": "uniform", "server-range": "range"}
"""Assignors of the ``consumer`` protocol and the names that brokers know them by."""

_WAIT_MILLIS = 60_000


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
            # So long may a frozen consumer hold up its group.
            "max.poll.interval.ms": "1800000",
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
    """What a consumer knew of its membership after a poll.

    Parameters
    ----------
    assigned
        Its partitions.
    generation
        The generation that it was in.
    given
        The generations that it was given an assignment in. One that is slow to ask for it
        misses a generation, when others are quick to join for the next.
    """

    assigned: frozenset[tuple[str, int]] = frozenset()
    generation: int = -1
    given: frozenset[int] = frozenset()


class RunningConsumer:
    """One consumer at work, on a Java thread of its own (``LiveConsumer.java``)."""

    def __init__(self, bootstrap: str, group: str, profile: Profile) -> None:
        self.profile = profile
        self._consumer = java_class("LiveConsumer")(
            java_map(profile.properties(bootstrap, group)), "\n".join(profile.topics)
        )

    @property
    def seen(self) -> Seen:
        """What it knew after its latest poll."""
        generations, *partitions = str(self._consumer.seen()).split("\n")
        generation, *given = map(int, generations.split(" "))
        pairs = (partition.rsplit(":", 1) for partition in partitions)
        return Seen(
            assigned=frozenset((topic, int(number)) for topic, number in pairs),
            generation=generation,
            given=frozenset(given),
        )

    def subscribe(self, *topics: str) -> int:
        """Change the subscription; the generation in which that was done."""
        return int(self._consumer.subscribe("\n".join(topics), _WAIT_MILLIS))

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets of its own partitions, and wait until the broker has them."""
        lines = (f"{topic}:{number}:{offset}" for (topic, number), offset in offsets.items())
        self._consumer.commit("\n".join(lines), _WAIT_MILLIS)

    def freeze(self) -> None:
        """Stop polling for good; heartbeats go on, so the group still counts it in."""
        self._consumer.freeze(_WAIT_MILLIS)

    def leave(self) -> None:
        """Close it, leaving the group in so many words; a static member too."""
        self._end("LEAVE_GROUP")

    def abandon(self) -> None:
        """Close it without leaving: a classic group must find out by time-out."""
        self._end("REMAIN_IN_GROUP")

    def check(self) -> None:
        """Raise what ended the thread, if anything did that was not asked for."""
        failure = self._consumer.failure()
        if failure is not None:
            raise RuntimeError(f"consumer {self.profile.client!r} failed: {failure}")

    def _end(self, membership: str) -> None:
        if not self._consumer.end(membership, _WAIT_MILLIS):
            raise TimeoutError(f"consumer {self.profile.client!r} not closed in {_WAIT_MILLIS} ms")
        self.check()


class DoomedConsumer:
    """A consumer in a process of its own, which dies of a kill and not of a close."""

    def __init__(self, bootstrap: str, group: str, profile: Profile) -> None:
        self.profile = profile
        arguments = [bootstrap, group, json.dumps(asdict(profile))]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.consumers", *arguments],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def seen(self) -> Seen:
        """What it knew after its latest poll; nothing, once its process has ended."""
        questions, answers = self._process.stdin, self._process.stdout
        if questions is None or answers is None or self._process.poll() is not None:
            return Seen()
        questions.write("\n")
        questions.flush()
        assigned, generation, given = json.loads(answers.readline())
        return Seen(frozenset(map(tuple, assigned)), generation, frozenset(given))

    def check(self) -> None:
        """Raise if its process ended before it was killed."""
        status = self._process.poll()
        if status is not None:
            raise RuntimeError(f"consumer {self.profile.client!r} ended with status {status}")

    def kill(self) -> None:
        """Kill the process and with it the consumer, its heartbeats and its connections."""
        self._process.kill()
        self._process.communicate()


def _main(bootstrap: str, group: str, profile: str) -> None:
    """Be a consumer until killed, or until whoever started this is gone.

    Each line of standard input asks what the consumer has seen.
    """
    fields = json.loads(profile)
    consumer = RunningConsumer(
        bootstrap, group, Profile(**fields | {"topics": tuple(fields["topics"])})
    )
    for _ in sys.stdin:
        consumer.check()
        seen = consumer.seen
        told = [sorted(seen.assigned), seen.generation, sorted(seen.given)]
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
    consumer.abandon()


if __name__ == "__main__":
    _main(*sys.argv[1:])
