"""Sticky algorithm for mixed subscriptions; its last phase moves partitions one by one.

Upstream: GeneralAssignmentBuilder and PartitionMovements of AbstractStickyAssignor, kafka-clients
4.4.0. Methods keep upstream's names and order; consumers are ranks in the order of their ids.
Deviations: `is_balanced` caches its result until the next move, and a repeated state raises an
exception, where upstream does not terminate.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Any

from kassay.reference.assignors.client.rebalance_input import PartitionTable, RackInfo
from kassay.reference.java_collections import HashMap, hash_map, string_hash
from kassay.reference.model.errors import UpstreamError
from kassay.reference.model.group import NO_GENERATION
from kassay.reference.model.load_metrics import balance_score

Pair = tuple[int, int]
"""Previous and new consumer of a move."""


class PartitionMovements:
    """Record of the moves of partitions between consumers."""

    def __init__(self, topic_of: list[int], hash_code: Callable[[int], int]) -> None:
        self._topic_of = topic_of
        self._hash_code = hash_code
        self._by_topic: dict[int, dict[Pair, HashMap[int, None]]] = {}
        self._by_partition: dict[int, Pair] = {}

    def move_partition(self, partition: int, old_consumer: int, new_consumer: int) -> None:
        """Record a move, merged with an earlier move of the same partition."""
        if partition not in self._by_partition:
            self._add_record(partition, (old_consumer, new_consumer))
            return
        source, _ = self._remove_record(partition)
        if source != new_consumer:
            self._add_record(partition, (source, new_consumer))

    def get_the_actual_partition_to_be_moved(
        self, partition: int, old_consumer: int, new_consumer: int
    ) -> int:
        """Return a partition of the topic that made the reverse move, else ``partition``.

        That partition moves back to its earlier consumer. Such moves can repeat without end.
        """
        pairs = self._by_topic.get(self._topic_of[partition])
        if pairs is None:
            return partition
        if partition in self._by_partition:
            old_consumer, _ = self._by_partition[partition]
        reverse = pairs.get((new_consumer, old_consumer))
        # Tie-break: the first partition in the order of the hash set.
        return partition if reverse is None else next(iter(reverse))

    def snapshot(self) -> tuple[Any, ...]:
        """Copy the recorded moves, to compare them with later records."""
        return (
            dict(self._by_partition),
            {
                (topic, pair): partitions.snapshot()
                for topic, pairs in self._by_topic.items()
                for pair, partitions in pairs.items()
            },
        )

    def _add_record(self, partition: int, pair: Pair) -> None:
        self._by_partition[partition] = pair
        pairs = self._by_topic.setdefault(self._topic_of[partition], {})
        if pair not in pairs:
            pairs[pair] = HashMap(self._hash_code)
        pairs[pair].put(partition, None)

    def _remove_record(self, partition: int) -> Pair:
        pair = self._by_partition.pop(partition)
        topic = self._topic_of[partition]
        pairs = self._by_topic[topic]
        pairs[pair].remove(partition)
        if not len(pairs[pair]):
            del pairs[pair]
        if not pairs:
            del self._by_topic[topic]
        return pair


class RepeatedStateError(Exception):
    """Error: the moves of the reassignment repeat without end."""

    def __init__(self, cycle_length: int, moved: list[int]) -> None:
        super().__init__(cycle_length, moved)
        self.cycle_length = cycle_length
        self.moved = moved


@dataclass(eq=False)
class Reassignment:
    """State of the reassignment phase: loads, owners and recorded moves.

    ``current_assignment`` contains the consumers that can participate, in the order of
    Kafka's map. It and ``current_partition_consumer`` are modified.
    """

    table: PartitionTable
    current_assignment: dict[int, list[int]]
    current_partition_consumer: list[int]
    topic_consumers: Sequence[Sequence[int]]
    consumer_topics: Mapping[int, Sequence[int]]
    max_assignment_size: Mapping[int, int]
    prev_assignment: Mapping[int, int]

    def __post_init__(self) -> None:
        self.partition_movements = PartitionMovements(self.table.topic_of, self.table.hash_code)
        self.load = {consumer: len(tps) for consumer, tps in self.current_assignment.items()}
        self._participants = [
            sorted(c for c in consumers if c in self.load) for consumers in self.topic_consumers
        ]
        self.moved: dict[int, None] = {}
        self._least_loaded: dict[int, int] = {}
        self._is_balanced: bool | None = None

    def perform_reassignments(self, reassignable_partitions: Sequence[int]) -> bool:
        """Move partitions until no move is possible. Return whether a partition moved.

        Raise RepeatedStateError if the state after a pass repeats.
        """
        performed = False
        cycle_detector = _CycleDetector(self)
        while True:
            modified = False
            for partition in reassignable_partitions:
                if self.is_balanced(partition):
                    break
                new_consumer = self.better_suited_consumer(partition)
                if new_consumer is not None:
                    self.reassign_partition(partition, new_consumer)
                    modified = True
            if not modified:
                return performed
            performed = True
            cycle_detector.check()

    def better_suited_consumer(self, partition: int) -> int | None:
        """Return the consumer to which a partition moves, or None if it stays.

        Upstream checks the racks first, but then moves to the least loaded subscriber of any
        rack, so racks have no effect.
        """
        load = self.load[self.current_partition_consumer[partition]]
        previous = self.prev_assignment.get(partition)
        if previous is not None:
            if previous not in self.load:
                raise UpstreamError(
                    f"the previous owner of {self.table.named(partition)} is excluded from moves",
                    "NullPointerException",
                )
            if load > self.load[previous] + 1:
                return previous
        least = self._least_loaded_subscriber(self.table.topic_of[partition])
        return least if load > self.load[least] + 1 else None

    def is_balanced(self, partition: int) -> bool:
        """Return whether no move improves the balance. Test moves of ``partition`` first."""
        if self._is_balanced is None:
            # Most searches end at the partition that is tested next.
            self._is_balanced = self._loads_differ_by_at_most_one() or not (
                self._is_movable(partition) or self._has_move()
            )
        return self._is_balanced

    def reassign_partition(self, partition: int, new_consumer: int) -> None:
        """Undo the reverse move of a partition of the topic. Without one, move ``partition``."""
        consumer = self.current_partition_consumer[partition]
        moved = self.partition_movements.get_the_actual_partition_to_be_moved(
            partition, consumer, new_consumer
        )
        self._process_partition_movement(moved, new_consumer)

    def snapshot(self) -> tuple[Any, ...]:
        """Copy the state of the reassignment, to compare it with later states."""
        lists = {c: sorted(partitions) for c, partitions in self.current_assignment.items()}
        owners = list(self.current_partition_consumer)
        return (owners, self.partition_movements.snapshot(), lists)

    def _process_partition_movement(self, partition: int, new_consumer: int) -> None:
        old_consumer = self.current_partition_consumer[partition]
        self.partition_movements.move_partition(partition, old_consumer, new_consumer)
        self.current_assignment[old_consumer].remove(partition)
        self.current_assignment[new_consumer].append(partition)
        self.current_partition_consumer[partition] = new_consumer
        self.load[old_consumer] -= 1
        self.load[new_consumer] += 1
        self.moved[partition] = None
        self._is_balanced = None
        self._least_loaded.clear()

    def _loads_differ_by_at_most_one(self) -> bool:
        if not self.load:
            raise UpstreamError("all consumers are excluded from moves", "NoSuchElementException")
        return max(self.load.values()) - min(self.load.values()) <= 1

    def _is_movable(self, partition: int) -> bool:
        """Return whether a subscriber has at least two fewer partitions than the owner."""
        least = self._least_loaded_subscriber(self.table.topic_of[partition])
        load = self.load[least]
        owner = self.current_partition_consumer[partition]
        return load != self.max_assignment_size[least] and load + 1 < self.load[owner]

    def _has_move(self) -> bool:
        """Return whether a partition can move to a consumer with at least two fewer partitions."""
        load, owner = self.load, self.current_partition_consumer
        for topic, consumers in enumerate(self._participants):
            receivers = [load[c] for c in consumers if load[c] != self.max_assignment_size[c]]
            if len(consumers) > 1 and receivers:
                most = max(load[owner[partition]] for partition in self.table.range_of(topic))
                if min(receivers) + 1 < most:
                    return True
        return False

    def _least_loaded_subscriber(self, topic: int) -> int:
        if topic not in self._least_loaded:
            # Tie-break: the smallest member id.
            self._least_loaded[topic] = min(self._participants[topic], key=self.load.__getitem__)
        return self._least_loaded[topic]


class ReassignmentWithDuplicates(Reassignment):
    """Reassignment phase for groups in which a partition can have two owners."""

    def is_balanced(self, partition: int) -> bool:  # noqa: ARG002
        """Return whether no partition can move, like Kafka's ``isBalanced``."""
        if self._loads_differ_by_at_most_one():
            return True
        # Tie-break: the last owner in the order of the map.
        owner = {p: c for c, partitions in self.current_assignment.items() for p in partitions}
        return not any(self._has_movable(consumer, owner) for consumer in self.load)

    def better_suited_consumer(self, partition: int) -> int | None:
        """Return the consumer to which a partition moves, or None if it stays."""
        load = self._load_of(self.current_partition_consumer[partition])
        previous = self.prev_assignment.get(partition)
        if previous is not None and load > self._load_of(previous) + 1:
            return previous
        topic = self.table.topic_of[partition]
        if any(load > self._load_of(other) + 1 for other in self.topic_consumers[topic]):
            return self._least_loaded_subscriber(topic)
        return None

    def _has_movable(self, consumer: int, owner: dict[int, int]) -> bool:
        load = self.load[consumer]
        if load == self.max_assignment_size[consumer]:
            return False
        assigned = frozenset(self.current_assignment[consumer])
        return any(
            load + 1 < self._load_of(owner.get(partition, -1))
            for topic in self.consumer_topics[consumer]
            for partition in self.table.range_of(topic)
            if partition not in assigned
        )

    def _load_of(self, consumer: int) -> int:
        if consumer not in self.load:
            raise UpstreamError(
                "the assignor reads the load of a consumer that is excluded from moves",
                "NullPointerException",
            )
        return self.load[consumer]


