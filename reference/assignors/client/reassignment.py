"""Reassignment phase of the general sticky algorithm: single moves to improve balance.

Upstream: performReassignments, isBalanced and reassignPartition of
AbstractStickyAssignor.GeneralAssignmentBuilder, and AbstractStickyAssignor.PartitionMovements,
kafka-clients 4.4.0. Methods keep upstream's names. Deviations: `is_balanced` caches its result
until the next move, and a repeated state raises an exception, where upstream does not terminate.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kassay.reference.assignors.client.rebalance_input import PartitionTable
from kassay.reference.java_collections import HashMap
from kassay.reference.model.assignor_result import UpstreamError

Pair = tuple[int, int]
"""Previous and new consumer of a move."""


class PartitionMovements:
    """Recorded moves, with an index by partition and an index by topic and consumers.

    ``hash_code`` returns Java's hash code of a partition.
    """

    def __init__(self, topic_of: list[int], hash_code: Callable[[int], int]) -> None:
        self._topic_of = topic_of
        self._hash_code = hash_code
        self._by_topic: dict[int, dict[Pair, HashMap[int, None]]] = {}
        self._by_partition: dict[int, Pair] = {}

    def move_partition(self, partition: int, old_consumer: int, new_consumer: int) -> None:
        """Record a move. Repeated moves of a partition are combined."""
        if partition not in self._by_partition:
            self._add_record(partition, (old_consumer, new_consumer))
            return
        source, _ = self._remove_record(partition)
        if source != new_consumer:
            self._add_record(partition, (source, new_consumer))

    def get_the_actual_partition_to_be_moved(
        self, partition: int, old_consumer: int, new_consumer: int
    ) -> int:
        """Return the partition to move: one with an opposite earlier move, else ``partition``.

        The partition with the earlier move has the same topic. Such moves can undo each other
        endlessly.
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
        """Return all recorded moves as a comparable value, including the order of its sets."""
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
    """Error: the reassignment phase repeats an earlier state and cannot terminate.

    ``cycle_length`` is the number of passes in between, ``moved`` the partitions moved.
    """

    def __init__(self, cycle_length: int, moved: list[int]) -> None:
        super().__init__(cycle_length, moved)
        self.cycle_length = cycle_length
        self.moved = moved


