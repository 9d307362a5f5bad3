"""Input of the client's assignors: subscriptions, racks, and a table of all partitions.

Upstream: org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor and
AbstractStickyAssignor.RackInfo, kafka-clients 4.4.0.

The table numbers partitions by integers, which makes the ports of the sticky assignors fast. The
integers are in the order of Kafka's general algorithm: topics by number of subscribers, then name;
within a topic by partition number. With equal subscriptions this is the order by topic and
partition.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.java_collections import string_order, topic_partition_hash, utf16_key
from kassay.reference.model import group as group_model
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition

VERSION_WITH_OWNED = 1
VERSION_WITH_GENERATION = 2
VERSION_WITH_RACK = 3

RackSets = tuple[frozenset[str], ...]
"""Known racks of the replicas, per partition of a topic."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """Subscription of a member, as passed to the assignor of the group leader."""

    topics: tuple[str, ...]  # sorted by name, as encoded
    claimed: Partitions  # owned partitions, in the order of the group document
    generation: int  # NO_GENERATION if the version of the subscription has none
    user_data_generation: int  # generation of the assignment of ``claimed``
    sticky_data_version: int  # version of the sticky user data; 0 has no generation
    sends_owned: bool  # whether the version of the subscription contains ``claimed``
    rack: str | None
    instance_id: str | None

    @property
    def owned_partitions(self) -> Partitions:
        """Return the claimed partitions, or none if the protocol version does not send them."""
        return self.claimed if self.sends_owned else NO_PARTITIONS


@group_model.cached
def subscriptions(group: group_model.Group) -> Mapping[str, MemberSubscription]:
    """Return the members' subscriptions in the order of the group leader's hash map."""
    by_id = {member.id: member for member in group.members}
    sorted_topics: dict[tuple[str, ...], tuple[str, ...]] = {}
    for member in group.members:
        if member.subscription not in sorted_topics:
            sorted_topics[member.subscription] = tuple(sorted(member.subscription, key=utf16_key))
    return {
        member_id: _subscription(by_id[member_id], sorted_topics[by_id[member_id].subscription])
        for member_id in string_order(by_id)
    }


def _subscription(member: group_model.Member, topics: tuple[str, ...]) -> MemberSubscription:
    generation = member.generation if member.sub_generation is None else member.sub_generation
    version = member.protocol_version
    return MemberSubscription(
        topics=topics,
        claimed=member.owned,
        generation=generation if version >= VERSION_WITH_GENERATION else group_model.NO_GENERATION,
        user_data_generation=member.generation,
        sticky_data_version=0
        if member.user_data == group_model.USER_DATA_WITHOUT_GENERATION
        else 1,
        sends_owned=version >= VERSION_WITH_OWNED,
        rack=(member.rack or None) if version >= VERSION_WITH_RACK else None,
        instance_id=member.instance_id,
    )


@group_model.cached
def partitions_per_topic(group: group_model.Group) -> Mapping[str, group_model.Topic]:
    """Return the subscribed topics that have partitions, in the order of Kafka's map."""
    topics = group.topic_table()
    distinct = dict.fromkeys(member.topics for member in subscriptions(group).values())
    subscribed = dict.fromkeys(name for names in distinct for name in names)
    known = [n for n in string_order(subscribed) if n in topics and topics[n].partitions > 0]
    return {name: topics[name] for name in string_order(known)}


def member_order(
    members: Mapping[str, MemberSubscription] | Mapping[str, group_model.Member],
) -> list[str]:
    """Sort member ids: static members by instance id, then the other members by id."""

    def key(member: str) -> tuple[bool, bytes]:
        instance = members[member].instance_id
        return (instance is None, utf16_key(member if instance is None else instance))

    # Tie-break: the sort is stable, so members with equal instance ids keep their order.
    return sorted(members, key=key)


def rack_sets(topic: group_model.Topic) -> RackSets:
    """Return the known racks of the replicas of each partition."""
    if topic.racks is None:
        return (frozenset(),) * topic.partitions
    return tuple(frozenset(r for r in racks if r is not None) for racks in topic.racks)


def use_rack_aware_assignment(
    consumer_racks: Collection[str], racks_per_partition: Collection[frozenset[str]]
) -> bool:
    """Return whether the rack rules of KIP-881 apply.

    The rules apply if a consumer is in the rack of a replica, and at least one partition does not
    have replicas in all racks of the replicas.
    """
    partition_racks = frozenset[str]().union(*racks_per_partition)
    if partition_racks.isdisjoint(consumer_racks):
        return False
    return any(racks != partition_racks for racks in racks_per_partition)


