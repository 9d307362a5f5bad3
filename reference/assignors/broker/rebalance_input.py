"""Input of the broker's assignors.

Upstream: org.apache.kafka.coordinator.group.modern.GroupSpecImpl and TopicIds, and
org.apache.kafka.coordinator.group.assignor.AssignorHelpers, group-coordinator 4.4.0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kassay.reference.java.hash_codes import name_uuid, utf16_key
from kassay.reference.java.hash_map import HashMap, set_capacity, uuid_map
from kassay.reference.java.hash_order import string_order
from kassay.reference.java.integer_set import IntegerSet
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.partition_index import select, topic_starts
from kassay.reference.model.result_cache import cached
from kassay.reference.model.topic_partitions import Column, Partitions

TopicId = int
"""Id of a topic: the 128 bits of its UUID, because integers are faster keys."""

Target = HashMap[TopicId, IntegerSet]
"""A member's partition numbers by topic id, in the order of Java's hash map and hash sets."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Input of a broker assignor: a group, limited to topics with metadata."""

    topics: Mapping[TopicId, Topic]
    members: Mapping[str, Member]  # in the order of the coordinator's hash map
    subscribed: Mapping[str, tuple[TopicId, ...]]  # in the order of each member's hash set
    assigned: Mapping[str, Target]
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

    def named(self, target: Mapping[str, Iterable[tuple[TopicId, Iterable[int]]]]) -> Assignment:
        """Convert an assignment with topic ids to one with topic names.

        A member without an entry gets no partitions.
        """
        return Assignment(
            {member: self._partitions(target.get(member, ())) for member in self.members}
        )

    def _partitions(self, target: Iterable[tuple[TopicId, Iterable[int]]]) -> Partitions:
        topics: list[str] = []
        numbers: list[int] = []
        for topic, assigned in target:
            numbers += assigned
            topics += [self.topics[topic].name] * (len(numbers) - len(topics))
        return Partitions.from_columns(topics, numbers)


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
        assigned={member: _target(members[member].owned, ids) for member in order},
        owner_counts=_owner_counts(group),
        homogeneous=len({frozenset(subscription) for subscription in sets}) <= 1,
    )


def _owner_counts(group: Group) -> Mapping[str, Column]:
    """Count the owners of each partition."""
    starts = topic_starts(group)
    claims = starts.rows((index, member.owned) for index, member in enumerate(group.members))
    existing = starts.flat(select(claims, starts.exist(claims)))
    return starts.by_topic(np.bincount(existing, minlength=starts.size).astype(np.int32))


def deep_copy_assignment(target: Target) -> Target:
    """Return a deep copy of a member's partitions."""
    copy: Target = uuid_map(capacity=len(target))
    for topic, numbers in target.items():
        copy.put(topic, numbers.copy())
    return copy


def remove_partition(target: Target, topic: TopicId, number: int) -> None:
    """Remove a partition from a member's target assignment, and the topic if it becomes empty."""
    numbers = target.get(topic)
    if numbers is not None:
        numbers.remove(number)
        if not len(numbers):
            target.remove(topic)


def _target(owned: Partitions, ids: Mapping[str, TopicId]) -> Target:
    # Tie-break: upstream reads them topic by topic from the group's log.
    claimed: dict[str, list[int]] = {}
    for code, number in zip(owned.codes.tolist(), owned.numbers.tolist(), strict=True):
        claimed.setdefault(owned.topics[code], []).append(number)
    target: Target = uuid_map()
    for name, numbers in claimed.items():
        topic = ids[name] if name in ids else name_uuid(name.encode("utf-8", "surrogatepass")).int
        target.put(topic, IntegerSet(numbers, capacity=set_capacity(len(numbers))))
    return target
