"""Port of Kafka's ``RoundRobinAssignor``.

Upstream: org.apache.kafka.clients.consumer.RoundRobinAssignor, kafka-clients 4.4.0.
Functions keep upstream's names and order, so that both can be read side by side.
"""

from collections.abc import Mapping
from itertools import cycle

from kassay.reference.assignors.client import rebalance_input
from kassay.reference.assignors.client.rebalance_input import MemberSubscription
from kassay.reference.java_collections import utf16_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import UpstreamError
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.topic_partitions import TopicPartition


def assign(group: Group) -> Assignment:
    """Assign each partition to the next member in circular order that subscribes to its topic."""
    members = rebalance_input.subscriptions(group)
    if not members:
        raise UpstreamError("IllegalArgumentException", "the group has no members")
    assignment: dict[str, list[TopicPartition]] = {member: [] for member in members}
    subscribed = {member: frozenset(s.topics) for member, s in members.items()}
    # Tie-break: one circle for all topics, which continues after the last partition.
    assigner = cycle(rebalance_input.member_order(members, members))
    topics = rebalance_input.partitions_per_topic(group)
    for partition in _all_partitions_sorted(topics, members):
        member = next(member for member in assigner if partition.topic in subscribed[member])
        assignment[member].append(partition)
    return Assignment(assignment)


def _all_partitions_sorted(
    partitions_per_topic: Mapping[str, Topic], subscriptions: Mapping[str, MemberSubscription]
) -> list[TopicPartition]:
    topics = sorted({t for s in subscriptions.values() for t in s.topics}, key=utf16_key)
    return [
        TopicPartition(topic, number)
        for topic in topics
        if topic in partitions_per_topic
        for number in range(partitions_per_topic[topic].partitions)
    ]
