"""Port of Kafka's ``StickyAssignor`` for eager rebalancing.

Upstream: org.apache.kafka.clients.consumer.StickyAssignor, kafka-clients 4.4.0. Owned
partitions and their generation are in the assignor's user data.
"""

from kassay.reference.assignors.client.abstract_sticky import MemberData, assign_partitions
from kassay.reference.assignors.client.rebalance_input import MemberSubscription
from kassay.reference.java_collections import computed_order
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import NO_GENERATION, Group
from kassay.reference.model.topic_partitions import Partitions


def assign(group: Group) -> Assignment:
    """Keep owned partitions where possible, and balance the loads by single moves."""
    return assign_partitions(group, _member_data).named()


def _member_data(subscription: MemberSubscription, ordered: bool) -> MemberData:
    claimed = subscription.claimed
    return MemberData(
        _group_partitions_by_topic(claimed) if ordered else claimed,
        subscription.user_data_generation if subscription.sticky_data_version else NO_GENERATION,
    )


def _group_partitions_by_topic(claimed: Partitions) -> Partitions:
    """Group partitions by topic, in the order of the hash map that encodes the user data."""
    indices: dict[str, list[int]] = {}
    names = [claimed.topics[code] for code in claimed.codes.tolist()]
    for index, topic in enumerate(names):
        indices.setdefault(topic, []).append(index)
    if len(indices) < 2:
        return claimed
    # Tie-break: each partition is a look-up; one after the last new topic can resize the map.
    looked_up = [*indices, *names[-1:]] if len(indices[names[-1]]) > 1 else indices
    order = [index for topic in computed_order(looked_up) for index in indices[topic]]
    return Partitions(claimed.topics, claimed.codes[order], claimed.numbers[order])
