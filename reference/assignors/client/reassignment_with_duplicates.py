"""Reassignment with partitions that have two owners, by upstream's slow search.

If a member claims a partition that does not exist, the general algorithm assigns partitions
that have an owner (see `PartitionTable.unassigned`). Loads do not determine the possible moves
then, so this class follows upstream's search step by step.

Upstream: AbstractStickyAssignor.GeneralAssignmentBuilder, kafka-clients 4.4.0.
"""

from typing import Any

from kassay.reference.assignors.client.reassignment import Reassignment
from kassay.reference.model.assignor_result import UpstreamError


class ReassignmentWithDuplicates(Reassignment):
    """`Reassignment` that searches the lists of partitions, as upstream does."""

    def is_balanced(self, partition: int) -> bool:  # noqa: ARG002
        """Return whether upstream's ``isBalanced`` finds no partition that could move."""
        ordered = self.sorted_current_subscriptions
        if not ordered:
            raise UpstreamError("NoSuchElementException", "no consumer can participate")
        if self.load[ordered.first] >= self.load[ordered.last] - 1:
            return True
        # Tie-break: the last owner in the order of the map.
        owner = {p: c for c, partitions in self.current_assignment.items() for p in partitions}
        return not any(self._has_movable(consumer, owner) for consumer in ordered)

    def better_suited_consumer(self, partition: int) -> int | None:
        """Return the new consumer of a partition, None if it does not move."""
        load = self._load_of(self.current_partition_consumer[partition])
        previous = self.prev_assignment.get(partition)
        if previous is not None and load > self._load_of(previous) + 1:
            return previous
        topic = self.table.topic_of[partition]
        if any(load > self._load_of(other) + 1 for other in self.topic_consumers[topic]):
            return self._least_loaded_subscriber(topic)
        return None

    def snapshot(self) -> tuple[Any, ...]:
        """Return the complete state, with the lists of partitions."""
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
                "NullPointerException", "the load of a consumer that does not participate is read"
            )
        return self.load[consumer]
