"""Port of the broker's ``RangeAssignor`` (KIP-848).

Upstream: org.apache.kafka.coordinator.group.assignor.RangeAssignor, group-coordinator
4.4.0. Upstream adds the ranges one after the other; the port computes all of them with arrays.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kassay.reference.assignors.broker.rebalance_input import (
    GroupSpec,
    TopicId,
    group_spec,
    hash_order,
)
from kassay.reference.java_collections import capacity_for
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import Column, Partitions


def assign(group: Group) -> Assignment:
    """Assign each member a range of partitions per subscribed topic, static members first."""
    spec = group_spec(group)
    members = spec.sort_member_ids()
    if not members:
        return Assignment({})
    # Tie-break: homogeneous groups use the topic order of the first member.
    subscribed = [spec.subscribed[members[0] if spec.homogeneous else m] for m in members]
    index = {topic: number for number, topic in enumerate(spec.topics)}
    arrays = {
        topics: np.array([index[topic] for topic in topics], dtype=np.int32)
        for topics in dict.fromkeys(subscribed)
    }
    topics = np.concatenate([arrays[each] for each in subscribed])
    starts, sizes = _ranges(spec, topics)
    rows, row_ends = _rows_in_hash_order(spec, members, subscribed, sizes > 0)
    topics, starts, sizes = topics[rows], starts[rows], sizes[rows]
    ends = sizes.cumsum()
    codes = topics.repeat(sizes)
    numbers = np.arange(len(codes)) + (starts - ends + sizes).repeat(sizes)
    names = tuple(topic.name for topic in spec.topics.values())
    assigned = Partitions(names, codes, numbers.astype(np.int32))
    lists = assigned.split([int(ends[end - 1]) if end else 0 for end in row_ends])
    by_member = dict(zip(members, lists, strict=True))
    return Assignment({member: by_member[member] for member in spec.members})


def _ranges(spec: GroupSpec, topics: Column) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first partition and the size of each range.

    ``topics`` contains the index of a topic per range. The ranges of a topic follow each other.
    """
    num_partitions = np.array([topic.partitions for topic in spec.topics.values()], dtype=np.int64)
    num_members = np.bincount(topics, minlength=len(num_partitions))
    quotas, extras = np.divmod(num_partitions, np.maximum(num_members, 1))
    by_topic = topics.argsort(kind="stable")
    ranks = np.empty(len(topics), dtype=np.int64)  # number of earlier ranges of the topic
    first_ranges = num_members.cumsum() - num_members
    ranks[by_topic] = np.arange(len(topics)) - first_ranges.repeat(num_members)
    starts = ranks * quotas[topics] + np.minimum(ranks, extras[topics])
    return starts, quotas[topics] + (ranks < extras[topics])


def _rows_in_hash_order(
    spec: GroupSpec,
    members: Sequence[str],
    subscribed: Sequence[tuple[TopicId, ...]],
    present: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], list[int]]:
    """Return the rows of each member's ``present`` topics in the order of its hash map.

    The second result is the end of each member's rows.
    """
    orders: dict[tuple[tuple[TopicId, ...], bytes, int], NDArray[np.int64]] = {}
    rows, ends, start, end = [], [], 0, 0
    for member, topics in zip(members, subscribed, strict=True):
        flags = present[start : start + len(topics)]
        # Tie-break: the capacity of the map is the number of known topics in homogeneous groups,
        # otherwise the number of all subscribed names.
        names = topics if spec.homogeneous else spec.members[member].subscription
        key = (topics, flags.tobytes(), capacity_for(len(names)))
        if key not in orders:
            position = {topics[row]: row for row in np.flatnonzero(flags).tolist()}
            order = [position[topic] for topic in hash_order(position, capacity=key[2])]
            orders[key] = np.array(order, dtype=np.int64)
        rows.append(orders[key] + start)
        start += len(topics)
        end += len(orders[key])
        ends.append(end)
    return np.concatenate(rows), ends
