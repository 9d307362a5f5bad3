"""Kafka's group coordinator as a deterministic simulation in virtual time.

`ClassicCoordinator` is the classic protocol, `ConsumerCoordinator` the one of KIP-848.
No assignor is imported here: under the classic protocol the leader brings the assignment,
under the other one the assignor is an argument.
"""

from kassay.reference.coordinator.classic.coordinator import ClassicCoordinator
from kassay.reference.coordinator.classic.states import GroupState, IllegalTransitionError
from kassay.reference.coordinator.clock import Clock
from kassay.reference.coordinator.config import CoordinatorConfig
from kassay.reference.coordinator.consumer.coordinator import ConsumerCoordinator
from kassay.reference.coordinator.log import Log

__all__ = [
    "ClassicCoordinator",
    "Clock",
    "ConsumerCoordinator",
    "CoordinatorConfig",
    "GroupState",
    "IllegalTransitionError",
    "Log",
]
