"""The sticky assignors of kafka-python and aiokafka, called with a `Group`.

Both are written in Python after Kafka's own; both come with ``requirements-bench.lock``.
Inputs are prepared beforehand, so that what is timed is the assignor alone. They are
imported when first called: nothing but `make bench` installs them.
"""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kassay.reference.model.group import Group, Member

Loads = dict[str, int]
"""Number of partitions of each member."""


@dataclass(frozen=True, slots=True)
class _Cluster:
    """What the two ask of a cluster's metadata."""

    counts: dict[str, int]

    def topics(self) -> set[str]:
        return set(self.counts)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self.counts[topic])) if topic in self.counts else None


@dataclass(frozen=True, slots=True)
class _Joined:
    """A member as kafka-python's join response lists it."""

    member_id: str
    metadata: Any


def kafka_python_sticky(group: Group) -> Callable[[], Loads]:
    """Prepare a call of kafka-python's sticky assignor."""
    sticky = _sticky("kafka")
    written = importlib.import_module("kafka.protocol.consumer.metadata")
    cluster = _cluster(group)

    def metadata(member: Member) -> Any:
        own = sticky()
        if len(member.owned):
            last = written.ConsumerProtocolAssignment(0, _by_topic(member.owned), b"")
            own.on_assignment(last, member.generation)
        return own.metadata(list(member.subscription))

    members = [_Joined(member.id, metadata(member)) for member in group.members]

    def call() -> Loads:
        assigned = sticky().assign(cluster, members)
        return {member: len(lists.partitions()) for member, lists in assigned.items()}

    return call


def aiokafka_sticky(group: Group) -> Callable[[], Loads]:
    """Prepare a call of aiokafka's sticky assignor."""
    sticky = _sticky("aiokafka")
    protocol = importlib.import_module("aiokafka.coordinator.protocol")
    cluster = _cluster(group)

    def metadata(member: Member) -> Any:
        # Its memory is kept on the class, so each member needs a class of its own.
        own: Any = type("Own", (sticky,), {})
        if len(member.owned):
            last = protocol.ConsumerProtocolMemberAssignment(0, _by_topic(member.owned), b"")
            own.on_assignment(last)
            own.on_generation_assignment(member.generation)
        return own.metadata(list(member.subscription))

    members = {member.id: metadata(member) for member in group.members}

    def call() -> Loads:
        assigned = sticky.assign(cluster, members)
        return {member: len(lists.partitions()) for member, lists in assigned.items()}

    return call


RIVALS: dict[str, Callable[[Group], Callable[[], Loads]]] = {
    "kafka-python": kafka_python_sticky,
    "aiokafka": aiokafka_sticky,
}


def _sticky(package: str) -> Any:
    module = importlib.import_module(f"{package}.coordinator.assignors.sticky.sticky_assignor")
    return module.StickyPartitionAssignor


def _by_topic(owned: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    table: dict[str, list[int]] = {}
    for topic, partition in owned:
        table.setdefault(topic, []).append(partition)
    return list(table.items())


def _cluster(group: Group) -> _Cluster:
    return _Cluster({topic.name: topic.partitions for topic in group.topics})
