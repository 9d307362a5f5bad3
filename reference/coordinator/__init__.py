"""Kafka's group coordinator as a deterministic simulation in virtual time.

`ClassicCoordinator` is the classic protocol, `ConsumerCoordinator` the one of KIP-848.
No assignor is imported here: under the classic protocol the leader brings the assignment,
under the other one the assignor is an argument.
"""

from reference.coordinator.classic import ClassicCoordinator
from reference.coordinator.clock import Clock
from reference.coordinator.config import Config
from reference.coordinator.consumer import ConsumerCoordinator
from reference.coordinator.log import Log
from reference.coordinator.states import GroupState, IllegalTransitionError

__all__ = [
    "ClassicCoordinator",
    "Clock",
    "Config",
    "ConsumerCoordinator",
    "GroupState",
    "IllegalTransitionError",
    "Log",
]
