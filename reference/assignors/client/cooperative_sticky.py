"""Port of Kafka's ``CooperativeStickyAssignor``.

Upstream: org.apache.kafka.clients.consumer.CooperativeStickyAssignor, kafka-clients
4.4.0. Owned partitions are in the subscriptions.
"""

import numpy as np

from kassay.reference.assignors.client.abstract_sticky import MemberData, Result, assign_partitions
from kassay.reference.assignors.client.rebalance_input import MemberSubscription, subscriptions
from kassay.reference.java_collections import utf16_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import NO_GENERATION, Group
from kassay.reference.model.topic_partitions import Partitions


def assign(group: Group) -> Assignment:
    """Assign like the sticky assignor, but withhold partitions until their owner revokes them.

    The next rebalance assigns them, after their revocation.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=3),),
    ...     members=(
    ...         Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1), ("t", 2)]),
    ...         Member(id="b", subscription=("t",)),
    ...     ),
    ... )
    >>> dict(assign(group))
    {'a': Partitions([t-0, t-1]), 'b': Partitions([])}
    """
    result = assign_partitions(group, _member_data)
    transferring = result.transferring
    if transferring is None:
        transferring = _compute_partitions_transferring_ownership(group, result)
    for partition, consumer in transferring.items():
        result.assignment[consumer].remove(partition)
    return result.named()


def _member_data(subscription: MemberSubscription, ordered: bool) -> MemberData:
    owned = subscription.owned_partitions
    generation = subscription.generation
    return MemberData(
        _sorted_as_encoded(owned) if ordered else owned,
        subscription.user_data_generation if generation == NO_GENERATION else generation,
    )


def _sorted_as_encoded(owned: Partitions) -> Partitions:
    """Sort partitions by topic and number, as the consumer protocol encodes them."""
    by_name = sorted(range(len(owned.topics)), key=lambda code: utf16_key(owned.topics[code]))
    rank = np.empty(len(by_name), dtype=np.int64)
    rank[by_name] = np.arange(len(by_name))
    order = np.lexsort((owned.numbers, rank[owned.codes]))
    return Partitions(owned.topics, owned.codes[order], owned.numbers[order])


def _compute_partitions_transferring_ownership(group: Group, result: Result) -> dict[int, int]:
    """Return the partitions that change their consumer, with the new consumers."""
    owned_by = {m: s.owned_partitions for m, s in subscriptions(group).items()}
    added: dict[int, int] = {}
    revoked: set[int] = set()
    for consumer, assigned in result.assignment.items():
        owned = result.table.intern(owned_by[result.members[consumer]])
        kept = frozenset(owned)
        added.update((partition, consumer) for partition in assigned if partition not in kept)
        revoked.update(frozenset(owned).difference(assigned))
    return {partition: consumer for partition, consumer in added.items() if partition in revoked}
