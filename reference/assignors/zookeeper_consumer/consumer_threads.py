"""Consumer threads (streams) of the ZooKeeper consumer.

Upstream: kafka.consumer.AssignmentContext and ConsumerThreadId, Kafka 0.8 to 1.1. A
consumer has a number of streams per topic, one thread per stream. Partitions are assigned to
threads, not to consumers.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kassay.reference.java.hash_codes import utf16_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition


class Thread(NamedTuple):
    """A consumer thread. The threads of a consumer are numbered from 0."""

    consumer: str
    number: int

    def __str__(self) -> str:
        """Return the name of the thread in ZooKeeper."""
        return f"{self.consumer}-{self.number}"


ThreadAssignment = dict[TopicPartition, Thread]
"""Thread of each partition, in the order of the assignment."""


def consumers_for_topic(group: Group) -> dict[str, list[Thread]]:
    """Return the sorted consumer threads of each subscribed topic.

    Threads are sorted as text: 10 before 2.
    """
    threads: dict[str, list[Thread]] = {}
    for member in group.members:
        streams = dict(member.streams)
        for topic in member.subscription:
            for number in range(streams.get(topic, 1)):
                threads.setdefault(topic, []).append(Thread(member.id, number))
    return {
        topic: sorted(threads[topic], key=lambda thread: utf16_key(str(thread)))
        for topic in sorted(threads, key=utf16_key)
    }


def by_member(group: Group, assignment: Mapping[TopicPartition, Thread]) -> Assignment:
    """Merge the partitions of each consumer's threads, in the order of the assignment."""
    lists: dict[str, list[TopicPartition]] = {member.id: [] for member in group.members}
    for partition, thread in assignment.items():
        lists[thread.consumer].append(partition)
    return Assignment(lists)
