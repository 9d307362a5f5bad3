"""Deterministic simulation of Kafka's group coordinator in virtual time.

`ClassicCoordinator` implements the classic protocol, `ConsumerCoordinator` KIP-848. This
package imports no assignor: classic leaders send assignments, `ConsumerCoordinator` takes an
assignor as argument.
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
