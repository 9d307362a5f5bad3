"""Sticky assignors of kafka-python and aiokafka, called with a `Group`.

``requirements-bench.lock`` installs both packages. Inputs are prepared in advance, so that
only the assignor is timed.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kassay.reference.model.group import Group, Member
from kassay.reference.model.topic_partitions import Partitions

Loads = dict[str, int]
"""Number of partitions per member."""


@dataclass(frozen=True, slots=True)
class _ClusterMetadata:
    """Substitute for the cluster metadata that the Python clients pass to assignors."""

    counts: dict[str, int]

    def topics(self) -> set[str]:
        return set(self.counts)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self.counts[topic])) if topic in self.counts else None


@dataclass(frozen=True, slots=True)
class _JoinedMember:
    """A member in a JoinGroup response of kafka-python."""

    member_id: str
    metadata: Any


def _kafka_python(group: Group) -> Callable[[], Loads]:
    """Return a function that runs kafka-python's sticky assignor on a group."""
    sticky = _sticky_class("kafka")
    protocol = importlib.import_module("kafka.protocol.consumer.metadata")

    def metadata(member: Member) -> Any:
        assignor = sticky()
        if len(member.owned):
            owned = protocol.ConsumerProtocolAssignment(0, _by_topic(member.owned), b"")
            assignor.on_assignment(owned, member.generation)
        return assignor.metadata(list(member.subscription))

    cluster = _cluster(group)
    members = [_JoinedMember(member.id, metadata(member)) for member in group.members]
    return lambda: _loads(sticky().assign(cluster, members))


def _aiokafka(group: Group) -> Callable[[], Loads]:
    """Return a function that runs aiokafka's sticky assignor on a group."""
    sticky = _sticky_class("aiokafka")
    protocol = importlib.import_module("aiokafka.coordinator.protocol")

    def metadata(member: Member) -> Any:
        # The class keeps the owned partitions, so each member needs its own class.
        assignor: Any = type("MemberAssignor", (sticky,), {})
        if len(member.owned):
            owned = protocol.ConsumerProtocolMemberAssignment(0, _by_topic(member.owned), b"")
            assignor.on_assignment(owned)
            assignor.on_generation_assignment(member.generation)
        return assignor.metadata(list(member.subscription))

    cluster = _cluster(group)
    members = {member.id: metadata(member) for member in group.members}
    return lambda: _loads(sticky.assign(cluster, members))


PYTHON_CLIENTS: dict[str, Callable[[Group], Callable[[], Loads]]] = {
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
}
"""Functions that prepare a call. They raise ImportError if the package is missing."""


def _sticky_class(package: str) -> Any:
    module = importlib.import_module(f"{package}.coordinator.assignors.sticky.sticky_assignor")
    return module.StickyPartitionAssignor


def _by_topic(owned: Partitions) -> list[tuple[str, list[int]]]:
    table: dict[str, list[int]] = {}
    for topic, partition in owned:
        table.setdefault(topic, []).append(partition)
    return list(table.items())


def _cluster(group: Group) -> _ClusterMetadata:
    return _ClusterMetadata({topic.name: topic.partitions for topic in group.topics})


def _loads(assigned: dict[str, Any]) -> Loads:
    return {member: len(assignment.partitions()) for member, assignment in assigned.items()}