class PartitionTable:
    """All partitions of the subscribed topics, numbered from 0.

    A *phantom* is a claimed partition that its topic does not have. It gets a number after all
    others, because upstream checks only that the topic exists.
    """

    def __init__(
        self,
        partitions_per_topic: Mapping[str, group_model.Topic],
        subscriptions: Mapping[str, MemberSubscription],
    ) -> None:
        subscribers = dict.fromkeys(partitions_per_topic, 0)
        for subscription in subscriptions.values():
            for topic in subscription.topics:
                if topic in subscribers:
                    subscribers[topic] += 1
        self.topics = tuple(
            sorted(partitions_per_topic, key=lambda t: (subscribers[t], utf16_key(t)))
        )
        self.position = {topic: index for index, topic in enumerate(self.topics)}
        self.counts = [partitions_per_topic[topic].partitions for topic in self.topics]
        self.first = np.cumsum([0, *self.counts]).tolist()
        self.size: int = self.first[-1]
        self._first = np.array(self.first, dtype=np.int64)
        self._counts = np.array([*self.counts, 0], dtype=np.int64)
        self.topic_of = [topic for topic, count in enumerate(self.counts) for _ in range(count)]
        self.number_of = [number for count in self.counts for number in range(count)]
        self._phantoms: dict[tuple[int, int], int] = {}
        self._positions: dict[tuple[str, ...], NDArray[np.int64]] = {}

    def range_of(self, topic: int) -> range:
        """Return the integers that identify the partitions of a topic."""
        return range(self.first[topic], self.first[topic + 1])

    def intern(self, claimed: Partitions) -> list[int]:
        """Convert claimed partitions to integers, in order. Skip partitions of unknown topics."""
        if not len(claimed):
            return []
        topic = self._positions_of(claimed.topics)[claimed.codes]
        number = claimed.numbers.astype(np.int64)
        if topic.min() < 0:
            known = topic >= 0
            topic, number = topic[known], number[known]
        numbered = self._first[topic] + number
        for index in np.flatnonzero(number >= self._counts[topic]).tolist():
            numbered[index] = self._phantom(int(topic[index]), int(number[index]))
        result: list[int] = numbered.tolist()
        return result

    def unassigned(self, assigned: Iterable[int]) -> list[int]:
        """Return the partitions that Kafka's assignor considers unassigned.

        Kafka's pointer into the sorted assigned partitions stops at a phantom, so every
        partition after it counts as unassigned.
        """
        numbers = np.fromiter(assigned, dtype=np.int64)
        phantoms = numbers[numbers >= self.size].tolist()
        free = np.ones(self.size, dtype=np.bool_)
        free[numbers[numbers < self.size]] = False
        if phantoms:
            free[min(self.first[self.topic_of[phantom] + 1] for phantom in phantoms) :] = True
        result: list[int] = np.flatnonzero(free).tolist()
        return result

    def partitions(self, numbered: list[int]) -> Partitions:
        """Convert integers to topic partitions, in the given order."""
        codes = np.array([self.topic_of[partition] for partition in numbered], dtype=np.int32)
        numbers = np.array([self.number_of[partition] for partition in numbered], dtype=np.int32)
        return Partitions(self.topics, codes, numbers)

    def by_partition_then_topic(self) -> list[int]:
        """Return sort keys that order partitions by partition number, then topic."""
        pairs = zip(self.number_of, self.topic_of, strict=True)
        return [number * len(self.topics) + topic for number, topic in pairs]

    def named(self, partition: int) -> TopicPartition:
        """Convert an integer to the topic partition that it identifies."""
        return TopicPartition(self.topics[self.topic_of[partition]], self.number_of[partition])

    def hash_code(self, partition: int) -> int:
        """Return Java's hash code of the topic partition that an integer identifies."""
        return topic_partition_hash(*self.named(partition))

    def _positions_of(self, topics: tuple[str, ...]) -> NDArray[np.int64]:
        if topics not in self._positions:
            found = [self.position.get(topic, -1) for topic in topics]
            self._positions[topics] = np.array(found, dtype=np.int64)
        return self._positions[topics]

    def _phantom(self, topic: int, number: int) -> int:
        key = (topic, number)
        if key not in self._phantoms:
            self._phantoms[key] = self.size + len(self._phantoms)
            self.topic_of.append(topic)
            self.number_of.append(number)
        return self._phantoms[key]


class RackInfo:
    """Racks of the consumers and of the replicas of each partition."""

    def __init__(
        self,
        table: PartitionTable,
        partitions_per_topic: Mapping[str, group_model.Topic],
        racks: Mapping[int, str],
    ) -> None:
        self.consumer_racks: Mapping[int, str] = {}
        self.partition_racks: list[frozenset[str]] = []
        self._num_consumers_by_partition: list[int] = []
        if not racks:
            return
        consumers_by_rack: dict[str, int] = {}
        for rack in racks.values():
            consumers_by_rack[rack] = consumers_by_rack.get(rack, 0) + 1
        partition_racks = [
            known for topic in table.topics for known in rack_sets(partitions_per_topic[topic])
        ]
        if use_rack_aware_assignment(consumers_by_rack, partition_racks):
            self.consumer_racks = racks
            self.partition_racks = partition_racks
        self._num_consumers_by_partition = [
            sum(consumers_by_rack.get(rack, 0) for rack in sorted(known))
            for known in partition_racks
        ]

    def racks_mismatch(self, consumer: int, partition: int) -> bool:
        """Return whether a consumer's rack is known and contains no replica of the partition."""
        rack = self.consumer_racks.get(consumer)
        if rack is None:
            return False
        return partition >= len(self.partition_racks) or rack not in self.partition_racks[partition]

    def sort_partitions_by_rack_consumers(self, partitions: list[int]) -> list[int]:
        """Sort partitions by the number of consumers in the racks of their replicas."""
        if not self._num_consumers_by_partition:
            return partitions
        # Tie-break: the sort is stable.
        return sorted(partitions, key=self._num_consumers_by_partition.__getitem__)

    def next_rack_consumer(self, partition: int, consumers: list[int], first_index: int) -> int:
        """Return the index of the next consumer in the rack of a replica; -1 if none exists."""
        racks = self.partition_racks[partition]
        if not racks:
            return -1
        for step in range(len(consumers)):
            index = (first_index + step) % len(consumers)
            if self.consumer_racks.get(consumers[index]) in racks:
                return index
        return -1
