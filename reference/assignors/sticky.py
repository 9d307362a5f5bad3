"""Port of Kafka's ``StickyAssignor``, the eager one.

Upstream: org.apache.kafka.clients.consumer.StickyAssignor, kafka-clients 4.4.0. Its
members' memory, partitions and generation, travels in its own user data.
"""

import numpy as np

from reference.assignment import Assignment
from reference.assignors.abstract_sticky import MemberData, assign_partitions
from reference.assignors.client import Subscription
from reference.group import Group
from reference.hashmap import HashMap
from reference.java import string_hash, utf16_key
from reference.partitions import Partitions


def assign(group: Group) -> Assignment:
    """Balance the load as far as direct transfers can, and keep in place what can stay.

    Raises
    ------
    UpstreamFailure
        If the real class throws an exception on this group.
    Livelock
        If the real class would never return.

    Examples
    --------
    >>> from reference.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),),
    ...     members=(
    ...         Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1), ("t", 2)]),
    ...         Member(id="b", subscription=("t",)),
    ...     ),
    ... )
    >>> dict(assign(group))
    {'a': Partitions([t-0, t-1]), 'b': Partitions([t-2, t-3])}
    """
    return assign_partitions(group, _member_data).named()


def _member_data(subscription: Subscription, ordered: bool) -> MemberData:
    claimed = subscription.claimed
    return MemberData(
        _group_partitions_by_topic(claimed) if ordered else claimed,
        subscription.data_generation,
    )


def _group_partitions_by_topic(claimed: Partitions) -> Partitions:
    """Sort by topic as user data are written: in the order of a hash map of topics."""
    codes, firsts = np.unique(claimed.codes, return_index=True)
    if len(codes) < 2:
        return claimed
    by_topic: HashMap[str, None] = HashMap(string_hash, sort_key=utf16_key)
    # Looking the last partition's topic up can resize the map once more.
    for index in sorted({*firsts.tolist(), len(claimed) - 1}):
        by_topic.compute_if_absent(claimed.topics[claimed.codes[index]], lambda _: None)
    place = {topic: index for index, topic in enumerate(by_topic)}
    places = np.array([place.get(topic, -1) for topic in claimed.topics])
    order = np.argsort(places[claimed.codes], kind="stable")
    return Partitions(claimed.topics, claimed.codes[order], claimed.numbers[order])
