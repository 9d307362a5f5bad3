"""What the client assignors share: how a group reaches the leader's assignor.

Upstream: org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor and
ConsumerProtocol, kafka-clients 4.4.0.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kassay.reference.java.hash_order import string_order
from kassay.reference.java.strings import utf16_key
from kassay.reference.model.group import (
    NO_GENERATION,
    USER_DATA_WITHOUT_GENERATION,
    Group,
    Member,
    Topic,
)
from kassay.reference.model.result_cache import cached
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions

VERSION_WITH_OWNED = 1
VERSION_WITH_GENERATION = 2
VERSION_WITH_RACK = 3

RackSets = tuple[frozenset[str], ...]
"""For each partition of a topic the known racks of its replicas."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """A member as the leader's assignor sees it, after the wire has had its say.

    Parameters
    ----------
    topics
        Topics it subscribes to, sorted by name: so they are written.
    claimed
        Partitions it owns, in the order of the group document.
    generation
        Generation in the subscription, `NO_GENERATION` where the subscription has none.
    remembered_generation
        Generation in which it got ``claimed``; it goes into the assignor's user data.
    sticky_data_version
        Version of the sticky assignor's user data: 0 has no generation, 1 has.
    sends_owned
        Whether the subscription's version carries ``claimed``.
    rack
        Its rack, None if it states none.
    instance_id
        Its ``group.instance.id``, None for a dynamic member.
    """

    topics: tuple[str, ...]
    claimed: Partitions
    generation: int
    remembered_generation: int
    sticky_data_version: int
    sends_owned: bool
    rack: str | None
    instance_id: str | None

    @property
    def owned_partitions(self) -> Partitions:
        """Owned partitions in the subscription itself, in no particular order."""
        return self.claimed if self.sends_owned else NO_PARTITIONS


@cached
def subscriptions(group: Group) -> Mapping[str, MemberSubscription]:
    """Return the members' subscriptions in the order of the leader's hash map.

    Examples
    --------
    >>> group = Group(topics=(), members=(Member(id="c10", subscription=("b", "a")),))
    >>> subscriptions(group)["c10"].topics
    ('a', 'b')
    """
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
    stated = member.generation if member.sub_generation is None else member.sub_generation
    version = member.protocol_version
    return MemberSubscription(
        topics=topics,
        claimed=member.owned,
        generation=stated if version >= VERSION_WITH_GENERATION else NO_GENERATION,
        remembered_generation=member.generation,
        sticky_data_version=0 if member.user_data == USER_DATA_WITHOUT_GENERATION else 1,
        sends_owned=version >= VERSION_WITH_OWNED,
        rack=(member.rack or None) if version >= VERSION_WITH_RACK else None,
        instance_id=member.instance_id,
    )


@cached
def partitions_per_topic(group: Group) -> Mapping[str, Topic]:
    """Return the subscribed topics that have partitions, in the order of upstream's map."""
    topics = group.topic_table()
    subscribed: dict[str, None] = {}
    members = subscriptions(group).values()
    for distinct in dict.fromkeys(subscription.topics for subscription in members):
        subscribed.update(dict.fromkeys(distinct))
    known = [
        name for name in string_order(subscribed) if name in topics and topics[name].partitions > 0
    ]
    return {name: topics[name] for name in string_order(known)}


def member_order(
    subscriptions: Mapping[str, MemberSubscription], members: Iterable[str]
) -> list[str]:
    """Sort members: static ones first by instance id, then dynamic ones by member id.

    The sort is stable, as upstream's: members of one instance id keep their order.
    """

    def key(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].instance_id
        return (instance is None, utf16_key(member if instance is None else instance))

    return sorted(members, key=key)


def rack_sets(topic: Topic) -> RackSets:
    """Return the known racks of each partition's replicas."""
    if topic.racks is None:
        return (frozenset(),) * topic.partitions
    return tuple(frozenset(r for r in racks if r is not None) for racks in topic.racks)


def use_rack_aware_assignment(
    consumer_racks: Collection[str], racks_per_partition: Collection[frozenset[str]]
) -> bool:
    """Tell whether racks can make a difference.

    They do if members and partitions have a rack in common and some partition is not in
    all the racks that partitions are in.
    """
    partition_racks = frozenset[str]().union(*racks_per_partition)
    if partition_racks.isdisjoint(consumer_racks):
        return False
    return any(racks != partition_racks for racks in racks_per_partition)
