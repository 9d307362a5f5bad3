"""Racks of consumers and partitions in the sticky assignors.

Upstream: AbstractStickyAssignor.RackInfo, kafka-clients 4.4.0.
"""

from collections.abc import Mapping

from kassay.reference.assignors.client.partition_table import PartitionTable
from kassay.reference.assignors.client.rebalance_input import rack_sets, use_rack_aware_assignment
from kassay.reference.model.group import Topic


class RackInfo:
    """Racks of the consumers and of the replicas of each partition."""

    def __init__(
        self,
        table: PartitionTable,
        partitions_per_topic: Mapping[str, Topic],
        racks: Mapping[int, str],
    ) -> None:
        self.consumer_racks: Mapping[int, str] = {}
        self.partition_racks: list[frozenset[str]] = []
        self._num_consumers_by_partition: list[int] = []
        if not racks:
            return
        consumers_by_rack: dict[str, int] = {}
        for rack in racks.values():
            consumers_by_rack[rack] = consumers_by_rack.get(rack, 0) + 1
        partition_racks = [
            known for topic in table.topics for known in rack_sets(partitions_per_topic[topic])
        ]
        if use_rack_aware_assignment(consumers_by_rack, partition_racks):
            self.consumer_racks = racks
            self.partition_racks = partition_racks
        self._num_consumers_by_partition = [
            sum(consumers_by_rack.get(rack, 0) for rack in sorted(known))
            for known in partition_racks
        ]

    def racks_mismatch(self, consumer: int, partition: int) -> bool:
        """Return whether the consumer has a rack without a replica of the partition."""
        rack = self.consumer_racks.get(consumer)
        if rack is None:
            return False
        return partition >= len(self.partition_racks) or rack not in self.partition_racks[partition]

    def sort_partitions_by_rack_consumers(self, partitions: list[int]) -> list[int]:
        """Sort partitions by the number of consumers in the racks of their replicas."""
        if not self._num_consumers_by_partition:
            return partitions
        # Tie-break: the sort is stable.
        return sorted(partitions, key=self._num_consumers_by_partition.__getitem__)

    def next_rack_consumer(self, partition: int, consumers: list[int], first_index: int) -> int:
        """Return the index of the next consumer in the rack of a replica, or -1 for none."""
        racks = self.partition_racks[partition]
        if not racks:
            return -1
        for step in range(len(consumers)):
            index = (first_index + step) % len(consumers)
            if self.consumer_racks.get(consumers[index]) in racks:
                return index
        return -1
