"""Port of the broker's ``RangeAssignor`` (KIP-848).

Upstream: org.apache.kafka.coordinator.group.assignor.RangeAssignor, group-coordinator
4.4.0. Functions keep upstream's names and order.
"""

from collections import Counter

import numpy as np

from kassay.reference.assignors.broker.rebalance_input import (
    GroupSpec,
    TopicId,
    group_spec,
    hash_order,
)
from kassay.reference.java.hash_map import capacity_for
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Column, Partitions


def assign(group: Group) -> Assignment:
    """Assign each member a range of partitions per subscribed topic, static members first."""
    spec = group_spec(group)
    topics = _TopicMetadata(spec)
    assignment: dict[str, Partitions] = dict.fromkeys(spec.members, NO_PARTITIONS)
    members = spec.sort_member_ids()
    for member in members:
        # Tie-break: homogeneous groups use the topic order of the first member.
        subscribed = spec.subscribed[members[0] if spec.homogeneous else member]
        # Tie-break: the capacity of the map is the number of known topics in homogeneous groups,
        # otherwise the number of all subscribed names.
        names = subscribed if spec.homogeneous else spec.members[member].subscription
        assignment[member] = topics.next_ranges(subscribed, capacity_for(len(names)))
    return Assignment(assignment)


class _TopicMetadata:
    """Partition and member counts of the topics, and the start of each topic's next range.

    The arrays have one value per topic.
    """

    def __init__(self, spec: GroupSpec) -> None:
        self._ids = list(spec.topics)
        self._names = [topic.name for topic in spec.topics.values()]
        index = {topic: position for position, topic in enumerate(spec.topics)}
        members = Counter(spec.subscribed.values())
        self._positions = {
            topics: np.array([index[topic] for topic in topics], dtype=np.int32)
            for topics in members
        }
        num_partitions = np.array([topic.partitions for topic in spec.topics.values()], np.int32)
        num_members = np.zeros_like(num_partitions)
        for topics, count in members.items():
            num_members[self._positions[topics]] += count
        self._quotas, self._extras = np.divmod(num_partitions, np.maximum(num_members, 1))
        self._next_range = np.zeros_like(num_partitions)
        self._num_ranges = np.zeros_like(num_partitions)
        self._orders: dict[tuple[bytes, int], tuple[Column, tuple[str, ...]]] = {}

    def next_ranges(self, subscribed: tuple[TopicId, ...], capacity: int) -> Partitions:
        """Return the next range of each topic, in the order of a hash map with a capacity."""
        topics = self._positions[subscribed]
        topics, names = self._hash_order(topics[self._sizes(topics) > 0], capacity)
        sizes = self._sizes(topics)
        starts = self._next_range[topics]
        self._next_range[topics] += sizes
        self._num_ranges[topics] += 1
        codes = np.repeat(np.arange(len(topics), dtype=np.int32), sizes)
        first_rows = np.cumsum(sizes) - sizes
        numbers = np.arange(len(codes)) + np.repeat(starts - first_rows, sizes)
        return Partitions(names, codes, numbers)

    def _sizes(self, topics: Column) -> Column:
        return self._quotas[topics] + (self._num_ranges[topics] < self._extras[topics])

    def _hash_order(self, topics: Column, capacity: int) -> tuple[Column, tuple[str, ...]]:
        """Return topics in the order of a hash map, and their names."""
        key = (topics.tobytes(), capacity)
        if key not in self._orders:
            ids = {self._ids[position]: position for position in topics.tolist()}
            positions = [ids[topic] for topic in hash_order(ids, capacity=capacity)]
            names = tuple(self._names[position] for position in positions)
            self._orders[key] = np.array(positions, dtype=np.int32), names
        return self._orders[key]
