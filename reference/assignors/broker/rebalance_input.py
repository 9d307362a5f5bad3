"""Input of the broker's assignors.

Upstream: org.apache.kafka.coordinator.group.modern.GroupSpecImpl and TopicIds, and
org.apache.kafka.coordinator.group.assignor.AssignorHelpers, group-coordinator 4.4.0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np

from kassay.reference.java_collections import (
    HashMap,
    IntegerSet,
    name_uuid,
    set_capacity,
    string_order,
    utf16_key,
    uuid_map,
)
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member, Topic, cached, topic_starts
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Column, Partitions, select

TopicId = int
"""Id of a topic: the 128 bits of its UUID, because integers are faster keys."""

Owned = Mapping[TopicId, Sequence[int]]
"""A member's owned partition numbers by topic id, in the order of Java's hash map and hash sets."""

Target = HashMap[TopicId, IntegerSet]
"""A copy of a member's partitions, which an assignor may change."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Input of a broker assignor: a group, limited to topics with metadata."""

    topics: Mapping[TopicId, Topic]
    members: Mapping[str, Member]  # in the order of the coordinator's hash map
    subscribed: Mapping[str, tuple[TopicId, ...]]  # in the order of each member's hash set
    owner_counts: Mapping[str, Column]  # by topic name, one number per partition
    homogeneous: bool  # whether all subscriptions are equal, unknown topics included

    def num_partitions(self, topic: TopicId) -> int:
        """Return the partition count of a topic with metadata."""
        return self.topics[topic].partitions

    def free_partitions(self, topic: TopicId) -> Sequence[int]:
        """Return the partitions of a topic with metadata that no member owns."""
        counts = self.owner_counts[self.topics[topic].name]
        free: list[int] = np.flatnonzero(counts == 0).tolist()
        return range(len(counts)) if len(free) == len(counts) else free

    def sort_member_ids(self) -> list[str]:
        """Sort members: static ones first by instance id, then dynamic ones by member id."""

        def key(member_id: str) -> tuple[bool, bytes]:
            instance = self.members[member_id].instance_id
            return (instance is None, utf16_key(member_id if instance is None else instance))

        return sorted(self.members, key=key)

    def named(self, target: Mapping[str, Owned | Target]) -> Assignment:
        """Convert an assignment with topic ids to one with topic names.

        A member without an entry gets no partitions.
        """
        return Assignment(
            {
                member: self._partitions(target[member]) if member in target else NO_PARTITIONS
                for member in self.members
            }
        )

    def _partitions(self, target: Owned | Target) -> Partitions:
        topics = tuple([self.topics[topic].name for topic in target])
        lists = [numbers for _, numbers in target.items()]
        codes = np.repeat(np.arange(len(topics), dtype=np.int32), [len(part) for part in lists])
        return Partitions(topics, codes, np.array([*chain.from_iterable(lists)], dtype=np.int32))


@cached
def group_spec(group: Group) -> GroupSpec:
    """Convert a group to the input of a broker assignor."""
    ids = {topic.name: topic.uuid.int for topic in group.topics}
    members = group.member_table()
    order = string_order(members)
    sets: dict[tuple[str, ...], tuple[TopicId, ...]] = {}
    for subscription in dict.fromkeys(member.subscription for member in group.members):
        names = string_order(subscription, capacity=set_capacity(len(subscription)))
        sets[subscription] = tuple(ids[name] for name in names if name in ids)
    return GroupSpec(
        topics={topic.uuid.int: topic for topic in group.topics},
        members={member: members[member] for member in order},
        subscribed={member: sets[members[member].subscription] for member in order},
        owner_counts=_owner_counts(group),
        homogeneous=len({frozenset(subscription) for subscription in sets}) <= 1,
    )


@cached
def member_assignments(group: Group) -> Mapping[str, Owned]:
    """Return the owned partitions of each member in the coordinator's order."""
    ids = {topic.name: topic.uuid.int for topic in group.topics}

    @lru_cache  # Most members own the same topics.
    def order_of(topics: tuple[str, ...]) -> tuple[tuple[TopicId, str], ...]:
        names = {_topic_id(name, ids): name for name in topics}
        return tuple((topic, names[topic]) for topic in hash_order(names))

    assignments: dict[str, Owned] = {}
    for member in group.members:
        # Tie-break: upstream reads them topic by topic from the group's log.
        claimed: dict[str, list[int]] = {}
        for name, number in member.owned:
            claimed.setdefault(name, []).append(number)
        assignments[member.id] = {
            topic: list(_hash_set(claimed[name])) for topic, name in order_of(tuple(claimed))
        }
    return assignments


def _owner_counts(group: Group) -> Mapping[str, Column]:
    """Count the owners of each partition."""
    starts = topic_starts(group)
    claims = starts.rows((index, member.owned) for index, member in enumerate(group.members))
    existing = starts.flat(select(claims, starts.exist(claims)))
    return starts.by_topic(np.bincount(existing, minlength=starts.size).astype(np.int32))


def _topic_id(name: str, ids: Mapping[str, TopicId]) -> TopicId:
    return ids[name] if name in ids else name_uuid(name.encode("utf-8", "surrogatepass")).int


def hash_order(topics: Iterable[TopicId], *, capacity: int | None = None) -> tuple[TopicId, ...]:
    """Return the order of topics in a hash map into which they are put in the given order."""
    table = uuid_map(capacity=capacity)
    for topic in topics:
        table.put(topic, None)
    return tuple(table)


def deep_copy_assignment(owned: Owned) -> Target:
    """Return a copy of a member's partitions, which can have another order."""
    copy: Target = uuid_map(capacity=len(owned))
    for topic, numbers in owned.items():
        copy.put(topic, _hash_set(numbers))
    return copy


def mutable_copy(partitions: Owned | Target) -> Target:
    """Return partitions that an assignor may change: a copy of owned partitions."""
    return partitions if isinstance(partitions, HashMap) else deep_copy_assignment(partitions)


def remove_partition(target: Target, topic: TopicId, number: int) -> None:
    """Remove a partition from a member's target assignment, and the topic if it becomes empty."""
    numbers = target.get(topic)
    if numbers is not None:
        numbers.remove(number)
        if not len(numbers):
            target.remove(topic)


def _hash_set(numbers: Sequence[int]) -> IntegerSet:
    """Create a set like Java's ``new HashSet(collection)``."""
    return IntegerSet(numbers, capacity=set_capacity(len(numbers)))
