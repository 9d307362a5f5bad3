"""Rebalances of real consumers: the group as its leader read it, and the stored assignment."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaException
from confluent_kafka.admin import AdminClient

from kassay.experiments.history.group_records import OffsetsReader
from kassay.experiments.implementations.run_assignor import run
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions
from kassay.reference.protocol.message_decoder import (
    ASSIGNMENT,
    SUBSCRIPTION,
    Fields,
    RecordType,
    decode,
    decode_message,
)
from tests.conformance.client_groups import RunningClients

_POLL_SECONDS = 0.5

Sets = Mapping[str, frozenset[tuple[str, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRebalance:
    """A generation of a group in ``__consumer_offsets``.

    ``group`` has the members in the order of the record, with the owned partitions of their
    subscriptions. ``clients`` are the client ids by member id.
    """

    group: Group
    generation: int
    assignor: str
    leader: str
    clients: Mapping[str, str]
    assignment: Sets

    def without_unassigned_topics(self) -> Group:
        """Remove the topics without assigned partitions, which the leader possibly did not know."""
        known = {topic for pairs in self.assignment.values() for topic, _ in pairs}
        topics = tuple(topic for topic in self.group.topics if topic.name in known)
        return replace(self.group, topics=topics)


def observed_rebalances(
    bootstrap: str, topics: Mapping[str, int]
) -> dict[str, list[ObservedRebalance]]:
    """Return all rebalances with an assignment, by group, in the order of their records."""
    reader = OffsetsReader({"bootstrap.servers": bootstrap})
    found: dict[str, list[ObservedRebalance]] = {}
    for row in reader.read(dict.fromkeys(reader.partitions(), OFFSET_BEGINNING)):
        record = decode(row["key"], row["value"])
        value = record.value
        if record.kind != RecordType.GROUP_METADATA or value is None or value["leader"] is None:
            continue
        if any(member["assignment"] is not None for member in value["members"]):
            name = record.key["group"]
            found.setdefault(name, []).append(_observed(name, value, topics))
    return found


def _observed(name: str, value: Fields, topics: Mapping[str, int]) -> ObservedRebalance:
    members = value["members"]
    return ObservedRebalance(
        group=Group(
            id=f"{name}/{value['generation']}",
            topics=tuple(Topic(name=topic, partitions=n) for topic, n in topics.items()),
            members=tuple(_member(member, value["protocol"]) for member in members),
        ),
        generation=value["generation"],
        assignor=value["protocol"],
        leader=value["leader"],
        clients={member["member_id"]: member["client_id"] for member in members},
        assignment={
            member["member_id"]: frozenset(_pairs((member["assignment"] or {}).get("assigned", ())))
            for member in members
        },
    )


def _member(member: Fields, assignor: str) -> Member:
    subscription = member["subscription"]
    data = subscription["user_data"] or {}
    owned, generation = subscription["owned"], subscription["generation"]
    if assignor == "sticky":
        owned, generation = data.get("previous_assignment") or (), data.get("generation", -1)
    elif generation == NO_GENERATION:
        generation = data.get("generation", NO_GENERATION)
    return Member(
        id=member["member_id"],
        subscription=tuple(subscription["topics"]),
        owned=Partitions.of(_pairs(owned)),
        generation=generation,
        instance_id=member["instance_id"],
    )


def _pairs(topics: Sequence[Fields]) -> list[tuple[str, int]]:
    return [(each["topic"], number) for each in topics for number in each["partitions"]]


def as_sets(assignment: Assignment | None) -> Sets:
    """Return the partitions of each member without their order."""
    pairs = {} if assignment is None else assignment
    return {id: frozenset((t, int(n)) for t, n in each) for id, each in pairs.items()}


def predicts(assignor: str, group: Group, assignment: Sets, *, runs: int = 1) -> bool:
    """Return whether one of several runs of a library's assignor gives an assignment.

    With more than one run, the topics get all orders of their names, because the results of the
    Go libraries depend on the order in which they store the topics.
    """
    topics = [topic.name for topic in group.topics]
    for order in permutations(topics) if runs > 1 else [tuple(topics)]:
        names = dict(zip(topics, order, strict=True))
        wanted = {
            id: frozenset((names.get(t, t), n) for t, n in each) for id, each in assignment.items()
        }
        other = renamed(group, names)
        if any(_equal(as_sets(run(other, assignor).assignment), wanted) for _ in range(runs)):
            return True
    return False


def _equal(predicted: Sets, observed: Sets) -> bool:
    return {id: predicted.get(id, frozenset()) for id in observed} == observed


def unstable_groups(
    bootstrap: str, running: Sequence[RunningClients], *, seconds: float = 120.0
) -> list[str]:
    """Wait until each group has its members, subscriptions and partitions, and keeps them.

    Return the names of the groups for which this takes more than ``seconds``.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    deadline = time.monotonic() + seconds
    before: dict[str, _Members] = {}
    while True:
        known = _stable_groups(admin)
        unstable = [
            name
            for each in running
            for name in [each.group.name]
            if known.get(name) != before.get(name) or not _is_complete(each, known.get(name, {}))
        ]
        if not unstable or time.monotonic() > deadline:
            return unstable
        before = known
        time.sleep(_POLL_SECONDS)


_Members = Mapping[str, tuple[tuple[str, ...], frozenset[tuple[str, int]]]]
"""Subscription and assignment of each member."""


def _stable_groups(admin: Any) -> dict[str, _Members]:
    with warnings.catch_warnings():
        # The library has no newer call that returns the subscriptions.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            groups = admin.list_groups(timeout=30)
        except KafkaException:  # The broker still loads its groups.
            return {}
    return {
        group.id: {member.id: _decoded(member) for member in group.members}
        for group in groups
        if group.state == "Stable"
    }


def _decoded(member: Any) -> tuple[tuple[str, ...], frozenset[tuple[str, int]]]:
    topics = decode_message(SUBSCRIPTION, bytes(member.metadata))["topics"]
    assigned = decode_message(ASSIGNMENT, bytes(member.assignment)) if member.assignment else {}
    return tuple(sorted(topics)), frozenset(_pairs(assigned.get("assigned", ())))


def _is_complete(running: RunningClients, members: _Members) -> bool:
    wanted = {
        (topic, number)
        for topics in running.subscriptions.values()
        for topic in topics
        for number in range(running.partitions[topic])
    }
    subscriptions = sorted(topics for topics, _ in members.values())
    assigned = [pair for _, pairs in members.values() for pair in pairs]
    return (
        subscriptions == sorted(tuple(sorted(each)) for each in running.subscriptions.values())
        and len(assigned) == len(wanted)
        and set(assigned) == wanted
    )


def renamed(group: Group, names: Mapping[str, str]) -> Group:
    """Rename topics of a group. Other names stay."""
    return replace(
        group,
        topics=tuple(replace(each, name=names.get(each.name, each.name)) for each in group.topics),
        members=tuple(
            replace(
                member,
                subscription=tuple(names.get(topic, topic) for topic in member.subscription),
                owned=Partitions.of((names.get(topic, topic), n) for topic, n in member.owned),
            )
            for member in group.members
        ),
    )
