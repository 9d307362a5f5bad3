"""Values of groups and members that no assignor reads: protocol, client, source of weights."""

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
    SIMPLE = "simple"  # no members: the consumers call assign() and only commit offsets


class Assumed(StrEnum):
    """Property of a member that its source does not show and an import assumes."""

    TOPICS = "topics"  # the subscription
    RACK = "rack"

    @classmethod
    def parse(cls, name: str) -> "Assumed":
        """Convert a name to a property. Raise InputError for an unknown name."""
        try:
            return cls(name)
        except ValueError:
            raise InputError(
                f"assumed properties must be of {', '.join(cls)}, got {name!r}"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Client id, host and library of a member. None means that the source lacks the value.

    Parameters
    ----------
    id
        ``client.id``.
    host
        Host or pod on which the member runs; by default the address from which the client
        connects, as the broker reports it.
    library
        Name of the client library, if it can be recognised.
    """

    id: str | None = None
    host: str | None = None
    library: str | None = None


NO_CLIENT = Client()


class WeightSource(StrEnum):
    """Source of partition weights: a measured quantity or a file."""

    LAG = "lag"  # messages between the committed offset and the end offset
    RATE = "rate"  # messages appended between two samples of the end offsets
    SIZE = "size"  # bytes on disk
    FILE = "file"  # numbers of a file or table; their quantity is not known

    @classmethod
    def parse(cls, name: str) -> "WeightSource":
        """Convert a name to a weight source. Raise InputError for an unknown name."""
        try:
            return cls(name)
        except ValueError:
            known = ", ".join(cls)
            raise InputError(
                f"the source of weights must be one of {known}, got {name!r}"
            ) from None
