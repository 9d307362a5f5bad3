"""Moves made by one run of the sticky algorithm.

Upstream: AbstractStickyAssignor.PartitionMovements, kafka-clients 4.4.0. Methods keep
upstream's names.
"""

from collections.abc import Callable
from typing import Any

from kassay.reference.java.hash_map import HashMap

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
