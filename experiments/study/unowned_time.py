"""Time without an owner at a rebalance, by rebalance protocol."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kassay.reference.assignors import RebalanceProtocol
from kassay.reference.model.assignment import ownership
from kassay.reference.model.group import Group

UNOWNED_SECONDS: Mapping[RebalanceProtocol, float] = MappingProxyType(
    {
        RebalanceProtocol.EAGER: 0.7,
        RebalanceProtocol.COOPERATIVE: 3.5,
        RebalanceProtocol.CONSUMER: 2.4,
    }
)
"""Seconds without an owner per revoked partition.

The values are rounded results of `kassay simulate` with the default settings of Kafka's client and
broker, for groups of 12 and 50 members that one member joins. Under the eager protocol, all owned
partitions are revoked; under the others, only moved partitions. Partitions of members that left
are not included.
"""


def unowned_seconds(
    groups: Iterable[Group], moves: int, *, protocols: Iterable[RebalanceProtocol] = UNOWNED_SECONDS
) -> dict[str, float]:
    """Return the partition-seconds without an owner over rebalances, by protocol.

    ``groups`` has the group at each rebalance, and ``moves`` counts the moves of all rebalances.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> members = (Member(id="a", subscription=("t",), owned=(("t", 0), ("t", 1))),)
    >>> group = Group(topics=(Topic(name="t", partitions=2),), members=members)
    >>> unowned_seconds([group], 1)
    {'eager': 1.4, 'cooperative': 3.5, 'consumer': 2.4}
    """
    revoked = dict.fromkeys(RebalanceProtocol, moves)
    revoked[RebalanceProtocol.EAGER] = sum(ownership(group).owned_count for group in groups)
    return {str(one): round(UNOWNED_SECONDS[one] * revoked[one], 1) for one in protocols}
