"""State, protocol and assignor that a cluster reports for a group. Assignors ignore them."""

from dataclasses import dataclass
from enum import StrEnum

from kassay.reference.model.errors import InputError

REBALANCING = "Rebalancing"
"""State of a group that rebalances, if the source does not name the state."""
REBALANCING_STATES = frozenset(
    {REBALANCING, "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
)
"""States of a group between two assignments, classic and consumer protocol."""


class Protocol(StrEnum):
    """Protocol of a consumer group, as in Kafka's property ``group.protocol``."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """State, protocol and assignor of a group. None means that the source lacks the value.

    Parameters
    ----------
    state
        State as Kafka's tools print it, for example ``Stable``.
    protocol
        Protocol of the group.
    assignor
        Name of the assignor as the group reports it: the protocol name of the classic
        protocol, or the broker's assignor (``uniform``, ``range``).
    """

    state: str | None = None
    protocol: Protocol | None = None
    assignor: str | None = None

    def __post_init__(self) -> None:
        if self.protocol is None:
            return
        try:
            object.__setattr__(self, "protocol", Protocol(self.protocol))
        except ValueError:
            known = ", ".join(map(str, Protocol))
            raise InputError(f"protocol must be one of {known}, got {self.protocol!r}") from None

    @property
    def is_rebalancing(self) -> bool:
        """Return whether a rebalance of the group is in progress."""
        return self.state in REBALANCING_STATES

    @property
    def registered_assignor(self) -> str | None:
        """Return the name under which `kassay.assign` accepts the group's assignor.

        The broker's range assignor has the name ``server-range``.
        """
        if self.protocol is Protocol.CONSUMER and self.assignor == "range":
            return "server-range"
        return self.assignor


NO_STATUS = GroupStatus()
