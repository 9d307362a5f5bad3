"""Port of Kafka's ``CooperativeStickyAssignor``.

Upstream: org.apache.kafka.clients.consumer.CooperativeStickyAssignor, kafka-clients
4.4.0. Its members' memory is what their subscriptions say they own.
"""

import numpy as np

from kassay.reference.assignors.client.abstract_sticky import MemberData, Result, assign_partitions
from kassay.reference.assignors.client.rebalance_input import MemberSubscription, subscriptions
from kassay.reference.java.strings import utf16_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import NO_GENERATION, Group
from kassay.reference.model.topic_partitions import Partitions


def assign(group: Group) -> Assignment:
    """Assign as the sticky assignor does, but withhold what its owner must first give up.

    A withheld partition is assigned in the rebalance that follows the revocation.

    Raises
    ------
    UpstreamFailure
        If the real class throws an exception on this group.
    Livelock
        If the real class would never return.

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
    stated = subscription.generation
    return MemberData(
        _sorted_as_written(owned) if ordered else owned,
        subscription.remembered_generation if stated == NO_GENERATION else stated,
    )


def _sorted_as_written(owned: Partitions) -> Partitions:
    """Sort by topic and number, as the consumer protocol writes owned partitions."""
    by_name = sorted(range(len(owned.topics)), key=lambda code: utf16_key(owned.topics[code]))
    place = np.empty(len(by_name), dtype=np.int64)
    place[by_name] = np.arange(len(by_name))
    order = np.lexsort((owned.numbers, place[owned.codes]))
    return Partitions(owned.topics, owned.codes[order], owned.numbers[order])


def _compute_partitions_transferring_ownership(group: Group, result: Result) -> dict[int, int]:
    """Find the partitions added to one consumer and revoked from another."""
    owned_by = {m: s.owned_partitions for m, s in subscriptions(group).items()}
    added: dict[int, int] = {}
    revoked: set[int] = set()
    for consumer, assigned in result.assignment.items():
        owned = result.table.intern(owned_by[result.members[consumer]])
        kept = frozenset(owned)
        added.update((partition, consumer) for partition in assigned if partition not in kept)
        revoked.update(frozenset(owned).difference(assigned))
    return {partition: consumer for partition, consumer in added.items() if partition in revoked}
