"""Ports of Kafka's ``RangeAssignor`` and ``RoundRobinAssignor``.

The range assignor considers racks and co-partitioned topics (KIP-881).

Upstream: org.apache.kafka.clients.consumer.RangeAssignor and RoundRobinAssignor, kafka-clients
4.4.0. Functions keep upstream's names and order, so that both can be read side by side.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from kassay.reference.assignors.client import rebalance_input
from kassay.reference.assignors.client.rebalance_input import MemberSubscription, RackSets
from kassay.reference.java_collections import utf16_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UpstreamError
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.topic_partitions import TopicPartition

_Lists = dict[str, list[TopicPartition]]


def assign_range(group: Group) -> Assignment:
    """Assign to every member a range of the partitions of each subscribed topic."""
    members = rebalance_input.subscriptions(group)
    consumers_per_topic = _consumers_per_topic(members)
    # Tie-break: without racks, lists are in the order of the topics' hash map.
    states = [
        _TopicAssignmentState(topic, consumers_per_topic[topic.name], members)
        for topic in rebalance_input.partitions_per_topic(group).values()
    ]
    assignment: _Lists = {member: [] for member in members}
    use_rack_aware = any(state.needs_rack_aware_assignment for state in states)
    if use_rack_aware:
        _assign_with_rack_matching(states, assignment)
    for state in states:
        _assign_ranges(state, None, assignment)
    if use_rack_aware:
        for partitions in assignment.values():
            partitions.sort(key=lambda tp: (utf16_key(tp.topic), tp.partition))
    return Assignment(assignment)


def _consumers_per_topic(subscriptions: Mapping[str, MemberSubscription]) -> dict[str, list[str]]:
    consumers: dict[str, list[str]] = {}
    for member in rebalance_input.member_order(subscriptions):
        for topic in subscriptions[member].topics:
            consumers.setdefault(topic, []).append(member)
    return consumers


class _TopicAssignmentState:
    def __init__(
        self, topic: Topic, consumers: list[str], subscriptions: Mapping[str, MemberSubscription]
    ) -> None:
        self.topic = topic.name
        self.consumers = {member: subscriptions[member].rack for member in consumers}
        self.unassigned_partitions = dict.fromkeys(range(topic.partitions))
        self.num_assigned_by_consumer = dict.fromkeys(consumers, 0)
        self.num_partitions_per_consumer, self.remaining_consumers_with_extra_partition = divmod(
            topic.partitions, len(consumers)
        )
        racks = {rack for rack in self.consumers.values() if rack is not None}
        self.partition_racks: RackSets = rebalance_input.rack_sets(topic) if racks else ()
        self.needs_rack_aware_assignment = rebalance_input.use_rack_aware_assignment(
            racks, self.partition_racks
        )

    def racks_match(self, consumer: str, partition: int) -> bool:
        rack = self.consumers[consumer]
        return rack is None or rack in self.partition_racks[partition]

    def max_assignable(self, consumer: str) -> int:
        extra = 1 if self.remaining_consumers_with_extra_partition > 0 else 0
        quota = self.num_partitions_per_consumer + extra
        return max(0, quota - self.num_assigned_by_consumer[consumer])

    def on_assigned(self, consumer: str, partitions: list[int]) -> None:
        self.num_assigned_by_consumer[consumer] += len(partitions)
        if self.num_assigned_by_consumer[consumer] > self.num_partitions_per_consumer:
            self.remaining_consumers_with_extra_partition -= 1
        for partition in partitions:
            del self.unassigned_partitions[partition]


def _assign_ranges(
    state: _TopicAssignmentState, may_assign: Callable[[str, int], bool] | None, assignment: _Lists
) -> None:
    for consumer in state.consumers:
        if not state.unassigned_partitions:
            break
        assignable: list[int] = []
        limit = state.max_assignable(consumer)
        for partition in state.unassigned_partitions:
            if len(assignable) == limit:
                break
            if may_assign is None or may_assign(consumer, partition):
                assignable.append(partition)
        if assignable:
            _assign(consumer, assignable, state, assignment)


def _assign_with_rack_matching(states: Sequence[_TopicAssignmentState], assignment: _Lists) -> None:
    groups: dict[tuple[frozenset[tuple[str, str | None]], int], list[_TopicAssignmentState]] = {}
    for state in states:
        key = (frozenset(state.consumers.items()), len(state.partition_racks))
        groups.setdefault(key, []).append(state)
    for co_partitioned in groups.values():
        if len(co_partitioned) > 1:
            _assign_co_partitioned_with_rack_matching(co_partitioned, assignment)
        elif co_partitioned[0].needs_rack_aware_assignment:
            state = co_partitioned[0]
            _assign_ranges(state, state.racks_match, assignment)


def _assign_co_partitioned_with_rack_matching(
    states: Sequence[_TopicAssignmentState], assignment: _Lists
) -> None:
    remaining_consumers = list(states[0].consumers)
    for partition in range(len(states[0].partition_racks)):
        for consumer in remaining_consumers:
            if all(
                t.racks_match(consumer, partition) and t.max_assignable(consumer) for t in states
            ):
                break
        else:
            continue
        for state in states:
            _assign(consumer, [partition], state, assignment)
        if not any(state.max_assignable(consumer) for state in states):
            remaining_consumers.remove(consumer)


def _assign(
    consumer: str, partitions: list[int], state: _TopicAssignmentState, assignment: _Lists
) -> None:
    assignment[consumer].extend(TopicPartition(state.topic, number) for number in partitions)
    state.on_assigned(consumer, partitions)


def assign_roundrobin(group: Group) -> Assignment:
    """Assign each partition to the next member in circular order that subscribes to its topic."""
    members = rebalance_input.subscriptions(group)
    if not members:
        raise UpstreamError("the group has no members", "IllegalArgumentException")
    assignment: dict[str, list[TopicPartition]] = {member: [] for member in members}
    subscribed = {member: frozenset(s.topics) for member, s in members.items()}
    # Tie-break: one circle for all topics, which continues after the last partition.
    assigner = cycle(rebalance_input.member_order(members))
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
