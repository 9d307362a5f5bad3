"""Moving partitions to where they balance the load, one at a time, until nothing moves.

Upstream: performReassignments, isBalanced and reassignPartition of
AbstractStickyAssignor.GeneralAssignmentBuilder, kafka-clients 4.4.0. Methods keep
upstream's names. What is not upstream's: `is_balanced` remembers its answer until
something moves and looks for a counterexample where the last one was; and a state that
comes back is reported, where upstream goes round for ever.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kassay.reference.assignors.client.balance_search import PartitionColumns
from kassay.reference.assignors.client.partition_movements import PartitionMovements
from kassay.reference.assignors.client.partition_table import PartitionTable
from kassay.reference.model.assignor_result import UpstreamError


class RepeatedStateError(RuntimeError):
    """The reassignment has come back to a state it was in before.

    Parameters
    ----------
    cycle_length
        Passes from the state to its repetition.
    circling
        Partitions that moved on the way.
    """

    def __init__(self, cycle_length: int, circling: list[int]) -> None:
        super().__init__(cycle_length, circling)
        self.cycle_length = cycle_length
        self.circling = circling


class ByLoad:
    """Consumers in the order of their loads, then ids: upstream's sorted subscriptions."""

    def __init__(self, consumers: int) -> None:
        self._consumers = consumers
        self._keys: list[int] = []

    def add(self, consumer: int, load: int) -> None:
        """Put a consumer in its place."""
        insort(self._keys, load * self._consumers + consumer)

    def remove(self, consumer: int, load: int) -> None:
        """Take a consumer out."""
        del self._keys[bisect_left(self._keys, load * self._consumers + consumer)]

    def __iter__(self) -> Iterator[int]:
        """Yield the consumers, least loaded first."""
        return (key % self._consumers for key in self._keys)

    def __len__(self) -> int:
        """Count the consumers."""
        return len(self._keys)

    @property
    def first(self) -> int:
        """The least loaded consumer."""
        return self._keys[0] % self._consumers

    @property
    def last(self) -> int:
        """The most loaded consumer."""
        return self._keys[-1] % self._consumers


