"""Port of the ZooKeeper consumer's round robin assignor.

Upstream: kafka.consumer.RoundRobinAssignor, Kafka 0.8.2 to 1.1.
"""

from itertools import cycle

from kassay.reference.assignors.zookeeper_consumer import consumer_threads
from kassay.reference.assignors.zookeeper_consumer.consumer_threads import Thread, ThreadAssignment
from kassay.reference.java.hash_codes import string_hash, utf16_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import UpstreamError
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition


def assign(group: Group) -> Assignment:
    """Assign partitions, sorted by hash code, to the sorted threads in circular order."""
    return consumer_threads.by_member(group, assign_threads(group))


def assign_threads(group: Group) -> ThreadAssignment:
    """Assign each partition to a consumer thread. All topics must have the same threads."""
    consumers = consumer_threads.consumers_for_topic(group)
    if not consumers:
        return {}
    head_topic, head_threads = next(iter(consumers.items()))
    for topic, threads in consumers.items():
        if threads != head_threads:
            raise UpstreamError(
                "IllegalArgumentException",
                "round robin requires the same threads for every topic, but "
                f"{_describe(topic, threads)} and {_describe(head_topic, head_threads)}",
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
