"""Ports of the ZooKeeper consumer's assignors: range and round robin.

Upstream: kafka.consumer.RangeAssignor, RoundRobinAssignor, AssignmentContext and ConsumerThreadId,
Kafka 0.8 to 1.1. A consumer has a number of streams per topic, one thread per stream. Partitions
are assigned to threads, not to consumers.
"""

from collections.abc import Mapping
from itertools import cycle
from typing import NamedTuple

from kassay.reference.java_collections import string_hash, utf16_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UpstreamError
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition


class Thread(NamedTuple):
    """A consumer thread. The threads of a consumer are numbered from 0."""

    consumer: str
    number: int

    def __str__(self) -> str:
        return f"{self.consumer}-{self.number}"


ThreadAssignment = dict[TopicPartition, Thread]
"""Thread of each partition, in the order of the assignment."""


def consumers_for_topic(group: Group) -> dict[str, list[Thread]]:
    """Return the consumer threads of each topic, sorted by name as text."""
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


def assign_range(group: Group) -> Assignment:
    """Divide each topic's partitions into ranges, one per consumer thread in sorted order."""
    return by_member(group, range_threads(group))


def range_threads(group: Group) -> ThreadAssignment:
    """Assign a range of each topic's partitions to each consumer thread."""
    topics = group.topic_table()
    assignment: ThreadAssignment = {}
    for topic, threads in consumers_for_topic(group).items():
        partitions = topics[topic].partitions if topic in topics else 0
        parts_per_thread, threads_with_extra_part = divmod(partitions, len(threads))
        for position, thread in enumerate(threads):
            start = parts_per_thread * position + min(position, threads_with_extra_part)
            parts = parts_per_thread + (1 if position < threads_with_extra_part else 0)
            for number in range(start, start + parts):
                assignment[TopicPartition(topic, number)] = thread
    return assignment


def assign_roundrobin(group: Group) -> Assignment:
    """Assign partitions, sorted by hash code, to the sorted threads in circular order."""
    return by_member(group, roundrobin_threads(group))


def roundrobin_threads(group: Group) -> ThreadAssignment:
    """Assign partitions in circular order. Raise UpstreamError if threads of topics differ."""
    consumers = consumers_for_topic(group)
    if not consumers:
        return {}
    head_topic, head_threads = next(iter(consumers.items()))
    for topic, threads in consumers.items():
        if threads != head_threads:
            raise UpstreamError(
                "round robin requires the same threads for every topic, but "
                f"{_describe(topic, threads)} and {_describe(head_topic, head_threads)}",
                "IllegalArgumentException",
            )
    # Deviation: topics of equal hashes are sorted by name, not in the order of a Scala map.
    partitions = sorted(
        (
            TopicPartition(topic.name, number)
            for topic in sorted(group.topics, key=lambda topic: utf16_key(topic.name))
            if topic.name in consumers
            for number in range(topic.partitions)
        ),
        key=lambda tp: string_hash(f"[{tp.topic},{tp.partition}]"),
    )
    return dict(zip(partitions, cycle(head_threads), strict=False))


def _describe(topic: str, threads: list[Thread]) -> str:
    return f"topic {topic!r} has [{', '.join(str(thread) for thread in threads)}]"