class Reassignment:
    """State of the reassignment phase: loads, owners and recorded moves.

    ``current_assignment`` contains the consumers that can participate, in the order of
    Kafka's map. It and ``current_partition_consumer`` are modified.
    """

    def __init__(
        self,
        table: PartitionTable,
        *,
        current_assignment: dict[int, list[int]],
        current_partition_consumer: list[int],
        topic_consumers: Sequence[Sequence[int]],
        consumer_topics: Mapping[int, Sequence[int]],
        max_assignment_size: Mapping[int, int],
        prev_assignment: Mapping[int, int],
    ) -> None:
        self.table = table
        self.current_assignment = current_assignment
        self.current_partition_consumer = current_partition_consumer
        self.topic_consumers = topic_consumers
        self.consumer_topics = consumer_topics
        self.max_assignment_size = max_assignment_size
        self.prev_assignment = prev_assignment
        self.partition_movements = PartitionMovements(table.topic_of, table.hash_code)
        self.load = {consumer: len(tps) for consumer, tps in current_assignment.items()}
        self._participants = [
            sorted(c for c in consumers if c in self.load) for consumers in topic_consumers
        ]
        self.moved: dict[int, None] = {}
        self._least_loaded: dict[int, int] = {}
        self._is_balanced: bool | None = None
        self._last_movable: tuple[int, int] | None = None

    def perform_reassignments(self, reassignable_partitions: Sequence[int]) -> bool:
        """Move partitions in repeated passes until none moves. Return whether any moved.

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
        """Return the consumer to which a partition moves, None if the partition stays.

        Upstream checks the racks first, but then moves to the least loaded subscriber of any
        rack, so racks have no effect.
        """
        load = self.load[self.current_partition_consumer[partition]]
        previous = self.prev_assignment.get(partition)
        if previous is not None:
            if previous not in self.load:
                raise UpstreamError(
                    "NullPointerException",
                    f"the previous owner of {self.table.named(partition)} does not participate",
                )
            if load > self.load[previous] + 1:
                return previous
        least = self._least_loaded_subscriber(self.table.topic_of[partition])
        return least if load > self.load[least] + 1 else None

    def is_balanced(self, partition: int) -> bool:
        """Return whether no partition can move to a consumer with at least two fewer partitions.

        The search for a movable partition starts with ``partition``.
        """
        if self._is_balanced is None:
            self._is_balanced = self._find_balanced(partition)
        return self._is_balanced

    def reassign_partition(self, partition: int, new_consumer: int) -> None:
        """Move a partition, or undo the opposite move of another partition of its topic."""
        consumer = self.current_partition_consumer[partition]
        moved = self.partition_movements.get_the_actual_partition_to_be_moved(
            partition, consumer, new_consumer
        )
        self._process_partition_movement(moved, new_consumer)

    def snapshot(self) -> tuple[Any, ...]:
        """Return the complete state as a comparable value."""
        return (list(self.current_partition_consumer), self.partition_movements.snapshot())

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
            raise UpstreamError("NoSuchElementException", "no consumer can participate")
        return max(self.load.values()) - min(self.load.values()) <= 1

    def _find_balanced(self, partition: int) -> bool:
        if self._loads_differ_by_at_most_one():
            return True
        candidate = (self._least_loaded_subscriber(self.table.topic_of[partition]), partition)
        if self._can_be_moved(*candidate) or (
            self._last_movable and self._can_be_moved(*self._last_movable)
        ):
            return False
        self._last_movable = self._find_move()
        return self._last_movable is None

    def _find_move(self) -> tuple[int, int] | None:
        """Find a consumer and a partition that can be moved to it, or return None."""
        load, owner = self.load, self.current_partition_consumer
        for topic, consumers in enumerate(self._participants):
            receivers = [c for c in consumers if load[c] != self.max_assignment_size[c]]
            if len(consumers) > 1 and receivers:
                receiver = min(receivers, key=load.__getitem__)
                partition = max(self.table.range_of(topic), key=lambda p: load[owner[p]])
                if load[receiver] + 1 < load[owner[partition]]:
                    return receiver, partition
        return None

    def _can_be_moved(self, consumer: int, partition: int) -> bool:
        """Return whether a subscriber has at least two fewer partitions than the owner."""
        load = self.load[consumer]
        owner = self.current_partition_consumer[partition]
        return load != self.max_assignment_size[consumer] and load + 1 < self.load[owner]

    def _least_loaded_subscriber(self, topic: int) -> int:
        if topic not in self._least_loaded:
            # Tie-break: the smallest member id.
            self._least_loaded[topic] = min(self._participants[topic], key=self.load.__getitem__)
        return self._least_loaded[topic]


class ReassignmentWithDuplicates(Reassignment):
    """Reassignment phase for groups in which a partition can have two owners.

    Loads do not determine the possible moves then, so this class searches as upstream does.
    """

    def is_balanced(self, partition: int) -> bool:  # noqa: ARG002
        """Return whether no partition can move, by the search of Kafka's ``isBalanced``."""
        if self._loads_differ_by_at_most_one():
            return True
        # Tie-break: the last owner in the order of the map.
        owner = {p: c for c, partitions in self.current_assignment.items() for p in partitions}
        return not any(self._has_movable(consumer, owner) for consumer in self.load)

    def better_suited_consumer(self, partition: int) -> int | None:
        """Return the consumer to which a partition moves, None if the partition stays."""
        load = self._load_of(self.current_partition_consumer[partition])
        previous = self.prev_assignment.get(partition)
        if previous is not None and load > self._load_of(previous) + 1:
            return previous
        topic = self.table.topic_of[partition]
        if any(load > self._load_of(other) + 1 for other in self.topic_consumers[topic]):
            return self._least_loaded_subscriber(topic)
        return None

    def snapshot(self) -> tuple[Any, ...]:
        """Return the complete state, including the partition lists, as a comparable value."""
        lists = {c: sorted(partitions) for c, partitions in self.current_assignment.items()}
        return (*super().snapshot(), lists)

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
                "NullPointerException",
                "the assignor reads the load of a consumer that does not participate",
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
