"""Partitions as integers, so that the sticky ports can be fast and still read plainly.

The integers follow the order in which upstream's general algorithm sorts partitions:
topics by number of subscribers, then name; within a topic by partition number. Where all
members subscribe to the same topics, that is the order by topic and partition.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from reference.assignors.client import Subscription
from reference.group import Topic
from reference.java import topic_partition_hash, utf16_key
from reference.partitions import Partitions, TopicPartition


class PartitionTable:
    """All partitions of the subscribed topics, numbered from 0.

    A claim to a partition beyond its topic's count (a *phantom*) gets a number of its own
    behind all others: upstream checks only that the topic exists.

    Parameters
    ----------
    partitions_per_topic
        Subscribed topics that have partitions.
    subscriptions
        The members' subscriptions.
    """

    def __init__(
        self,
        partitions_per_topic: Mapping[str, Topic],
        subscriptions: Mapping[str, Subscription],
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
        codes = np.arange(len(self.topics), dtype=np.int64)
        self.topic_of: list[int] = np.repeat(codes, self.counts).tolist()
        starts = np.repeat(np.array(self.first[:-1], dtype=np.int64), self.counts)
        self.number_of: list[int] = (np.arange(self.size) - starts).tolist()
        self._phantoms: dict[tuple[int, int], int] = {}

    @property
    def has_phantoms(self) -> bool:
        """Whether somebody claimed a partition that does not exist."""
        return bool(self._phantoms)

    def range_of(self, topic: int) -> range:
        """Return the partitions of a topic, given by position."""
        return range(self.first[topic], self.first[topic + 1])

    def intern(self, claimed: Partitions) -> list[int]:
        """Return the numbers of claimed partitions in their order, but for unknown topics."""
        if not len(claimed):
            return []
        positions = np.array([self.position.get(name, -1) for name in claimed.topics])
        counts = np.array([*self.counts, 0], dtype=np.int64)
        first = np.array(self.first, dtype=np.int64)
        topic = positions[claimed.codes]
        known = topic >= 0
        topic, number = topic[known], claimed.numbers[known].astype(np.int64)
        numbered = first[topic] + number
        for place in np.flatnonzero(number >= counts[topic]).tolist():
            numbered[place] = self._phantom(int(topic[place]), int(number[place]))
        result: list[int] = numbered.tolist()
        return result

    def unassigned(self, assigned: Iterable[int]) -> list[int]:
        """Return all partitions but the assigned ones, as upstream's two pointers find them.

        Its pointer into the sorted assigned partitions waits for ever at a phantom, so
        that every partition sorted behind it counts as unassigned, even if it is not.
        """
        free = bytearray(b"\x01") * self.size
        stop = self.size
        beyond: list[int] = []
        for partition in assigned:
            if partition < self.size:
                free[partition] = 0
            else:
                beyond.append(partition)
        for partition in beyond:
            stop = min(stop, self.first[self.topic_of[partition] + 1])
        free[stop:] = b"\x01" * (self.size - stop)
        return np.flatnonzero(np.frombuffer(free, dtype=np.uint8)).tolist()

    def partitions(self, numbered: list[int]) -> Partitions:
        """Return the named partitions in the given order."""
        topic_of, number_of = self.topic_of, self.number_of
        return Partitions(
            self.topics,
            np.array([topic_of[p] for p in numbered], dtype=np.int32),
            np.array([number_of[p] for p in numbered], dtype=np.int32),
        )

    def named(self, partition: int) -> TopicPartition:
        """Return one partition by name."""
        return TopicPartition(self.topics[self.topic_of[partition]], self.number_of[partition])

    def hash_code(self, partition: int) -> int:
        """Return Java's hash code of one partition."""
        return topic_partition_hash(*self.named(partition))

    def _phantom(self, topic: int, number: int) -> int:
        key = (topic, number)
        if key not in self._phantoms:
            self._phantoms[key] = self.size + len(self._phantoms)
            self.topic_of.append(topic)
            self.number_of.append(number)
        return self._phantoms[key]
