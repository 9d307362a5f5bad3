"""Policies of a simulation: an assignor or the solver, under a rebalance protocol."""

from dataclasses import dataclass

from kassay.experiments.implementations.installation import driver_command
from kassay.experiments.implementations.library_catalogue import (
    is_library_assignor,
    parse_library_assignor,
)
from kassay.experiments.implementations.runner import run
from kassay.reference.assignors import ASSIGNORS, Assignor, RebalanceProtocol, Release
from kassay.reference.model.assignment import NO_OWNER, Assignment, ownership
from kassay.reference.model.assignor_result import LivelockError, UpstreamError
from kassay.reference.model.errors import InputError, RunError
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Policy:
    """An assignor together with a rebalance protocol.

    A cooperative assignor withholds moved partitions.
    """

    name: str
    protocol: RebalanceProtocol
    assign: Assignor


def withhold(assign: Assignor) -> Assignor:
    """Make an assignor cooperative: it withholds partitions that another member still owns.

    The owner revokes these partitions, and the next rebalance assigns them.
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
    """Return an assignment with minimum imbalance and, among those, fewest moves."""
    from kassay.solver.solve import solve  # noqa: PLC0415 - OR-Tools is slow to import

    assignment = solve(group).assignment
    if assignment is None:
        raise RunError(f"group {group.id!r} has no assignment within the members' capacities")
    return assignment


class _TimeLimitLivelockError(LivelockError):
    """Error: an assignor of a library returns no assignment within its time limit."""

    def __init__(self, reason: str) -> None:
        super().__init__(Assignment({}), 0, ())
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


def policy_named(name: str) -> Policy:
    """Return a policy of `POLICIES`, or the policy of an assignor of an installed library.

    Raise InputError if the policy is unknown, or the library is not installed.
    """
    if name in POLICIES:
        return POLICIES[name]
    if not is_library_assignor(name):
        raise InputError(
            f"unknown policy {name!r}; choose from {', '.join(POLICIES)}, "
            "LIBRARY[@VERSION]:ASSIGNOR"
        )
    assignor = parse_library_assignor(name)
    driver_command(assignor)

    def assign(group: Group) -> Assignment:
        result = run(group, str(assignor))
        if result.livelock is not None:
            raise _TimeLimitLivelockError(str(result.livelock))
        if result.assignment is None:
            raise UpstreamError(None, str(result.failed))
        return result.assignment

    return Policy(str(assignor), assignor.assignor.protocol, assign)


def _policies(protocol: RebalanceProtocol, optimal: Assignor) -> list[Policy]:
    ports = sorted(ASSIGNORS.values(), key=lambda port: port.name)
    return [
        *(
            Policy(port.name, protocol, port.assign)
            for port in ports
            if port.protocol is protocol and port.release is Release.NEWEST
        ),
        Policy(f"optimum-{protocol}", protocol, optimal),
    ]


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        *_policies(RebalanceProtocol.EAGER, optimum),
        *_policies(RebalanceProtocol.COOPERATIVE, withhold(optimum)),
        *_policies(RebalanceProtocol.CONSUMER, optimum),
    )
}
"""Policies by name: the ports of the newest release, and the optimum for each protocol."""