class _CycleDetector:
    """Brent's cycle detection on the states of a reassignment.

    A state determines all later ones, so a repeated state proves non-termination. The stored
    state is replaced after 1, 2, 4, ... passes (R. P. Brent: An improved Monte Carlo
    factorization algorithm, BIT 20, 1980).
    """

    def __init__(self, state: Reassignment) -> None:
        self._state = state
        self._power = 1
        self._passes = 0
        self._stored = state.snapshot()
        state.moved.clear()

    def check(self) -> None:
        self._passes += 1
        state = self._state
        if state.current_partition_consumer == self._stored[0] and state.snapshot() == self._stored:
            raise RepeatedStateError(self._passes, sorted(state.moved))
        if self._passes == self._power:
            self._power *= 2
            self._passes = 0
            self._stored = state.snapshot()
            state.moved.clear()


@dataclass(eq=False)
class GeneralAssignmentBuilder:
    """State of one run of the sticky algorithm for mixed subscriptions.

    ``current_assignment`` is in the order of Kafka's map, and is modified. ``members`` are
    the ids of the consumers by rank.
    """

    table: PartitionTable
    rack_info: RackInfo
    current_assignment: dict[int, list[int]]
    consumer_topics: Mapping[int, Sequence[int]]
    members: Sequence[str]

    def __post_init__(self) -> None:
        self.topic_consumers: list[list[int]] = [[] for _ in self.table.topics]
        for consumer, topics in self.consumer_topics.items():
            for topic in topics:
                self.topic_consumers[topic].append(consumer)
        self.max_assignment_size = {
            consumer: sum(self.table.counts[topic] for topic in topics)
            for consumer, topics in self.consumer_topics.items()
        }
        self.current_partition_consumer = [-1] * len(self.table.topic_of)
        for consumer, partitions in self.current_assignment.items():
            for partition in partitions:
                self.current_partition_consumer[partition] = consumer
        self.revocation_required = False

    def build(
        self, claims: Mapping[int, Sequence[int]], generations: Mapping[int, int]
    ) -> dict[int, list[int]]:
        """Compute the partitions of each consumer from all claims and their generations."""
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
        """Assign the unassigned partitions, then move partitions if this improves the balance.

        ``current_assignment`` loses the fixed consumers meanwhile, and is complete at the end,
        also if the reassignment raises an error.
        """
        initializing = not any(self.current_assignment.values())
        self._maybe_assign(self._maybe_assign_in_racks(unassigned))

        sorted_all = [p for p in range(self.table.size) if self._can_participate(p)]
        unassigned = [p for p in unassigned if self._can_participate(p)]
        current = self.current_assignment
        fixed = {c: tps for c, tps in current.items() if not self._can_consumer_participate(c)}
        order = _HashOrder(self.members, self.consumer_topics)
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
        state = (ReassignmentWithDuplicates if has_phantoms else Reassignment)(
            self.table,
            self.current_assignment,
            self.current_partition_consumer,
            self.topic_consumers,
            self.consumer_topics,
            self.max_assignment_size,
            prev_assignment,
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
    """Return the newest claimant of each partition in generations below the highest one."""
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
    return hash_map(consumers, lambda c: string_hash(members[c]), capacity=capacity)


class _HashOrder:
    """Order of the consumers in Kafka's hash map, after removals and insertions.

    ``subscribed`` is the initial insertion order. Fixed consumers, which cannot participate, are
    removed and added again at the end.
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
