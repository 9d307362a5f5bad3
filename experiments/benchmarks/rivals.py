"""The sticky assignors of kafka-python and aiokafka, called with a `Group`.

Both are written in Python after Kafka's own; both come with ``requirements-bench.lock``.
Inputs are prepared beforehand, so that what is timed is the assignor alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor as AiokafkaSticky,
)
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from kafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor as KafkaPythonSticky,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from reference.group import Group, Member

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
    cluster = _cluster(group)
    members = [_Joined(member.id, _kafka_python_metadata(member)) for member in group.members]

    def call() -> Loads:
        assigned = KafkaPythonSticky().assign(cluster, members)
        return {member: len(lists.partitions()) for member, lists in assigned.items()}

    return call


def aiokafka_sticky(group: Group) -> Callable[[], Loads]:
    """Prepare a call of aiokafka's sticky assignor."""
    cluster = _cluster(group)
    members = {member.id: _aiokafka_metadata(member) for member in group.members}

    def call() -> Loads:
        assigned = AiokafkaSticky.assign(cluster, members)
        return {member: len(lists.partitions()) for member, lists in assigned.items()}

    return call


RIVALS: dict[str, Callable[[Group], Callable[[], Loads]]] = {
    "kafka-python": kafka_python_sticky,
    "aiokafka": aiokafka_sticky,
}


def _kafka_python_metadata(member: Member) -> Any:
    own = KafkaPythonSticky()
    if len(member.owned):
        last = ConsumerProtocolAssignment(0, _by_topic(member.owned), b"")
        own.on_assignment(last, member.generation)
    return own.metadata(list(member.subscription))


def _aiokafka_metadata(member: Member) -> Any:
    class Own(AiokafkaSticky):  # type: ignore[misc]
        """Its memory is kept on the class, so each member needs a class of its own."""

    if len(member.owned):
        Own.on_assignment(ConsumerProtocolMemberAssignment(0, _by_topic(member.owned), b""))
        Own.on_generation_assignment(member.generation)
    return Own.metadata(list(member.subscription))


def _by_topic(owned: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    table: dict[str, list[int]] = {}
    for topic, partition in owned:
        table.setdefault(topic, []).append(partition)
    return list(table.items())


def _cluster(group: Group) -> _Cluster:
    return _Cluster({topic.name: topic.partitions for topic in group.topics})
