"""Vectorised search for a partition whose move improves the balance."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kassay.reference.assignors.client.partition_table import PartitionTable


class LoadAndOwnerColumns:
    """NumPy arrays with the load of each consumer and the owner of each partition.

    Topics are sorted by number of subscribers, so the topics with two or more subscribers,
    whose partitions can move, are at the end.
    """

    def __init__(
        self,
        table: PartitionTable,
        *,
        load: Mapping[int, int],
        owner: Sequence[int],
        topic_consumers: Sequence[Sequence[int]],
        max_assignment_size: Mapping[int, int],
    ) -> None:
        shared = [t for t, consumers in enumerate(topic_consumers) if len(consumers) > 1]
        consumers = range(len(max_assignment_size))
        self._start: int = table.first[shared[0]] if shared else table.size
        self._load = np.array([load.get(c, 0) for c in consumers], dtype=np.int64)
        self._max_load = np.array([max_assignment_size[c] for c in consumers], dtype=np.int64)
        self._owner = np.array(owner[self._start : table.size], dtype=np.int64)
        self._first = np.array([table.first[t] - self._start for t in shared], dtype=np.int64)
        self._subscriber = np.array([c for t in shared for c in topic_consumers[t]], dtype=np.int64)
        sizes = [len(topic_consumers[t]) for t in shared]
        self._first_subscriber = np.cumsum([0, *sizes])[:-1]

    def move(self, partition: int, old_consumer: int, new_consumer: int) -> None:
        """Update the arrays after a partition has moved."""
        self._load[old_consumer] -= 1
        self._load[new_consumer] += 1
        self._owner[partition - self._start] = new_consumer

    def best_move(self) -> tuple[int, int] | None:
        """Find the move with the largest load difference; return its receiver and partition.

        Return None if no difference is above 1.
        """
        infinite = np.iinfo(np.int64).max // 2
        target_load = np.where(self._load == self._max_load, infinite, self._load)[self._subscriber]
        owner_load = self._load[self._owner]
        gaps = np.maximum.reduceat(owner_load, self._first) - np.minimum.reduceat(
            target_load, self._first_subscriber
        )
        widest = int(gaps.argmax())
        if gaps[widest] < 2:
            return None
        subscribers = slice(*self._bounds(self._first_subscriber, widest))
        partitions = slice(*self._bounds(self._first, widest))
        offset = int(owner_load[partitions].argmax()) + int(self._first[widest])
        consumer = self._subscriber[subscribers][target_load[subscribers].argmin()]
        return int(consumer), self._start + offset

    @staticmethod
    def _bounds(firsts: NDArray[np.int64], index: int) -> tuple[int, int | None]:
        end = int(firsts[index + 1]) if index + 1 < len(firsts) else None
        return int(firsts[index]), end
