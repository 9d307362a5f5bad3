"""Table that numbers partitions by integers, which makes the ports of sticky assignors fast.

The integers are in the order of Kafka's general algorithm: topics by number of
subscribers, then name; within a topic by partition number. With equal subscriptions this is
the order by topic and partition.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from kassay.reference.assignors.client.rebalance_input import MemberSubscription
from kassay.reference.java.hash_codes import topic_partition_hash, utf16_key
from kassay.reference.model.group import Topic
from kassay.reference.model.topic_partitions import Partitions, TopicPartition


class PartitionTable:
    """All partitions of the subscribed topics, numbered from 0.

    A claimed partition beyond its topic's count (a *phantom*) gets a number after all
    others: upstream checks only that the topic exists.
    """

    def __init__(
        self,
        partitions_per_topic: Mapping[str, Topic],
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
        codes = np.arange(len(self.topics), dtype=np.int64)
        self._topic_column = np.repeat(codes, self.counts)
        self._number_column = np.arange(self.size) - self._first[self._topic_column]
        self.topic_of: list[int] = self._topic_column.tolist()
        self.number_of: list[int] = self._number_column.tolist()
        self._phantoms: dict[tuple[int, int], int] = {}
        self._positions: dict[tuple[str, ...], NDArray[np.int64]] = {}

    def range_of(self, topic: int) -> range:
        """Return the integers that identify the partitions of a topic."""
        return range(self.first[topic], self.first[topic + 1])

    def intern(self, claimed: Partitions) -> list[int]:
        """Convert claimed partitions to integers, in order. Skip unknown topics."""
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
        topics, numbers = self._columns()
        chosen = np.array(numbered, dtype=np.int64)
        return Partitions(
            self.topics, topics[chosen].astype(np.int32), numbers[chosen].astype(np.int32)
        )

    def by_partition_then_topic(self) -> list[int]:
        """Return sort keys that order partitions by partition number, then topic."""
        topics, numbers = self._columns()
        keys: list[int] = (numbers * len(self.topics) + topics).tolist()
        return keys

    def named(self, partition: int) -> TopicPartition:
        """Convert an integer to the topic partition that it identifies."""
        return TopicPartition(self.topics[self.topic_of[partition]], self.number_of[partition])

    def hash_code(self, partition: int) -> int:
        """Return Java's hash code of the topic partition that an integer identifies."""
        return topic_partition_hash(*self.named(partition))

    def _columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the topic and the number of each partition, including phantoms."""
        if len(self._topic_column) < len(self.topic_of):
            self._topic_column = np.array(self.topic_of, dtype=np.int64)
            self._number_column = np.array(self.number_of, dtype=np.int64)
        return self._topic_column, self._number_column

    def _positions_of(self, topics: tuple[str, ...]) -> NDArray[np.int64]:
        """Return the position of each topic in the table, or -1 for unknown topics."""
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
