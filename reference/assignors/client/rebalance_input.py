"""Input of the client assignors.

Upstream: org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor and
ConsumerProtocol, kafka-clients 4.4.0.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kassay.reference.java.hash_codes import utf16_key
from kassay.reference.java.hash_order import string_order
from kassay.reference.model.group import (
    NO_GENERATION,
    USER_DATA_WITHOUT_GENERATION,
    Group,
    Member,
    Topic,
    cached,
)
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions

VERSION_WITH_OWNED = 1
VERSION_WITH_GENERATION = 2
VERSION_WITH_RACK = 3

RackSets = tuple[frozenset[str], ...]
"""Known racks of the replicas, per partition of a topic."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """Subscription of a member, as passed to the assignor of the group leader."""

    topics: tuple[str, ...]  # sorted by name, as encoded
    claimed: Partitions  # owned partitions, in the order of the group document
    generation: int  # NO_GENERATION if the version of the subscription has none
    user_data_generation: int  # generation of the assignment of ``claimed``
    sticky_data_version: int  # version of the sticky user data; 0 has no generation
    sends_owned: bool  # whether the version of the subscription contains ``claimed``
    rack: str | None
    instance_id: str | None

    @property
    def owned_partitions(self) -> Partitions:
        """Return the owned partitions that the subscription contains."""
        return self.claimed if self.sends_owned else NO_PARTITIONS


@cached
def subscriptions(group: Group) -> Mapping[str, MemberSubscription]:
    """Return the members' subscriptions in the order of the group leader's hash map."""
    by_id = {member.id: member for member in group.members}
    sorted_topics: dict[tuple[str, ...], tuple[str, ...]] = {}
    for member in group.members:
        if member.subscription not in sorted_topics:
            sorted_topics[member.subscription] = tuple(sorted(member.subscription, key=utf16_key))
    return {
        member_id: _subscription(by_id[member_id], sorted_topics[by_id[member_id].subscription])
        for member_id in string_order(by_id)
    }


def _subscription(member: Member, topics: tuple[str, ...]) -> MemberSubscription:
    generation = member.generation if member.sub_generation is None else member.sub_generation
    version = member.protocol_version
    return MemberSubscription(
        topics=topics,
        claimed=member.owned,
        generation=generation if version >= VERSION_WITH_GENERATION else NO_GENERATION,
        user_data_generation=member.generation,
        sticky_data_version=0 if member.user_data == USER_DATA_WITHOUT_GENERATION else 1,
        sends_owned=version >= VERSION_WITH_OWNED,
        rack=(member.rack or None) if version >= VERSION_WITH_RACK else None,
        instance_id=member.instance_id,
    )


@cached
def partitions_per_topic(group: Group) -> Mapping[str, Topic]:
    """Return the subscribed topics that have partitions, in the order of Kafka's map."""
    topics = group.topic_table()
    distinct = dict.fromkeys(member.topics for member in subscriptions(group).values())
    subscribed = dict.fromkeys(name for names in distinct for name in names)
    known = [n for n in string_order(subscribed) if n in topics and topics[n].partitions > 0]
    return {name: topics[name] for name in string_order(known)}


def member_order(
    subscriptions: Mapping[str, MemberSubscription], members: Iterable[str]
) -> list[str]:
    """Sort members: static ones first by instance id, then dynamic ones by member id."""

    def key(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].instance_id
        return (instance is None, utf16_key(member if instance is None else instance))

    # Tie-break: the sort is stable, so members with equal instance ids keep their order.
    return sorted(members, key=key)


def rack_sets(topic: Topic) -> RackSets:
    """Return, for each partition, the set of the known racks of its replicas."""
    if topic.racks is None:
        return (frozenset(),) * topic.partitions
    return tuple(frozenset(r for r in racks if r is not None) for racks in topic.racks)


def use_rack_aware_assignment(
    consumer_racks: Collection[str], racks_per_partition: Collection[frozenset[str]]
) -> bool:
    """Return whether the rack rules of KIP-881 apply.

    The rules apply if a consumer is in the rack of a replica, and at least one partition does not
    have replicas in all racks of the replicas.
    """
    partition_racks = frozenset[str]().union(*racks_per_partition)
    if partition_racks.isdisjoint(consumer_racks):
        return False
    return any(racks != partition_racks for racks in racks_per_partition)
