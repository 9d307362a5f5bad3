"""Sticky algorithm for mixed subscriptions.

Upstream: AbstractStickyAssignor.GeneralAssignmentBuilder, kafka-clients 4.4.0. Methods
keep upstream's names and order; consumers are ranks in the order of their ids.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heapreplace

from kassay.reference.assignors.client.reassignment import Reassignment, ReassignmentWithDuplicates
from kassay.reference.assignors.client.rebalance_input import PartitionTable, RackInfo
from kassay.reference.java_collections import HashMap, string_hash
from kassay.reference.model.group import NO_GENERATION
from kassay.reference.model.metrics import balance_score


class GeneralAssignmentBuilder:
    """State of one run of the sticky algorithm for mixed subscriptions.

    ``current_assignment`` is in the order of Kafka's map, and is modified. ``members`` are
    the ids of the consumers by rank.
    """

    def __init__(
        self,
        table: PartitionTable,
        rack_info: RackInfo,
        current_assignment: dict[int, list[int]],
        consumer_topics: Mapping[int, Sequence[int]],
        members: Sequence[str],
    ) -> None:
        self.table = table
        self.rack_info = rack_info
        self.current_assignment = current_assignment
        self.consumer_topics = consumer_topics
        self.topic_consumers: list[list[int]] = [[] for _ in table.topics]
        for consumer, topics in consumer_topics.items():
            for topic in topics:
                self.topic_consumers[topic].append(consumer)
        self.members = members
        self.max_assignment_size = {
            consumer: sum(table.counts[topic] for topic in topics)
            for consumer, topics in consumer_topics.items()
        }
        self.current_partition_consumer = [-1] * len(table.topic_of)
        for consumer, partitions in current_assignment.items():
            for partition in partitions:
                self.current_partition_consumer[partition] = consumer
        self.revocation_required = False

    def build(
        self, claims: Mapping[int, Sequence[int]], generations: Mapping[int, int]
    ) -> dict[int, list[int]]:
        """Compute the partitions of each consumer from the claims of each consumer."""
        prev_assignment = _prev_assignment(claims, generations)
        assigned = self._assign_owned_partitions()
        unassigned = self.table.unassigned(assigned)
        self._balance(prev_assignment, unassigned, any(p >= self.table.size for p in assigned))
        return self.current_assignment

    def _assign_owned_partitions(self) -> list[int]:
        """Revoke owned partitions that consumers cannot keep; return all kept partitions."""
        assigned: list[int] = []
        topic_of = self.table.topic_of
        for consumer, partitions in self.current_assignment.items():
            subscribed = frozenset(self.consumer_topics[consumer])
            kept = [p for p in partitions if topic_of[p] in subscribed]
            if self.rack_info.consumer_racks:
                kept = [p for p in kept if not self.rack_info.racks_mismatch(consumer, p)]
            if len(kept) < len(partitions):
                # As upstream, current_partition_consumer keeps the previous owner.
                self.revocation_required = True
                self.current_assignment[consumer] = kept
            assigned.extend(kept)
        return assigned

    def _balance(
        self, prev_assignment: Mapping[int, int], unassigned: list[int], has_phantoms: bool
    ) -> None:
        """Assign the unassigned partitions, and move partitions unless the balance is worse.

        ``current_assignment`` loses the fixed consumers meanwhile, and is complete at the end,
        also if the reassignment raises an error.
        """
        initializing = not any(self.current_assignment.values())
        self._maybe_assign(self._maybe_assign_in_racks(unassigned))

        sorted_all = [p for p in range(self.table.size) if self._can_participate(p)]
        unassigned = [p for p in unassigned if self._can_participate(p)]
        current = self.current_assignment
        fixed = {c: tps for c, tps in current.items() if not self._can_consumer_participate(c)}
        # Tie-break: the order of the map matters only if a partition has two owners.
        order = _HashOrder(self.members, self.consumer_topics) if has_phantoms else _Order(current)
        order.remove(fixed)
        self.current_assignment = {c: current[c] for c in order}
        pre_balance = {c: list(tps) for c, tps in self.current_assignment.items()}
        try:
            performed = self._reassign(prev_assignment, unassigned, sorted_all, has_phantoms)
            if (
                performed
                and not initializing
                and _score(self.current_assignment) >= _score(pre_balance)
            ):
                self.current_assignment = pre_balance
                order.revert()
        finally:
            order.put_back(fixed)
            complete = self.current_assignment | fixed
            self.current_assignment = {c: complete[c] for c in order}

    def _reassign(
        self,
        prev_assignment: Mapping[int, int],
        unassigned: Sequence[int],
        sorted_all: Sequence[int],
        has_phantoms: bool,
    ) -> bool:
        """Run the reassignment phase, and return whether any partition moved."""
        state = (ReassignmentWithDuplicates if has_phantoms else Reassignment)(
            self.table,
            current_assignment=self.current_assignment,
            current_partition_consumer=self.current_partition_consumer,
            topic_consumers=self.topic_consumers,
            consumer_topics=self.consumer_topics,
            max_assignment_size=self.max_assignment_size,
            prev_assignment=prev_assignment,
        )
        if not self.revocation_required:
            state.perform_reassignments(unassigned)
        return state.perform_reassignments(sorted_all)

    def _maybe_assign_in_racks(self, unassigned: list[int]) -> list[int]:
        """Assign partitions to consumers in racks of their replicas. Return the unassigned ones."""
        if not self.rack_info.consumer_racks:
            return unassigned
        remaining: list[int] = []
        for partition in unassigned:
            in_rack = [
                consumer
                for consumer in self.topic_consumers[self.table.topic_of[partition]]
                if not self.rack_info.racks_mismatch(consumer, partition)
            ]
            if in_rack:
                current = self.current_assignment
                self._assign(partition, min(in_rack, key=lambda c: (len(current[c]), c)))
            else:
                remaining.append(partition)
        return remaining

    def _maybe_assign(self, unassigned: list[int]) -> None:
        """Assign each partition to its least loaded subscriber. The member id breaks ties."""
        topic, heap = -1, [(0, -1)]
        for partition in unassigned:
            if self.table.topic_of[partition] != topic:
                topic = self.table.topic_of[partition]
                heap = [(len(self.current_assignment[c]), c) for c in self.topic_consumers[topic]]
                heapify(heap)
            load, consumer = heap[0]
            self._assign(partition, consumer)
            heapreplace(heap, (load + 1, consumer))

    def _assign(self, partition: int, consumer: int) -> None:
        self.current_assignment[consumer].append(partition)
        self.current_partition_consumer[partition] = consumer

    def _can_participate(self, partition: int) -> bool:
        """Return whether two or more consumers subscribe to the topic of a partition."""
        return len(self.topic_consumers[self.table.topic_of[partition]]) >= 2

    def _can_consumer_participate(self, consumer: int) -> bool:
        current = self.current_assignment[consumer]
        if len(current) < self.max_assignment_size[consumer]:
            return True
        return any(self._can_participate(partition) for partition in current)


def _score(assignment: Mapping[int, Sequence[int]]) -> int:
    return balance_score([len(partitions) for partitions in assignment.values()])


def _prev_assignment(
    claims: Mapping[int, Sequence[int]], generations: Mapping[int, int]
) -> dict[int, int]:
    """Return the latest owner of each partition before the highest generation."""
    max_generation = max(generations.values())
    latest: dict[int, tuple[int, int]] = {}
    for consumer, partitions in claims.items():
        generation = generations[consumer]
        if generation < max_generation:
            for partition in partitions:
                if generation > latest.get(partition, (NO_GENERATION - 1, -1))[0]:
                    latest[partition] = (generation, consumer)
    return {partition: consumer for partition, (_, consumer) in latest.items()}


def _consumer_map(
    members: Sequence[str], consumers: Iterable[int], *, capacity: int | None = None
) -> HashMap[int, None]:
    table: HashMap[int, None] = HashMap(lambda c: string_hash(members[c]), capacity=capacity)
    for consumer in consumers:
        table.put(consumer, None)
    return table


class _Order:
    """Iteration order of the map from consumers to partitions: the order of insertion.

    Fixed consumers, which cannot participate, are removed and added again at the end.
    """

    def __init__(self, consumers: Iterable[int]) -> None:
        self._consumers = list(consumers)

    def __iter__(self) -> Iterator[int]:
        return iter(self._consumers)

    def remove(self, fixed: Collection[int]) -> None:
        self._consumers = [c for c in self._consumers if c not in fixed]

    def put_back(self, fixed: Collection[int]) -> None:
        self._consumers += fixed

    def revert(self) -> None:
        """Restore the order from the copy that was made before balancing."""


class _HashOrder(_Order):
    """Iteration order of Kafka's map, in which a removal can change the order within a bin.

    ``subscribed`` is the initial insertion order.
    """

    def __init__(self, members: Sequence[str], subscribed: Collection[int]) -> None:
        self._members = members
        self._current = _consumer_map(members, subscribed)
        # Tie-break: upstream iterates the consumers in the order of this second map.
        self._potential = list(_consumer_map(members, subscribed, capacity=len(subscribed)))

    def __iter__(self) -> Iterator[int]:
        return iter(self._current)

    def remove(self, fixed: Collection[int]) -> None:
        for consumer in self._potential:
            if consumer in fixed:
                self._current.remove(consumer)

    def put_back(self, fixed: Collection[int]) -> None:
        for consumer in _consumer_map(self._members, (c for c in self._potential if c in fixed)):
            self._current.put(consumer, None)

    def revert(self) -> None:
        copied = list(_consumer_map(self._members, self._current))
        self._current.clear()
        for consumer in copied:
            self._current.put(consumer, None)
