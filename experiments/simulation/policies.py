"""Policies of a simulation: an assignor or the solver, under a group protocol."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import RunError
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.reference.model.topic_partitions import TopicPartition

Assign = Callable[[Group], Assignment]


class GroupProtocol(StrEnum):
    """Rebalance protocol: eager, cooperative (KIP-429) or consumer (KIP-848)."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Policy:
    """An assignor with its group protocol; a cooperative assignor withholds moved partitions."""

    name: str
    protocol: GroupProtocol
    assign: Assign


def withhold(assign: Assign) -> Assign:
    """Make an assignor cooperative: withhold partitions that another member owns.

    The owner revokes them, and the next rebalance assigns them.
    """

    def assign_unowned(group: Group) -> Assignment:
        owners = ownership(group).owners
        index = {member.id: number for number, member in enumerate(group.members)}

        def is_free(member: str, tp: TopicPartition) -> bool:
            return int(owners[tp.topic][tp.partition]) in (NO_OWNER, index[member])

        full = assign(group)
        return Assignment(
            {member: [tp for tp in tps if is_free(member, tp)] for member, tps in full.items()}
        )

    return assign_unowned


def optimum(group: Group) -> Assignment:
    """Assign partitions with minimum imbalance and then with minimum moves."""
    from kassay.solver.solve import solve  # noqa: PLC0415 - OR-Tools is slow to import

    assignment = solve(group).assignment
    if assignment is None:
        raise RunError(f"group {group.id!r} has no assignment within the members' capacities")
    return assignment


def _kafka(name: str, group: Group) -> Assignment:
    from kassay.reference.assignors import assign  # noqa: PLC0415 - not needed to parse scripts

    return assign(group, name)


def kafka_policy(name: str, protocol: GroupProtocol) -> Policy:
    """Return the policy of a ported assignor."""
    return Policy(name, protocol, partial(_kafka, name))


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        kafka_policy("range", GroupProtocol.EAGER),
        kafka_policy("roundrobin", GroupProtocol.EAGER),
        kafka_policy("sticky", GroupProtocol.EAGER),
        Policy("optimum-eager", GroupProtocol.EAGER, optimum),
        kafka_policy("cooperative-sticky", GroupProtocol.COOPERATIVE),
        Policy("optimum-cooperative", GroupProtocol.COOPERATIVE, withhold(optimum)),
        kafka_policy("server-range", GroupProtocol.CONSUMER),
        kafka_policy("uniform", GroupProtocol.CONSUMER),
        Policy("optimum-consumer", GroupProtocol.CONSUMER, optimum),
    )
}
"""Policies by name."""
