"""Port of the ZooKeeper consumer's round robin assignor.

Upstream: kafka.consumer.RoundRobinAssignor, Kafka 0.8.2 to 1.1.
"""

from itertools import cycle

from kassay.reference.assignors.legacy.consumer_threads import (
    Thread,
    ThreadAssignment,
    by_member,
    consumers_for_topic,
)
from kassay.reference.java.strings import string_hash, utf16_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import UpstreamError
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition


def assign(group: Group) -> Assignment:
    """Deal all partitions, shuffled by a hash, round the sorted threads.

    Raises
    ------
    UpstreamFailure
        If two topics do not have the same threads: upstream refuses such groups.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),),
    ...     members=tuple(Member(id=m, subscription=("t",)) for m in ("a", "b")),
    ... )
    >>> dict(assign(group))
    {'a': Partitions([t-0, t-2]), 'b': Partitions([t-1, t-3])}
    """
    return by_member(group, assign_threads(group))


def assign_threads(group: Group) -> ThreadAssignment:
    """Return the thread of each partition, in the order of dealing.

    Raises
    ------
    UpstreamFailure
        If two topics do not have the same threads.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> member = Member(id="a", subscription=("t",), streams=(("t", 2),))
    >>> group = Group(topics=(Topic(name="t", partitions=3),), members=(member,))
    >>> [str(thread) for thread in assign_threads(group).values()]
    ['a-0', 'a-1', 'a-0']
    """
    consumers = consumers_for_topic(group)
    if not consumers:
        return {}
    head_topic, head_threads = next(iter(consumers.items()))
    for topic, threads in consumers.items():
        if threads != head_threads:
            raise UpstreamError(
                "IllegalArgumentException",
                "round robin needs the same threads on every topic: "
                f"{_listed(topic, threads)}, {_listed(head_topic, head_threads)}",
            )
    # Of equal hashes upstream's order is that of a Scala map of topics; here it is theirs.
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


def _listed(topic: str, threads: list[Thread]) -> str:
    return f"topic {topic!r} has {', '.join(str(thread) for thread in threads)}"
