"""Port of Kafka's ``StickyAssignor`` and ``CooperativeStickyAssignor``, for equal subscriptions.

Upstream: org.apache.kafka.clients.consumer.StickyAssignor, CooperativeStickyAssignor,
internals.AbstractStickyAssignor and its class ConstrainedAssignmentBuilder, kafka-clients 4.4.0.
Methods keep upstream's names and order; consumers are ranks in the order of their ids.
Deviation: no state is kept between calls, so the highest generation is that of the group.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from kassay.reference.assignors.client import rebalance_input, sticky_mixed_subscriptions
from kassay.reference.assignors.client.rebalance_input import (
    MemberSubscription,
    PartitionTable,
    RackInfo,
    subscriptions,
)
from kassay.reference.java_collections import computed_order, string_order, utf16_key
from kassay.reference.model.assignment import Assignment, LivelockError
from kassay.reference.model.errors import UpstreamError
from kassay.reference.model.group import NO_GENERATION, Group
from kassay.reference.model.topic_partitions import Partitions


@dataclass(eq=False)
class ConstrainedAssignmentBuilder:
    """State of one run of the sticky algorithm for equal subscriptions."""

    table: PartitionTable
    rack_info: RackInfo
    current_assignment: dict[int, list[int]]
    partitions_with_multiple_previous_owners: set[int]

    def __post_init__(self) -> None:
        if not self.current_assignment:
            raise UpstreamError("division by zero: the group has no members", "ArithmeticException")
        self.maybe_revoked_partitions: dict[int, int] = {}
        self.partitions_transferring_ownership: dict[int, int] = {}
        self.unfilled_under_min_quota: list[int] = []
        self.unfilled_exactly_min_quota: deque[int] = deque()
        consumers = len(self.current_assignment)
        self.min_quota, self.expected_num_over_min_quota = divmod(self.table.size, consumers)
        self.max_quota = self.min_quota + (1 if self.expected_num_over_min_quota else 0)
        self.current_num_over_min_quota = 0
        self._num_kept: dict[int, int] = {}
        self.assignment: dict[int, list[int]] = {one: [] for one in self.current_assignment}

    def build(self) -> dict[int, list[int]]:
        """Compute the partitions of each consumer."""
        self._assign_owned_partitions()
        self._num_kept = {consumer: len(tps) for consumer, tps in self.assignment.items()}
        unassigned = self.table.unassigned(chain.from_iterable(self.assignment.values()))
        self.unfilled_under_min_quota.sort()
        self.unfilled_exactly_min_quota = deque(sorted(self.unfilled_exactly_min_quota))
        unassigned = self.rack_info.sort_partitions_by_rack_consumers(unassigned)
        if self.rack_info.consumer_racks:
            unassigned = self._assign_rack_aware_round_robin(unassigned)
        self._assign_round_robin(unassigned)
        self._verify_unfilled_members()
        self._find_partitions_transferring_ownership()
        return self.assignment

    def _assign_owned_partitions(self) -> None:
        by_partition = self.table.by_partition_then_topic()
        for consumer, current in self.current_assignment.items():
            owned = self._without_rack_mismatches(consumer, current)
            owned.sort(key=by_partition.__getitem__)
            multiple = self.partitions_with_multiple_previous_owners
            self._keep(consumer, [p for p in owned if p not in multiple] if multiple else owned)

    def _without_rack_mismatches(self, consumer: int, current: list[int]) -> list[int]:
        if not self.rack_info.consumer_racks:
            return list(current)
        owned: list[int] = []
        for partition in current:
            if self.rack_info.racks_mismatch(consumer, partition):
                self.maybe_revoked_partitions[partition] = consumer
            else:
                owned.append(partition)
        return owned

    def _keep(self, consumer: int, owned: list[int]) -> None:
        if len(owned) < self.min_quota:
            self.assignment[consumer] = owned
            self.unfilled_under_min_quota.append(consumer)
            return
        more_expected = self.current_num_over_min_quota < self.expected_num_over_min_quota
        quota = self.min_quota
        if more_expected and len(owned) >= self.max_quota:
            quota = self.max_quota
            self._count_over_min_quota()
        elif more_expected:
            self.unfilled_exactly_min_quota.append(consumer)
        self.assignment[consumer] = owned[:quota]
        for partition in owned[quota:]:
            self.maybe_revoked_partitions[partition] = consumer

    def _assign_rack_aware_round_robin(self, unassigned: list[int]) -> list[int]:
        """Assign partitions to consumers in racks of their replicas. Return the unassigned ones."""
        remaining: list[int] = []
        next_unfilled = 0
        for partition in unassigned:
            under = self.unfilled_under_min_quota
            index = self.rack_info.next_rack_consumer(partition, under, next_unfilled)
            if index >= 0:
                consumer = under[index]
                if not self._fill_under_min_quota(consumer):
                    index += 1
                next_unfilled = index % len(under) if under else 0
                self.assignment[consumer].append(partition)
                continue
            exactly = list(self.unfilled_exactly_min_quota)
            index = self.rack_info.next_rack_consumer(partition, exactly, 0)
            if index >= 0:
                consumer = exactly[index]
                self._fill_exactly_min_quota(index, consumer)
                self.assignment[consumer].append(partition)
            else:
                remaining.append(partition)
        return remaining

    def _fill_under_min_quota(self, consumer: int) -> bool:
        """Return whether one more partition fills the minimum quota. If so, update the lists."""
        count = len(self.assignment[consumer]) + 1
        if count < self.min_quota:
            return False
        self.unfilled_under_min_quota.remove(consumer)
        more_expected = self.current_num_over_min_quota < self.expected_num_over_min_quota
        if count < self.max_quota and more_expected:
            self.unfilled_exactly_min_quota.append(consumer)
        return True

    def _fill_exactly_min_quota(self, index: int, consumer: int) -> None:
        if len(self.assignment[consumer]) + 1 == self.max_quota:
            del self.unfilled_exactly_min_quota[index]
            self._count_over_min_quota()

    def _count_over_min_quota(self) -> None:
        self.current_num_over_min_quota += 1
        if self.current_num_over_min_quota == self.expected_num_over_min_quota:
            self.unfilled_exactly_min_quota.clear()

    def _assign_round_robin(self, unassigned: list[int]) -> None:
        under, exactly = self.unfilled_under_min_quota, self.unfilled_exactly_min_quota
        next_index = 0
        for partition in unassigned:
            if next_index >= len(under):
                next_index = 0
            if under:
                consumer = under[next_index]
                next_index += 1
            elif exactly:
                consumer = exactly.popleft()
            else:
                detail = f"no unfilled consumer is left for {self.table.named(partition)}"
                raise UpstreamError(detail, "IllegalStateException")
            assigned = self.assignment[consumer]
            assigned.append(partition)
            count = len(assigned)
            if count == self.min_quota:
                next_index -= 1
                del under[next_index]
                exactly.append(consumer)
            elif count == self.max_quota:
                self.current_num_over_min_quota += 1

    def _find_partitions_transferring_ownership(self) -> None:
        """Record newly assigned partitions that had another owner, or several owners, before."""
        revoked = self.maybe_revoked_partitions
        multiple = self.partitions_with_multiple_previous_owners
        if not revoked and not multiple:
            return
        for consumer, partitions in self.assignment.items():
            for partition in partitions[self._num_kept[consumer] :]:
                if revoked.get(partition, consumer) != consumer or partition in multiple:
                    self.partitions_transferring_ownership[partition] = consumer

    def _verify_unfilled_members(self) -> None:
        if not self.unfilled_under_min_quota:
            return
        if self.current_num_over_min_quota != self.expected_num_over_min_quota:
            above, expected = self.current_num_over_min_quota, self.expected_num_over_min_quota
            detail = f"{above} consumers have over {self.min_quota} partitions, expected {expected}"
            raise UpstreamError(detail, "IllegalStateException")
        for consumer in self.unfilled_under_min_quota:
            count = len(self.assignment[consumer])
            if count != self.min_quota:
                detail = f"a consumer has {count} partitions, fewer than {self.min_quota}"
                raise UpstreamError(detail, "IllegalStateException")


@dataclass(frozen=True, slots=True)
class MemberData:
    """Last assignment of a member, and the generation of this assignment."""

    partitions: Partitions
    generation: int


@dataclass(slots=True)
class Result:
    """Assignment in which integers identify consumers and partitions."""

    table: PartitionTable
    members: Sequence[str]  # ids by rank
    assignment: dict[int, list[int]]  # in the order of Kafka's map
    transferring: dict[int, int] | None  # new consumers; None after the general algorithm

    def named(self) -> Assignment:
        """Convert the assignment to member ids and topic names."""
        table, members = self.table, self.members
        return Assignment({members[c]: table.partitions(tps) for c, tps in self.assignment.items()})


def assign_partitions(
    group: Group, member_data: Callable[[MemberSubscription, bool], MemberData]
) -> Result:
    """Assign the partitions by the algorithm for equal or for mixed subscriptions.

    ``member_data`` returns the last assignment of a member; its second argument is whether
    the order of the partitions matters.
    """
    consumers = rebalance_input.subscriptions(group)
    topics = rebalance_input.partitions_per_topic(group)
    table = PartitionTable(topics, consumers)
    members = sorted(consumers, key=utf16_key)
    rank = {member: index for index, member in enumerate(members)}
    equal = all_subscriptions_equal(consumers.values())
    last = {rank[m]: member_data(s, not equal) for m, s in consumers.items()}
    claims = {consumer: table.intern(data.partitions) for consumer, data in last.items()}
    generations = {consumer: data.generation for consumer, data in last.items()}
    subscription_generations = {rank[m]: s.generation for m, s in consumers.items()}
    size = len(table.topic_of)
    owned, multiple = resolve_claims(claims, generations, subscription_generations, size)
    # Tie-break: upstream uses a second map, in which a crowded bin can double the table later.
    owned = {rank[member]: owned[rank[member]] for member in string_order(consumers)}
    racks = {rank[m]: s.rack for m, s in consumers.items() if s.rack is not None}
    rack_info = RackInfo(table, topics, racks)
    if equal:
        constrained = ConstrainedAssignmentBuilder(table, rack_info, owned, multiple)
        assignment = constrained.build()
        transferring = constrained.partitions_transferring_ownership
        return Result(table, members, assignment, transferring)
    positions = {
        topics: [table.position[t] for t in topics if t in table.position]
        for topics in dict.fromkeys(s.topics for s in consumers.values())
    }
    subscribed = {rank[m]: positions[s.topics] for m, s in consumers.items()}
    builder = sticky_mixed_subscriptions.GeneralAssignmentBuilder(
        table, rack_info, owned, subscribed, members
    )
    try:
        return Result(table, members, builder.build(claims, generations), None)
    except sticky_mixed_subscriptions.RepeatedStateError as repeated:
        state = Result(table, members, builder.current_assignment, None)
        moved = sorted(
            (table.named(p) for p in repeated.moved),
            key=lambda tp: (utf16_key(tp.topic), tp.partition),
        )
        raise LivelockError(state.named(), repeated.cycle_length, tuple(moved)) from None


def all_subscriptions_equal(subscriptions: Iterable[MemberSubscription]) -> bool:
    """Return whether all subscriptions are equal. Leading empty subscriptions are ignored."""
    first: tuple[str, ...] = ()
    for subscription in subscriptions:
        if not first:
            first = subscription.topics
        elif subscription.topics != first:
            return False
    return True


def resolve_claims(
    claims: dict[int, list[int]],
    generations: dict[int, int],
    subscription_generations: dict[int, int],
    partitions: int,
) -> tuple[dict[int, list[int]], set[int]]:
    """Return the valid claims per consumer, and the partitions that several consumers claim.

    Upstream compares the generation of a later claim with the generation in the
    *subscription* of the earlier claimant. ``claims`` are in the order of Kafka's map.
    """
    owner = [NO_GENERATION] * partitions
    owned: dict[int, list[int]] = {}
    multiple: set[int] = set()
    for consumer, claimed in claims.items():
        valid = owned[consumer] = list[int]()
        for partition in claimed:
            other = owner[partition]
            if other < 0:
                valid.append(partition)
                owner[partition] = consumer
                continue
            generation, other_generation = generations[consumer], subscription_generations[other]
            if generation < other_generation:
                continue
            if generation == other_generation:
                multiple.add(partition)
            else:
                valid.append(partition)
            if partition in owned[other]:
                owned[other].remove(partition)
            owner[partition] = consumer
    return owned, multiple


def assign(group: Group) -> Assignment:
    """Assign like Kafka's ``StickyAssignor``: keep owned partitions, and balance the loads."""
    return assign_partitions(group, _sticky_data).named()


def _sticky_data(subscription: MemberSubscription, ordered: bool) -> MemberData:
    claimed = subscription.claimed
    return MemberData(
        _group_partitions_by_topic(claimed) if ordered else claimed,
        subscription.user_data_generation if subscription.sticky_data_version else NO_GENERATION,
    )


def _group_partitions_by_topic(claimed: Partitions) -> Partitions:
    """Group partitions by topic, in the order in which Kafka encodes user data from a hash map."""
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


def assign_cooperative(group: Group) -> Assignment:
    """Assign like ``sticky``, but omit the partitions that another member must revoke first."""
    result = assign_partitions(group, _cooperative_data)
    transferring = result.transferring
    if transferring is None:
        transferring = _compute_partitions_transferring_ownership(group, result)
    for partition, consumer in transferring.items():
        result.assignment[consumer].remove(partition)
    return result.named()


def _cooperative_data(subscription: MemberSubscription, ordered: bool) -> MemberData:
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
