"""Reassignment where a partition may be held twice: upstream's own, slow search.

A claim to a partition that does not exist makes the general algorithm assign partitions
that have an owner (see `PartitionTable.unassigned`). Loads then no longer tell who can
give what to whom, and upstream's search has to be followed step by step.

Upstream: AbstractStickyAssignor.GeneralAssignmentBuilder, kafka-clients 4.4.0.
"""

from typing import Any

from kassay.reference.assignors.client.reassignment import Reassignment
from kassay.reference.model.assignor_result import UpstreamError


class ReassignmentWithDuplicates(Reassignment):
    """`Reassignment` that looks at every list, as upstream does."""

    def is_balanced(self, partition: int) -> bool:  # noqa: ARG002
        """Tell whether upstream's ``isBalanced`` finds no partition that could move."""
        ordered = self.sorted_current_subscriptions
        if not ordered:
            raise UpstreamError("NoSuchElementException", "no consumer can take part")
        if self.load[ordered.first] >= self.load[ordered.last] - 1:
            return True
        # Of two holders the later one in the order of the map counts.
        holder = {p: c for c, partitions in self.current_assignment.items() for p in partitions}
        return not any(self._finds_movable(consumer, holder) for consumer in ordered)

    def better_suited_consumer(self, partition: int) -> int | None:
        """Return where upstream would move a partition, None if it stays."""
        load = self._load_of(self.current_partition_consumer[partition])
        previous = self.prev_assignment.get(partition)
        if previous is not None and load > self._load_of(previous) + 1:
            return previous
        topic = self.table.topic_of[partition]
        if any(load > self._load_of(other) + 1 for other in self.topic_consumers[topic]):
            return self._least_loaded_subscriber(topic)
        return None

    def snapshot(self) -> tuple[Any, ...]:
        """Return all that the further course depends on, here the lists' content too."""
        lists = {c: sorted(partitions) for c, partitions in self.current_assignment.items()}
        return (*super().snapshot(), lists)

    def _finds_movable(self, consumer: int, holder: dict[int, int]) -> bool:
        load = self.load[consumer]
        if load == self.max_assignment_size[consumer]:
            return False
        held = frozenset(self.current_assignment[consumer])
        return any(
            load + 1 < self._load_of(holder.get(partition, -1))
            for topic in self.consumer_topics[consumer]
            for partition in self.table.range_of(topic)
            if partition not in held
        )

    def _load_of(self, consumer: int) -> int:
        if consumer not in self.load:
            raise UpstreamError(
                "NullPointerException", "a consumer that takes no part is asked for its load"
            )
        return self.load[consumer]
