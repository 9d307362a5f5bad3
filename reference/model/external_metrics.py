"""Balance metrics of other tools: Kafka, Cruise Control, topicmappr.

kassay does not minimise them; its objectives are in `kassay.reference.model.metrics`.
"""

import math
from collections.abc import Sequence

import numpy as np

from kassay.reference.model.assignment import Assignment, held_counts
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import balance_score, spread
from kassay.reference.model.ownership import subscription_mask
from kassay.reference.model.topic_partitions import TopicPartition

CRUISE_CONTROL_BAND = 9  # percent


def kafka_balance_score(group: Group, assignment: Assignment) -> int:
    """Return Kafka's balance score over the members that can participate in a reassignment.

    A member participates if it subscribes to more partitions than it has, or has one of a
    topic with several subscribers. The score counts partitions and ignores weights.
    Source: ``AbstractStickyAssignor.getBalanceScore`` and
    ``canConsumerParticipateInReassignment``, kafka-clients 4.4.0.
    """
    held = held_counts(group, assignment)
    shared = subscription_mask(group).sum(axis=0) > 1
    has_shared = held[shared].any(axis=0).tolist()
    counts = held.sum(axis=0).tolist()
    # Number of subscribed partitions per member.
    sizes = np.array([topic.partitions for topic in group.topics], dtype=np.int64)
    reachable = (subscription_mask(group) @ sizes).tolist()
    return balance_score(
        [
            counts[index]
            for index in group.participant_indices
            if counts[index] < reachable[index] or has_shared[index]
        ]
    )


def kafka_is_balanced(group: Group, assignment: Assignment) -> bool:
    """Return whether Kafka's sticky assignors accept the assignment as balanced.

    True if partition counts differ by at most one, or if no direct transfer improves them. A chain
    of transfers can still improve them. Source: ``AbstractStickyAssignor.isBalanced``,
    kafka-clients 4.4.0.
    """
    held = held_counts(group, assignment)
    counts = held.sum(axis=0)
    if spread(counts[list(group.participant_indices)].tolist()) <= 1:
        return True
    fullest = np.where(held > 0, counts, 0).max(axis=1)
    gains = fullest > counts[:, np.newaxis] + 1
    return not bool((gains & subscription_mask(group)).any())


def balancedness(loads: Sequence[int]) -> float:
    """Return the percentage of members with a load in Cruise Control's band, mean +/- 9 %.

    Cruise Control combines many goals by priority; this is the goal of even load alone.
    """
    total = sum(loads)
    outside = [100 * abs(len(loads) * load - total) > CRUISE_CONTROL_BAND * total for load in loads]
    return 100.0 * (1 - sum(outside) / len(loads)) if loads else 100.0


def standard_deviation(loads: Sequence[int]) -> float:
    """Return the population standard deviation of the loads, as topicmappr reports it."""
    if not loads:
        return 0.0
    total = sum(loads)
    return math.sqrt(sum((len(loads) * load - total) ** 2 for load in loads) / len(loads) ** 3)


def range_spread(loads: Sequence[int]) -> float:
    """Return topicmappr's range spread of the loads: (max - min) / min in percent.

    It is infinite if min is 0.
    """
    if not loads or max(loads) == min(loads):
        return 0.0
    smallest = min(loads)
    return math.inf if smallest == 0 else 100.0 * (max(loads) - smallest) / smallest


def has_racks(group: Group) -> bool:
    """Return whether at least one member and one replica have a known rack."""
    return any(member.rack is not None for member in group.members) and bool(replica_racks(group))


def replica_racks(group: Group) -> dict[TopicPartition, frozenset[str]]:
    """Return the racks of the replicas of each partition, if known."""
    return {
        TopicPartition(topic.name, number): frozenset(known)
        for topic in group.topics
        for number, racks in enumerate(topic.racks or ())
        if (known := [rack for rack in racks if rack is not None])
    }


def off_rack(group: Group, assignment: Assignment) -> int:
    """Count the assigned partitions that have no replica in the rack of their member.

    Members without a rack, and partitions without a known rack, do not count. Kafka Streams'
    traffic cost is a multiple of this count.
    """
    known = replica_racks(group)
    if not known:
        return 0
    return sum(
        member.rack not in known[tp]
        for member in group.members
        if member.rack is not None and member.id in assignment
        for tp in assignment[member.id]
        if tp in known
    )


def per_topic_spread(group: Group, assignment: Assignment) -> int:
    """Return the sum over topics of the spread of partitions per subscriber.

    The spread of a topic is the maximum minus the minimum.
    """
    held, subscribed = held_counts(group, assignment), subscription_mask(group).T
    consumed = subscribed.any(axis=1)
    held, subscribed = held[consumed], subscribed[consumed]
    if not held.size:
        return 0
    largest = np.where(subscribed, held, 0).max(axis=1)
    smallest = np.where(subscribed, held, np.iinfo(np.int64).max).min(axis=1)
    return int((largest - smallest).sum())
