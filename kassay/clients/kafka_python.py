"""Optimal assignor for consumers of kafka-python."""

from collections.abc import Sequence
from typing import Any, ClassVar

from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kassay.clients.optimal_assignment import Weights, optimal_assignment


class OptimalAssignor(StickyPartitionAssignor):  # type: ignore[misc, unused-ignore]
    """Assignor with minimum imbalance and, among those assignments, fewest moves.

    Pass the class in ``partition_assignment_strategy`` of `kafka.KafkaConsumer`. Its name and
    user data are those of the library's sticky assignor. If the optimum is not proven within
    ``seconds``, the library's sticky assignor decides.

    Attributes
    ----------
    seconds
        Time limit in seconds. The consumer sends no heartbeats during this time, so that the
        limit must be less than the session timeout of the group.
    weights
        Weights of the partitions per topic: one integer each, or a list with one per window. All
        members must have the same weights.
    """

    seconds: ClassVar[float] = 5.0
    weights: ClassVar[Weights] = {}

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
        """Assign the partitions of the group to its members."""
        subscriptions = {
            member.member_id: self.parse_member_metadata(member.metadata) for member in members
        }
        optimum = optimal_assignment(
            cluster, subscriptions, seconds=self.seconds, weights=self.weights
        )
        if optimum is None:
            result: dict[str, Any] = super().assign(cluster, members)
            return result
        return {
            id: ConsumerProtocolAssignment(self.version, topics, b"")
            for id, topics in optimum.items()
        }
