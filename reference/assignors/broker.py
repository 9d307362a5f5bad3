"""Ports of the broker's ``UniformAssignor`` and ``RangeAssignor`` (KIP-848).

Upstream: UniformAssignor and its builders, RangeAssignor and AssignorHelpers of
org.apache.kafka.coordinator.group.assignor, GroupSpecImpl and TopicIds of
org.apache.kafka.coordinator.group.modern, group-coordinator 4.4.0. Methods keep upstream's names
and order.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np

from kassay.reference.assignors.client.rebalance_input import member_order
from kassay.reference.java_collections import (
    HashMap,
    IntegerSet,
    capacity_for,
    hash_map,
    name_uuid,
    set_capacity,
    string_order,
    uuid_hash,
    uuid_key,
    uuid_map,
)
from kassay.reference.model.assignment import NO_OWNER, Assignment
from kassay.reference.model.errors import UpstreamError
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
    """Input of a broker assignor: members, subscriptions and topics of a group."""

    topics: Mapping[TopicId, Topic]
    members: Mapping[str, Member]  # in the order of the coordinator's hash map
    subscribed: Mapping[str, tuple[TopicId, ...]]  # in the order of each member's hash set
    owner_counts: Mapping[str, Column]  # by topic name, one number per partition
    homogeneous: bool  # whether all subscriptions are equal, unknown topics included

    def num_partitions(self, topic: TopicId) -> int:
        """Return the number of partitions of a topic."""
        return self.topics[topic].partitions

    def free_partitions(self, topic: TopicId) -> Sequence[int]:
        """Return the numbers of a topic's partitions that no member owns."""
        counts = self.owner_counts[self.topics[topic].name]
        free: list[int] = np.flatnonzero(counts == 0).tolist()
        return range(len(counts)) if len(free) == len(counts) else free

    def named(self, target: Mapping[str, Owned | Target]) -> Assignment:
        """Convert target partitions to an assignment with topic names."""
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
    """Return the owned partitions of each member, in the coordinator's order."""
    ids = {topic.name: topic.uuid.int for topic in group.topics}

    @lru_cache  # Most members own the same topics.
    def order_of(topics: tuple[str, ...]) -> tuple[tuple[TopicId, str], ...]:
        names = {ids[name] if name in ids else name_uuid(name).int: name for name in topics}
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
    starts = topic_starts(group)
    claims = starts.rows((index, member.owned) for index, member in enumerate(group.members))
    existing = starts.flat(select(claims, starts.exist(claims)))
    return starts.by_topic(np.bincount(existing, minlength=starts.size).astype(np.int32))


def hash_order(topics: Iterable[TopicId], *, capacity: int | None = None) -> tuple[TopicId, ...]:
    """Return topic ids in the iteration order of a Java hash map that contains them."""
    return tuple(hash_map(topics, uuid_hash, capacity=capacity))


def deep_copy_assignment(owned: Owned) -> Target:
    """Copy owned partitions to Java hash maps. The copy can have another order."""
    copy: Target = uuid_map(capacity=len(owned))
    for topic, numbers in owned.items():
        copy.put(topic, _hash_set(numbers))
    return copy


def mutable_copy(partitions: Owned | Target) -> Target:
    """Return ``partitions`` if it is a target, else a copy of the owned partitions."""
    return partitions if isinstance(partitions, HashMap) else deep_copy_assignment(partitions)


def remove_partition(target: Target, topic: TopicId, number: int) -> None:
    """Remove a partition from a target. If no other is left, remove the topic, too."""
    numbers = target.get(topic)
    if numbers is not None:
        numbers.remove(number)
        if not len(numbers):
            target.remove(topic)


def _hash_set(numbers: Sequence[int]) -> IntegerSet:
    return IntegerSet(numbers, capacity=set_capacity(len(numbers)))


