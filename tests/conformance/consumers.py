"""Java consumers, controlled from Python.

A consumer joins its group when it is created and polls in a Java thread, because Python
threads cannot share JPype's classes safely.
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
"""Classes of the assignors of the classic protocol, by assignor."""

BROKER_ASSIGNORS: Mapping[str, str] = {"uniform": "uniform", "server-range": "range"}
"""Broker configuration names of the assignors of the consumer protocol."""

_WAIT_MILLIS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Configuration of a consumer.

    The assignor, a key of `CLIENT_ASSIGNORS` or `BROKER_ASSIGNORS`, determines the protocol. A
    classic consumer can list several assignors, separated by commas. The session timeout and the
    heartbeat interval apply under the classic protocol.
    """

    client: str
    topics: tuple[str, ...]
    assignor: str
    instance: str | None = None
    rack: str | None = None
    session_millis: int = 45_000
    heartbeat_millis: int = 200

    @property
    def protocol(self) -> str:
        """``group.protocol`` of the assignor."""
        return "consumer" if self.assignor in BROKER_ASSIGNORS else "classic"

    def properties(self, bootstrap: str, group: str) -> dict[str, str]:
        """Return the consumer properties."""
        properties = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": self.client,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": "false",
            "group.protocol": self.protocol,
            # A frozen consumer can block its group for this time.
            "max.poll.interval.ms": "1800000",
            "metadata.max.age.ms": "1800000",  # an update can start a rebalance
            "max.poll.records": "10",
        }
        if self.assignor in BROKER_ASSIGNORS:
            properties["group.remote.assignor"] = BROKER_ASSIGNORS[self.assignor]
        else:
            listed = (CLIENT_ASSIGNORS[name] for name in self.assignor.split(","))
            properties |= {
                "partition.assignment.strategy": ",".join(listed),
                "session.timeout.ms": str(self.session_millis),
                "heartbeat.interval.ms": str(self.heartbeat_millis),
            }
        if self.instance is not None:
            properties["group.instance.id"] = self.instance
        if self.rack is not None:
            properties["client.rack"] = self.rack
        return properties


@dataclass(frozen=True, slots=True)
class Membership:
    """Membership of a consumer after a poll.

    ``assigned_generations`` are the generations in which it received an assignment. A slow
    consumer misses a generation if others start the next rebalance earlier.
    """

    assigned: frozenset[tuple[str, int]] = frozenset()
    generation: int = -1
    assigned_generations: frozenset[int] = frozenset()


class RunningConsumer:
    """Consumer in a Java thread of this process (``LiveConsumer.java``)."""

    def __init__(self, bootstrap: str, group: str, profile: Profile) -> None:
        self.profile = profile
        self._consumer = java_class("LiveConsumer")(
            java_map(profile.properties(bootstrap, group)), "\n".join(profile.topics)
        )

    @property
    def membership(self) -> Membership:
        """Membership after the last poll."""
        generations, *partitions = str(self._consumer.membership()).split("\n")
        generation, *assigned_generations = map(int, generations.split(" "))
        pairs = (partition.rsplit(":", 1) for partition in partitions)
        return Membership(
            assigned=frozenset((topic, int(number)) for topic, number in pairs),
            generation=generation,
            assigned_generations=frozenset(assigned_generations),
        )

    @property
    def ownership(self) -> list[str]:
        """Assignments (+) and revocations (-): sign, time in ms, and partitions of each."""
        return str(self._consumer.ownership()).splitlines()

    def enforce_rebalance(self) -> None:
        """Ask for a rebalance, which only the leader of a classic group starts."""
        self._consumer.enforceRebalance(_WAIT_MILLIS)

    def subscribe(self, *topics: str) -> int:
        """Change the subscription; return the generation before the change."""
        return int(self._consumer.subscribe("\n".join(topics), _WAIT_MILLIS))

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets and wait for the broker's response."""
        lines = (f"{topic}:{number}:{offset}" for (topic, number), offset in offsets.items())
        self._consumer.commit("\n".join(lines), _WAIT_MILLIS)

    def freeze(self) -> None:
        """Stop polling; heartbeats continue, so it remains a member."""
        self._consumer.freeze(_WAIT_MILLIS)

    def leave(self) -> None:
        self._end("LEAVE_GROUP")

    def abandon(self) -> None:
        self._end("REMAIN_IN_GROUP")

    def check(self) -> None:
        """Raise an error if the consumer failed."""
        failure = self._consumer.failure()
        if failure is not None:
            raise RuntimeError(f"consumer {self.profile.client!r} failed: {failure}")

    def _end(self, membership: str) -> None:
        if not self._consumer.end(membership, _WAIT_MILLIS):
            raise TimeoutError(f"consumer {self.profile.client!r} not closed in {_WAIT_MILLIS} ms")
        self.check()


class KillableConsumer:
    """Consumer in a separate process, which can be killed."""

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
    def membership(self) -> Membership:
        """Membership after the last poll; empty after the end of the process."""
        requests, responses = self._process.stdin, self._process.stdout
        if requests is None or responses is None or self._process.poll() is not None:
            return Membership()
        requests.write("\n")
        requests.flush()
        assigned, generation, generations = json.loads(responses.readline())
        return Membership(frozenset(map(tuple, assigned)), generation, frozenset(generations))

    def check(self) -> None:
        """Raise an error if the process ended before it was killed."""
        status = self._process.poll()
        if status is not None:
            raise RuntimeError(f"consumer {self.profile.client!r} ended with status {status}")

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.communicate()


def _main(bootstrap: str, group: str, profile: str) -> None:
    """Run a consumer until standard input ends; each input line requests its membership."""
    fields = json.loads(profile)
    consumer = RunningConsumer(
        bootstrap, group, Profile(**fields | {"topics": tuple(fields["topics"])})
    )
    for _ in sys.stdin:
        consumer.check()
        membership = consumer.membership
        response = [
            sorted(membership.assigned),
            membership.generation,
            sorted(membership.assigned_generations),
        ]
        sys.stdout.write(json.dumps(response) + "\n")
        sys.stdout.flush()
    consumer.abandon()


if __name__ == "__main__":
    _main(*sys.argv[1:])
