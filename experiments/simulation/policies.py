"""Who assigns, and by which protocol: Kafka's assignors, and the proven optimum beside them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.reference.model.topic_partitions import TopicPartition

Assign = Callable[[Group], Assignment]


class GroupProtocol(StrEnum):
    """How a group gets from one assignment to the next."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Policy:
    """An assignor under a protocol.

    Parameters
    ----------
    name
        Name of the policy.
    protocol
        Eager (everybody stops), cooperative (KIP-429) or consumer (KIP-848).
    assign
        The assignor. A cooperative one withholds what changes hands.
    """

    name: str
    protocol: GroupProtocol
    assign: Assign


def withhold(assign: Assign) -> Assign:
    """Make an assignor fit for cooperative rebalancing, as Kafka's own one is.

    What another member still owns is given to nobody; its owner gives it up, and the
    rebalance that follows gives it away.
    """

    def assign_free(group: Group) -> Assignment:
        owners = ownership(group).owners
        index = {member.id: number for number, member in enumerate(group.members)}

        def is_free(member: str, tp: TopicPartition) -> bool:
            return int(owners[tp.topic][tp.partition]) in (NO_OWNER, index[member])

        full = assign(group)
        return Assignment(
            {member: [tp for tp in tps if is_free(member, tp)] for member, tps in full.items()}
        )

    return assign_free


def optimum(group: Group) -> Assignment:
    """Assign the proven optimum: least imbalance, then fewest moves."""
    from kassay.solver.solve import solve  # noqa: PLC0415 - OR-Tools is slow to import

    found = solve(group).assignment
    if found is None:
        raise RuntimeError(f"group {group.id!r} has no assignment within its limits")
    return found


def _kafka(name: str, group: Group) -> Assignment:
    from kassay.reference.assignors import assign  # noqa: PLC0415 - scripts are read without it

    return assign(group, name)


def _policy(name: str, protocol: GroupProtocol, assign: Assign | None = None) -> Policy:
    return Policy(name, protocol, assign or partial(_kafka, name))


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        _policy("range", GroupProtocol.EAGER),
        _policy("roundrobin", GroupProtocol.EAGER),
        _policy("sticky", GroupProtocol.EAGER),
        _policy("optimum-eager", GroupProtocol.EAGER, optimum),
        _policy("cooperative-sticky", GroupProtocol.COOPERATIVE),
        _policy("optimum-cooperative", GroupProtocol.COOPERATIVE, withhold(optimum)),
        _policy("server-range", GroupProtocol.CONSUMER),
        _policy("uniform", GroupProtocol.CONSUMER),
        _policy("optimum-consumer", GroupProtocol.CONSUMER, optimum),
    )
}
"""Policies by name."""
