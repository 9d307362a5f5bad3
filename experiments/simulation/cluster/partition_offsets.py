"""Produced, read and committed offsets of every partition of a simulation."""

from collections.abc import Callable

from kassay.experiments.simulation.scripts.script import TopicPlan
from kassay.reference.model.topic_partitions import Partitions, TopicPartition


class PartitionOffsets:
    """Produced and read offsets of every partition at any simulated time.

    ``committed`` returns the offset of a partition that the coordinator has stored.

    Examples
    --------
    >>> offsets = PartitionOffsets(lambda partition: 0)
    >>> offsets.add_topic(TopicPlan(name="t", partitions=1, rate=10), now=0)
    >>> offsets.seek_to_committed(Partitions.of([("t", 0)]))
    >>> offsets.read(Partitions.of([("t", 0)]), limit=None, now=2_000)
    20
    >>> offsets.lag(now=2_500)
    5
    """

    def __init__(self, committed: Callable[[TopicPartition], int]) -> None:
        self.reread_messages = 0
        self.max_lag = 0
        self._committed = committed
        self._rates: dict[TopicPartition, int] = {}
        self._created_at: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._max_positions: dict[TopicPartition, int] = {}

    @property
    def is_active(self) -> bool:
        """Return whether any topic has a message rate above 0."""
        return bool(self._rates)

    def add_topic(self, plan: TopicPlan, now: int) -> None:
        """Start producing messages to the new partitions of a topic."""
        for number in range(plan.partitions if plan.rate else 0):
            partition = TopicPartition(plan.name, number)
            if partition not in self._rates:
                self._rates[partition] = plan.rate
                self._created_at[partition] = now
                self._max_positions[partition] = 0

    def _end_offset(self, partition: TopicPartition, now: int) -> int:
        return self._rates[partition] * (now - self._created_at[partition]) // 1000

    def seek_to_committed(self, partitions: Partitions) -> None:
        """Set the read positions of partitions to their committed offsets."""
        if self.is_active:
            for partition in partitions:
                if partition in self._rates:
                    offset = self._committed(partition)
                    self.reread_messages += max(0, self._max_positions[partition] - offset)
                    self._positions[partition] = offset

    def read(self, partitions: Partitions, limit: int | None, now: int) -> int:
        """Read up to ``limit`` messages from partitions, and return the number of read messages."""
        total = 0
        for partition in partitions:
            if partition not in self._rates:
                continue
            position = self._positions[partition]
            available = self._end_offset(partition, now) - position
            count = available if limit is None else min(available, limit - total)
            self._positions[partition] = position + count
            self._max_positions[partition] = max(self._max_positions[partition], position + count)
            total += count
        return total

    def positions(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return the read positions of partitions. The owner commits these offsets."""
        return {p: self._positions[p] for p in partitions if p in self._positions}

    def lag(self, now: int) -> int:
        """Return the number of messages produced but not yet read, and update ``max_lag``."""
        lag = sum(self._end_offset(p, now) - self._max_positions[p] for p in self._rates)
        self.max_lag = max(self.max_lag, lag)
        return lag