class Reassignment:
    """The state of the algorithm while it moves partitions.

    Parameters
    ----------
    table
        The partitions.
    current_assignment
        Partitions of each consumer that can take part, in the order of upstream's map.
        It is altered in place.
    current_partition_consumer
        Consumer of each partition. It is altered in place.
    topic_consumers
        For each topic its subscribers, in the order of upstream's map.
    consumer_topics
        For each consumer its topics.
    max_assignment_size
        For each consumer the number of partitions of its topics.
    prev_assignment
        For some partitions a consumer that had it in an earlier generation.
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
        self.sorted_current_subscriptions = ByLoad(len(max_assignment_size))
        for consumer, load in self.load.items():
            self.sorted_current_subscriptions.add(consumer, load)
        self.moved: dict[int, None] = {}
        self._columns = PartitionColumns(
            table,
            load=self.load,
            owner=current_partition_consumer,
            topic_consumers=topic_consumers,
            max_assignment_size=max_assignment_size,
        )
        self._subscribed = [frozenset(consumers) for consumers in topic_consumers]
        self._least_loaded: dict[int, int] = {}
        self._balanced: bool | None = None
        self._witness: tuple[int, int] | None = None

    def perform_reassignments(self, reassignable_partitions: Sequence[int]) -> bool:
        """Go over the partitions until a pass moves none; tell whether any moved.

        Raises
        ------
        RepeatedStateError
            If the state after a pass is one that an earlier pass ended in.
        UpstreamFailure
            If upstream throws an exception.
        """
        performed = False
        recurrence = Recurrence(self)
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
            recurrence.check()

    def better_suited_consumer(self, partition: int) -> int | None:
        """Return where upstream would move a partition, None if it stays.

        Racks decide nothing here: upstream looks in the rack first, but then moves to the
        least loaded subscriber of any rack.
        """
        load = self.load[self.current_partition_consumer[partition]]
        previous = self.prev_assignment.get(partition)
        if previous is not None:
            if previous not in self.load:
                raise UpstreamError(
                    "NullPointerException",
                    f"the previous owner of {self.table.named(partition)} takes no part",
                )
            if load > self.load[previous] + 1:
                return previous
        least = self._least_loaded_subscriber(self.table.topic_of[partition])
        return least if load > self.load[least] + 1 else None

    def is_balanced(self, partition: int) -> bool:
        """Tell whether no partition can go to a consumer of two or more fewer.

        Parameters
        ----------
        partition
            Where to look for a counterexample first.
        """
        if self._balanced is None:
            self._balanced = self._find_balanced(partition)
        return self._balanced

    def reassign_partition(self, partition: int, new_consumer: int) -> None:
        """Move a partition, or one of its topic that came the opposite way."""
        consumer = self.current_partition_consumer[partition]
        self._process_partition_movement(
            self.partition_movements.get_the_actual_partition_to_be_moved(
                partition, consumer, new_consumer
            ),
            new_consumer,
        )

    def snapshot(self) -> tuple[Any, ...]:
        """Return all that the further course depends on."""
        return (list(self.current_partition_consumer), self.partition_movements.snapshot())

    def _process_partition_movement(self, partition: int, new_consumer: int) -> None:
        old_consumer = self.current_partition_consumer[partition]
        for consumer in dict.fromkeys((old_consumer, new_consumer)):
            self.sorted_current_subscriptions.remove(consumer, self.load[consumer])
        self.partition_movements.move_partition(partition, old_consumer, new_consumer)
        self.current_assignment[old_consumer].remove(partition)
        self.current_assignment[new_consumer].append(partition)
        self.current_partition_consumer[partition] = new_consumer
        self.load[old_consumer] -= 1
        self.load[new_consumer] += 1
        for consumer in dict.fromkeys((new_consumer, old_consumer)):
            self.sorted_current_subscriptions.add(consumer, self.load[consumer])
        self._columns.move(partition, old_consumer, new_consumer)
        self.moved[partition] = None
        self._balanced = None
        self._least_loaded.clear()

    def _find_balanced(self, partition: int) -> bool:
        ordered = self.sorted_current_subscriptions
        if not ordered:
            raise UpstreamError("NoSuchElementException", "no consumer can take part")
        if self.load[ordered.first] >= self.load[ordered.last] - 1:
            return True
        here = (self._least_loaded_subscriber(self.table.topic_of[partition]), partition)
        if self._can_be_moved(*here) or (self._witness and self._can_be_moved(*self._witness)):
            return False
        self._witness = self._columns.movable()
        return self._witness is None

    def _can_be_moved(self, consumer: int, partition: int) -> bool:
        """Tell whether a subscriber that can have more is at least two below the owner."""
        load = self.load[consumer]
        owner = self.current_partition_consumer[partition]
        return load != self.max_assignment_size[consumer] and load + 1 < self.load[owner]

    def _least_loaded_subscriber(self, topic: int) -> int:
        if topic not in self._least_loaded:
            consumers = self._subscribed[topic]
            if len(consumers) ** 2 < len(self.load):
                load = self.load
                least = min((load[c], c) for c in consumers if c in load)[1]
            else:
                ordered = self.sorted_current_subscriptions
                least = next(consumer for consumer in ordered if consumer in consumers)
            self._least_loaded[topic] = least
        return self._least_loaded[topic]


class Recurrence:
    """Watches for a state that comes back, with one remembered state (Brent's method).

    The course from a state on is fixed by it, so that a repeated state proves a loop
    without end. The remembered state is renewed after 1, 2, 4, ... passes; the passes
    since then are the length of the cycle when it comes back.

    References
    ----------
    R. P. Brent. "An improved Monte Carlo factorization algorithm". BIT 20, 1980.
    """

    def __init__(self, state: Reassignment) -> None:
        self._state = state
        self._power = 1
        self._passes = 0
        self._remembered = state.snapshot()
        state.moved.clear()

    def check(self) -> None:
        """Compare the state after a pass with the remembered one."""
        self._passes += 1
        state = self._state
        if (
            state.current_partition_consumer == self._remembered[0]
            and state.snapshot() == self._remembered
        ):
            raise RepeatedStateError(self._passes, sorted(state.moved))
        if self._passes == self._power:
            self._power *= 2
            self._passes = 0
            self._remembered = state.snapshot()
            state.moved.clear()
