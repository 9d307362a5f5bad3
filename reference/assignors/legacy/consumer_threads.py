"""What the assignors of the ZooKeeper consumer share: its threads, and their order.

Upstream: kafka.consumer.AssignmentContext and ConsumerThreadId, Kafka 0.8 to 1.1. A
consumer asks for a number of streams per topic; each stream has a thread, and threads,
not consumers, get partitions.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kassay.reference.java.strings import utf16_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member
from kassay.reference.model.topic_partitions import TopicPartition


class Thread(NamedTuple):
    """One consumer thread.

    Parameters
    ----------
    consumer
        Id of the consumer it belongs to.
    number
        Its number, from 0.

    Examples
    --------
    >>> str(Thread("group_host-1520000000000-5c3f1a2b", 10))
    'group_host-1520000000000-5c3f1a2b-10'
    """

    consumer: str
    number: int

    def __str__(self) -> str:
        """Write it as its owner node in ZooKeeper has it."""
        return f"{self.consumer}-{self.number}"


ThreadAssignment = dict[TopicPartition, Thread]
"""The thread of each partition, in the order in which they were given out."""


def consumers_for_topic(group: Group) -> dict[str, list[Thread]]:
    """For each topic subscribed to, with or without metadata, its threads in order.

    Threads compare as text, so that number 10 comes before number 2.

    Examples
    --------
    >>> member = Member(id="c", subscription=("t",), streams=(("t", 11),))
    >>> threads = consumers_for_topic(Group(topics=(), members=(member,)))["t"]
    >>> [thread.number for thread in threads][:4]
    [0, 1, 10, 2]
    """
    threads: dict[str, list[Thread]] = {}
    for member in group.members:
        for topic, thread in _threads(member):
            threads.setdefault(topic, []).append(thread)
    return {
        topic: sorted(threads[topic], key=lambda thread: utf16_key(str(thread)))
        for topic in sorted(threads, key=utf16_key)
    }


def by_member(group: Group, assignment: Mapping[TopicPartition, Thread]) -> Assignment:
    """Put the partitions of each consumer's threads together, in the order given out."""
    lists: dict[str, list[TopicPartition]] = {member.id: [] for member in group.members}
    for partition, thread in assignment.items():
        lists[thread.consumer].append(partition)
    return Assignment(lists)


def _threads(member: Member) -> Iterator[tuple[str, Thread]]:
    streams = dict(member.streams)
    for topic in member.subscription:
        for number in range(streams.get(topic, 1)):
            yield topic, Thread(member.id, number)