@dataclass(eq=False)
class UniformHomogeneousAssignmentBuilder:
    """State of one run of the uniform assignor for equal subscriptions.

    Some members get one *extra* partition. With ``prefer_current_owner`` (Kafka 4.1 and later,
    KAFKA-18688), a member that owns no extra partition leaves it to a later member.
    """

    group_spec: GroupSpec
    assigned: Mapping[str, Owned]
    prefer_current_owner: bool

    def __post_init__(self) -> None:
        spec = self.group_spec
        first = next(iter(spec.members))
        capacity = set_capacity(len(spec.members[first].subscription))
        topics = hash_order(spec.subscribed[first], capacity=capacity)
        self.subscribed_topic_ids = dict.fromkeys(topics)
        self.unfilled_members: list[tuple[str, int]] = []
        self.unassigned_partitions: deque[tuple[TopicId, Sequence[int]]] = deque()
        self.target_assignment: dict[str, Owned | Target] = {}
        self.minimum_member_quota = 0
        self.remaining_members_to_get_an_extra_partition = 0

    def build(self) -> Assignment:
        """Compute the new target assignment of the group."""
        if self.subscribed_topic_ids:
            self._compute_unassigned_partitions()
            self._maybe_revoke_partitions()
            self._assign_remaining_partitions()
        return self.group_spec.named(self.target_assignment)

    def _compute_unassigned_partitions(self) -> None:
        spec = self.group_spec
        # Tie-break: topics are in the order of the hash set of their ids.
        for topic in self.subscribed_topic_ids:
            if free := spec.free_partitions(topic):
                self.unassigned_partitions.append((topic, free))
        total = sum(map(spec.num_partitions, self.subscribed_topic_ids))
        self.minimum_member_quota, self.remaining_members_to_get_an_extra_partition = divmod(
            total, len(spec.members)
        )

    def _maybe_revoke_partitions(self) -> None:
        for index, member in enumerate(self.group_spec.members):
            has_extra = self.remaining_members_to_get_an_extra_partition > 0
            quota = self._keep(member, self.minimum_member_quota + has_extra)
            remaining = len(self.group_spec.members) - index
            if (
                self.prefer_current_owner
                and quota > 0
                and has_extra
                and remaining > self.remaining_members_to_get_an_extra_partition
            ):
                quota -= 1
                has_extra = False
            if quota > 0:
                self.unfilled_members.append((member, quota))
            if has_extra:
                self.remaining_members_to_get_an_extra_partition -= 1

    def _keep(self, member: str, quota: int) -> int:
        """Keep a member's owned partitions up to its quota, and return the unused quota."""
        old = self.assigned[member]
        new: Target | None = None
        for topic, numbers in old.items():
            if topic not in self.subscribed_topic_ids:
                new = deep_copy_assignment(old) if new is None else new
                new.remove(topic)
                continue
            if (size := len(numbers)) <= quota:
                quota -= size
                continue
            # Tie-break: the member keeps the first partitions in the order of its hash set.
            for number in numbers:
                if quota > 0:
                    quota -= 1
                    continue
                new = deep_copy_assignment(old) if new is None else new
                remove_partition(new, topic, number)
                self.unassigned_partitions.append((topic, (number,)))
        self.target_assignment[member] = old if new is None else new
        return quota

    def _assign_remaining_partitions(self) -> None:
        unassigned = self.unassigned_partitions
        for member, quota in self.unfilled_members:
            new = self.target_assignment[member] = mutable_copy(self.target_assignment[member])
            missing = quota
            while missing > 0 and unassigned:
                topic, numbers = unassigned.popleft()
                assigned = numbers[:missing]
                # Tie-break: each partition is a look-up; the second one can resize the map.
                for _ in assigned[:2]:
                    target = new.compute_if_absent(topic, lambda _: IntegerSet())
                target.update(assigned)
                if len(numbers) > missing:
                    unassigned.appendleft((topic, numbers[missing:]))
                missing -= len(numbers)
        if unassigned:
            raise UpstreamError("no member has room for a partition", "PartitionAssignorException")


MAX_ITERATION_COUNT = 16


