"""Port of the ZooKeeper consumer's range assignor.

Upstream: kafka.consumer.RangeAssignor, Kafka 0.8 to 1.1.
"""

from kassay.reference.assignors.zookeeper_consumer import consumer_threads
from kassay.reference.assignors.zookeeper_consumer.consumer_threads import ThreadAssignment
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition


def assign(group: Group) -> Assignment:
    """Divide each topic's partitions into ranges, one per consumer thread in sorted order."""
    return consumer_threads.by_member(group, assign_threads(group))


def assign_threads(group: Group) -> ThreadAssignment:
    """Assign each partition to a consumer thread; process topics in name order."""
    topics = group.topic_table()
    assignment: ThreadAssignment = {}
    for topic, threads in consumer_threads.consumers_for_topic(group).items():
        partitions = topics[topic].partitions if topic in topics else 0
        parts_per_thread, threads_with_extra_part = divmod(partitions, len(threads))
        for position, thread in enumerate(threads):
            start = parts_per_thread * position + min(position, threads_with_extra_part)
            parts = parts_per_thread + (1 if position < threads_with_extra_part else 0)
            for number in range(start, start + parts):
                assignment[TopicPartition(topic, number)] = thread
    return assignment
