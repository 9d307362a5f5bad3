"""Optimal assignor for consumers of aiokafka."""

from collections.abc import Mapping
from typing import Any, ClassVar

from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from kassay.clients.optimal_assignment import Weights, optimal_assignment


class OptimalAssignor(StickyPartitionAssignor):  # type: ignore[misc, unused-ignore]
    """Assignor with minimum imbalance and, among those assignments, fewest moves.

    Pass the class in ``partition_assignment_strategy`` of `aiokafka.AIOKafkaConsumer`. Its name
    and user data are those of the library's sticky assignor. If the optimum is not proven within
    ``seconds``, the library's sticky assignor decides.

    aiokafka stores the owned partitions of the sticky assignor in the class. Consumers of one
    process therefore need a subclass each.

    Attributes
    ----------
    seconds
        Time limit in seconds. The event loop stops during this time, so that the limit must be
        less than the session timeout of the group.
    weights
        Weights of the partitions per topic: one integer each, or a list with one per window. All
        members must have the same weights.
    """

    seconds: ClassVar[float] = 5.0
    weights: ClassVar[Weights] = {}

    @classmethod
    def assign(cls, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """Assign the partitions of the group to its members."""
        subscriptions = {id: cls.parse_member_metadata(each) for id, each in members.items()}
        optimum = optimal_assignment(
            cluster, subscriptions, seconds=cls.seconds, weights=cls.weights
        )
        if optimum is None:
            result: dict[str, Any] = super().assign(cluster, members)
            return result
        return {
            id: ConsumerProtocolMemberAssignment(cls.version, topics, b"")
            for id, topics in optimum.items()
        }