class UniformHeterogeneousAssignmentBuilder:
    """State of one run of the uniform assignor for mixed subscriptions."""

    def __init__(self, group_spec: GroupSpec, assigned: Mapping[str, Owned]) -> None:
        self.group_spec = group_spec
        self.assigned = assigned
        self.member_ids = list(group_spec.members)
        self.topic_subscribers: dict[TopicId, list[int]] = {}
        for index, member in enumerate(self.member_ids):
            for topic in group_spec.subscribed[member]:
                self.topic_subscribers.setdefault(topic, []).append(index)
        self.target_assignment: dict[str, Owned | Target] = {}
        self.sizes = [0] * len(self.member_ids)
        self.owners = {
            topic: [NO_OWNER] * group_spec.num_partitions(topic) for topic in self.topic_subscribers
        }

    def build(self) -> Assignment:
        """Compute the new target assignment of the group."""
        if self.topic_subscribers:
            self._maybe_revoke_partitions()
            self._assign_remaining_partitions()
            self._balance()
        return self.group_spec.named(self.target_assignment)

    def _sort_topic_ids(self) -> list[TopicId]:
        """Sort topics by partitions per subscriber (descending), subscriber count and topic id."""

        def key(topic: TopicId) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self.topic_subscribers[topic])
            return (-(len(self.owners[topic]) / subscribers), subscribers, uuid_key(topic))

        return sorted(self.topic_subscribers, key=key)

    def _maybe_revoke_partitions(self) -> None:
        for index, member in enumerate(self.member_ids):
            old = self.assigned[member]
            subscribed = frozenset(self.group_spec.subscribed[member])
            new: Target | None = None
            for topic, numbers in old.items():
                if topic not in subscribed:
                    new = deep_copy_assignment(old) if new is None else new
                    new.remove(topic)
                    continue
                self.sizes[index] += len(numbers)
                for number in numbers:
                    if number >= len(self.owners[topic]):
                        size = len(self.owners[topic])
                        detail = f"{member!r} owns partition {number}, but the topic has {size}"
                        raise UpstreamError(detail, "ArrayIndexOutOfBoundsException")
                    self.owners[topic][number] = index
            self.target_assignment[member] = old if new is None else new

    def _assign_remaining_partitions(self) -> None:
        for topic in self._sort_topic_ids():
            unassigned = [n for n, owner in enumerate(self.owners[topic]) if owner == NO_OWNER]
            if unassigned:
                balancer = MemberAssignmentBalancer(self.sizes, self.topic_subscribers[topic])
                for number in unassigned:
                    self._assign_partition(topic, number, balancer.next_least_loaded_member())

    def _balance(self) -> None:
        """Balance the topics in at most 16 rounds, until a round moves no partition."""
        topics = [t for t in self._sort_topic_ids() if len(self.topic_subscribers[t]) >= 2]
        last_rebalanced = -1
        for _ in range(MAX_ITERATION_COUNT):
            for index, topic in enumerate(topics):
                if index == last_rebalanced:
                    return
                if self._balance_topic(topic) > 0 or last_rebalanced == -1:
                    last_rebalanced = index

    def _balance_topic(self, topic: TopicId) -> int:
        """Move partitions of a topic to less loaded members; return the number of moves."""
        owners = self.owners[topic]
        balancer = MemberAssignmentBalancer(self.sizes, self.topic_subscribers[topic])
        if balancer.imbalance <= 1:
            return 0
        partitions_of: dict[int, list[int]] = {}
        for number, owner in enumerate(owners):
            partitions_of.setdefault(owner, []).append(number)
        reassigned = 0
        while not balancer.is_balanced():
            most_loaded = balancer.next_most_loaded_member()
            while most_loaded != NO_OWNER and not partitions_of.get(most_loaded):
                balancer.exclude_most_loaded_member()
                most_loaded = balancer.next_most_loaded_member()
            if most_loaded == NO_OWNER:
                break
            number = partitions_of[most_loaded].pop()
            least_loaded = balancer.next_least_loaded_member()
            if balancer.is_balanced():
                break
            self._assign_partition(topic, number, least_loaded)
            reassigned += 1
        return reassigned

    def _assign_partition(self, topic: TopicId, number: int, member: int) -> None:
        owner = self.owners[topic][number]
        if owner != NO_OWNER:
            remove_partition(self._mutable_target(owner), topic, number)
            self.sizes[owner] -= 1
        estimate = -(-len(self.owners[topic]) // len(self.topic_subscribers[topic]))
        target = self._mutable_target(member)
        target.compute_if_absent(topic, lambda _: IntegerSet(capacity=capacity_for(estimate))).add(
            number
        )
        self.owners[topic][number] = member
        self.sizes[member] += 1

    def _mutable_target(self, index: int) -> Target:
        member = self.member_ids[index]
        target = self.target_assignment[member] = mutable_copy(self.target_assignment[member])
        return target


class MemberAssignmentBalancer:
    """Select the members that receive and give partitions while a topic is balanced.

    Members with the lowest load receive one partition each, members with the highest load give
    one each. Then the members with the next higher or lower load join them. ``sizes`` may change.
    """

    def __init__(self, sizes: Sequence[int], members: Sequence[int]) -> None:
        self._sizes = sizes
        self._sorted_members = sorted(members, key=lambda member: (sizes[member], member))
        min_size, max_size = sizes[self._sorted_members[0]], sizes[self._sorted_members[-1]]
        self.imbalance = max_size - min_size
        self._least_loaded_range_end = 0
        self._least_loaded_level = min_size - 1
        self._next_least_loaded = 0
        self._most_loaded_range_start = len(members)
        self._most_loaded_range_end = len(members)
        self._most_loaded_level = max_size + 1
        self._next_most_loaded = len(members) - 1

    def next_least_loaded_member(self) -> int:
        """Select the member that receives the next partition."""
        if self._next_least_loaded >= self._least_loaded_range_end:
            self._least_loaded_level += 1
            while (
                self._least_loaded_range_end < len(self._sorted_members)
                and self._size_at(self._least_loaded_range_end) == self._least_loaded_level
            ):
                self._least_loaded_range_end += 1
            self._next_least_loaded = 0
        self._next_least_loaded += 1
        return self._sorted_members[self._next_least_loaded - 1]

    def next_most_loaded_member(self) -> int:
        """Select the member that gives the next partition; return -1 if no member is left."""
        if self._next_most_loaded < self._most_loaded_range_start:
            is_empty = self._most_loaded_range_end <= self._most_loaded_range_start
            if is_empty and self._most_loaded_range_start > 0:
                self._most_loaded_level = self._size_at(self._most_loaded_range_start - 1)
            else:
                self._most_loaded_level -= 1
            while (
                self._most_loaded_range_start > 0
                and self._size_at(self._most_loaded_range_start - 1) == self._most_loaded_level
            ):
                self._most_loaded_range_start -= 1
            self._next_most_loaded = self._most_loaded_range_end - 1
        if self._next_most_loaded < 0:
            return -1
        self._next_most_loaded -= 1
        return self._sorted_members[self._next_most_loaded + 1]

    def exclude_most_loaded_member(self) -> None:
        """Exclude the member selected last, which has no partition of the topic to give."""
        self._most_loaded_range_end -= 1
        members, end = self._sorted_members, self._most_loaded_range_end
        index = self._next_most_loaded + 1
        members[index], members[end] = members[end], members[index]

    def is_balanced(self) -> bool:
        """Return whether the loads of receiving and giving members differ by at most one."""
        return self._most_loaded_level - self._least_loaded_level <= 1

    def _size_at(self, index: int) -> int:
        return self._sizes[self._sorted_members[index]]


def assign_uniform(group: Group) -> Assignment:
    """Balance the number of partitions per member; keep owned partitions if possible."""
    return _assign_uniform(group, prefer_current_owner=True)


def assign_uniform_4_0(group: Group) -> Assignment:
    """Assign like Kafka 4.0, which can move partitions of a balanced group (KAFKA-18688)."""
    return _assign_uniform(group, prefer_current_owner=False)


def _assign_uniform(group: Group, *, prefer_current_owner: bool) -> Assignment:
    spec = group_spec(group)
    if not spec.members:
        return Assignment({})
    if spec.homogeneous:
        builder = UniformHomogeneousAssignmentBuilder(
            spec, member_assignments(group), prefer_current_owner
        )
        return builder.build()
    return _assign_heterogeneous(group)


@cached  # Equal in both versions.
def _assign_heterogeneous(group: Group) -> Assignment:
    builder = UniformHeterogeneousAssignmentBuilder(group_spec(group), member_assignments(group))
    return builder.build()


def assign_range(group: Group) -> Assignment:
    """Assign each member a range of partitions per subscribed topic, static members first."""
    spec = group_spec(group)
    members = member_order(spec.members)
    # Tie-break: homogeneous groups use the topic order of the first member.
    subscribed = {m: spec.subscribed[members[0] if spec.homogeneous else m] for m in members}
    num_members = Counter(chain.from_iterable(subscribed.values()))
    quotas = {topic: divmod(spec.num_partitions(topic), n) for topic, n in num_members.items()}
    next_partition = dict.fromkeys(num_members, 0)
    order_of = lru_cache(hash_order)  # many members have the same topics
    target: dict[str, Owned] = {}
    for member, topics in subscribed.items():
        ranges: dict[TopicId, range] = {}
        for topic in topics:
            quota, extra = quotas[topic]
            start = next_partition[topic]
            # The first members get one partition more.
            size = quota + 1 if start < extra * (quota + 1) else quota
            next_partition[topic] += size
            if size:
                ranges[topic] = range(start, start + size)
        # Tie-break: the capacity of the map is the number of known topics in homogeneous groups,
        # otherwise the number of all subscribed names.
        names = topics if spec.homogeneous else spec.members[member].subscription
        order = order_of(tuple(ranges), capacity=capacity_for(len(names)))
        target[member] = {topic: ranges[topic] for topic in order}
    return spec.named(target)
