"""Policies of a simulation: an assignor or the solver, with a rebalance protocol.

In a group with members of several client libraries, the leader's library assigns. The leader knows
the owned partitions of a member of another library only if the member sends them in a format that
the leader decodes. docs/results/clients.md has the rules, and tests of the rules with real groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kassay.experiments.implementations import assignor_names
from kassay.experiments.implementations.client_libraries import (
    NAMES_IN_PROTOCOL,
    Library,
    LibraryAssignor,
    driver_command,
    is_library_assignor,
    libraries,
    parse_library_assignor,
    version_key,
)
from kassay.experiments.implementations.run_assignor import run
from kassay.reference.assignors import ASSIGNORS, Assignor, RebalanceProtocol, Release
from kassay.reference.model.assignment import (
    NO_OWNER,
    Assignment,
    LivelockError,
    ownership,
    violations,
)
from kassay.reference.model.errors import InputError, RunError, UpstreamError
from kassay.reference.model.group import NO_GENERATION, Group, Member
from kassay.reference.model.topic_partitions import NO_PARTITIONS, TopicPartition


@dataclass(frozen=True, slots=True)
class Policy:
    """Assignor and rebalance protocol of a simulated group."""

    name: str
    protocol: RebalanceProtocol
    assign: Assignor


def withhold(assign: Assignor) -> Assignor:
    """Wrap an assignor so that it withholds a partition until its owner has revoked it.

    The next rebalance assigns the revoked partitions.
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
    """Return the optimal assignment of a group, or raise RunError if no assignment is found."""
    from kassay.solver.solve import solve  # noqa: PLC0415 - OR-Tools is slow to import

    assignment = solve(group).assignment
    if assignment is None:
        raise RunError(
            f"{group.label}: the capacities of the members permit no assignment; increase "
            "capacities or add members"
        )
    return assignment


class _TimeLimitLivelockError(LivelockError):
    """Error: an assignor returns no assignment within its time limit."""

    def __init__(self, reason: str) -> None:
        super().__init__(Assignment({}), 0, ())
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


def policy_named(name: str) -> Policy:
    """Return the policy of a port, of a library's assignor or of a custom assignor.

    Custom assignors use the eager protocol, except Java classes, which define their protocol. Raise
    InputError if the policy is unknown, or if the library is not installed.
    """
    if name in POLICIES:
        return POLICIES[name]
    protocol = RebalanceProtocol.EAGER
    if is_library_assignor(name):
        assignor = parse_library_assignor(name)
        driver_command(assignor)
        name, protocol = str(assignor), assignor.assignor.protocol
    elif assignor_names.is_custom_assignor(name):
        java = assignor_names.parse_custom_assignor(name).java
        protocol = protocol if java is None else java.protocol
    else:
        raise InputError(
            f"unknown policy {name!r}; choose from {', '.join(POLICIES)}, "
            "LIBRARY[@VERSION]:ASSIGNOR, python:MODULE:FUNCTION, cmd:COMMAND, class:CLASS@PATH"
        )

    def assign(group: Group) -> Assignment:
        result = run(group, name)
        if result.livelock is not None:
            raise _TimeLimitLivelockError(str(result.livelock))
        if result.assignment is None:
            raise UpstreamError(str(result.failed))
        problem = next(violations(group, result.assignment), None)
        if problem is not None and assignor_names.is_custom_assignor(name):
            raise UpstreamError(f"invalid assignment: {problem}")
        return result.assignment

    return Policy(name, protocol, assign)


def _policies(protocol: RebalanceProtocol, optimal: Assignor) -> list[Policy]:
    ports = sorted(ASSIGNORS.values(), key=lambda port: port.name)
    return [
        *(
            Policy(port.name, protocol, port.assign)
            for port in ports
            if port.protocol is protocol and port.release in (Release.NEWEST, Release.PREVIEW)
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
"""Policies by name: ports of the newest release, previews, and the optimum per protocol."""


_SENDS_NO_STICKY_CLAIMS = "franz-go"
_SENDS_DATA_OF_ITS_LEADER = "sarama"
_SEND_EMPTY_DATA = ("aiokafka", "kafka-python")


def library_assignor(library: str, assignor: str) -> LibraryAssignor:
    """Return an assignor of a library, for use in a group with members of several libraries.

    Raise InputError if the library has no such assignor, or gives it a different name than other
    libraries do.
    """
    parsed = parse_library_assignor(f"{library}:{assignor}")
    assignor_names.check_consumer_kind(str(parsed))
    name = NAMES_IN_PROTOCOL.get(parsed.library.name)
    if name is not None:
        raise InputError(
            f"{parsed.library.name} names its assignor {name}, "
            "so its members cannot join a group with members of other libraries"
        )
    return parsed


def java_assignor(assignor: str) -> LibraryAssignor | None:
    """Return the assignor of the newest Java client for the name of a port, or None."""
    offered = libraries()["kafka-clients"].assignors
    return parse_library_assignor(f"kafka-clients:{assignor}") if assignor in offered else None


def member_as_leader_reads_it(
    member: Member, sender: LibraryAssignor, leader: LibraryAssignor, earlier_leader: Library | None
) -> Member:
    """Return a member with only the owned partitions and generation that the leader can read.

    ``earlier_leader`` is the library of the leader that assigned the owned partitions, or None if
    unknown. Raise UpstreamError if the leader fails because of this member.
    """
    _check_readable(member, sender, leader)
    if sender.assignor.name == "sticky" and not _is_read(sender, leader, earlier_leader):
        return replace(member, owned=NO_PARTITIONS, generation=NO_GENERATION)
    name = sender.library.name
    # aiokafka, and the cooperative assignor of kafka-python, send no generation.
    if name == "aiokafka" or (name, sender.assignor.name) == ("kafka-python", "cooperative-sticky"):
        return replace(member, generation=NO_GENERATION)
    return member


def _check_readable(member: Member, sender: LibraryAssignor, leader: LibraryAssignor) -> None:
    is_java = leader.library.name == "kafka-clients" and version_key(leader.version) >= (2, 4)
    if is_java and sender.library.name == "kafka-go":
        detail = f"the subscription of {member.id!r} ends before its owned partitions"
        raise UpstreamError(f"SchemaException: {detail}")
    is_sarama = leader.library.name == "sarama" and leader.assignor.name == "sticky"
    has_empty_data = sender.library.name in _SEND_EMPTY_DATA and not len(member.owned)
    if is_sarama and (has_empty_data or _has_version_prefix(sender)):
        raise UpstreamError(f"sarama cannot decode the user data of {member.id!r}")


def _is_read(
    sender: LibraryAssignor, leader: LibraryAssignor, earlier_leader: Library | None
) -> bool:
    """Return whether a leader can read the owned partitions in a member's user data."""
    if sender.library.name == _SENDS_NO_STICKY_CLAIMS:
        return False
    if sender.library.name == _SENDS_DATA_OF_ITS_LEADER and earlier_leader is not sender.library:
        return False
    return _has_version_prefix(sender) == _has_version_prefix(leader)


def _has_version_prefix(assignor: LibraryAssignor) -> bool:
    return assignor.library.name == "kafka-python" and version_key(assignor.version) >= (3,)


class MixedLibraries:
    """Assignors of a group whose members use several client libraries.

    Members without a library use that of the policy. A port counts as the newest Java client.
    """

    def __init__(self, libraries: Mapping[str, str], policy: Policy) -> None:
        """Find the assignor of each library. ``libraries`` maps client ids to libraries."""
        self._policy = policy
        self._own = _own_assignor(policy)
        self._assignors = {
            client: library_assignor(library, self._own.assignor.name)
            for client, library in libraries.items()
        }
        self._policies = {
            assignor: policy_named(str(assignor)) for assignor in self._assignors.values()
        }
        self._led: dict[int, LibraryAssignor] = {}

    def leading_policy(self, leader: str, generation: int, clients: Mapping[str, str]) -> Policy:
        """Return the policy of a leader, which uses only data that the leader can read.

        ``leader`` is the member id of the leader. ``clients`` has the client ids by member id.
        """
        leading = self._assignor_of(clients[leader])
        policy = self._policies.get(leading, self._policy)
        self._led[generation] = leading

        def assign(group: Group) -> Assignment:
            read = []
            for member in group.members:
                earlier = self._led.get(member.generation)
                sender = self._assignor_of(clients[member.id])
                library = None if earlier is None else earlier.library
                read.append(member_as_leader_reads_it(member, sender, leading, library))
            # The first member of a group document leads.
            read.sort(key=lambda member: member.id != leader)
            assigned = policy.assign(replace(group, members=tuple(read)))
            return Assignment({member.id: assigned.get(member.id, ()) for member in group.members})

        return Policy(policy.name, policy.protocol, assign)

    def _assignor_of(self, client: str) -> LibraryAssignor:
        return self._assignors.get(client, self._own)


def _own_assignor(policy: Policy) -> LibraryAssignor:
    if is_library_assignor(policy.name):
        parsed = parse_library_assignor(policy.name)
        return library_assignor(f"{parsed.library.name}@{parsed.version}", parsed.assignor.name)
    own = java_assignor(policy.name)
    if own is None:
        raise InputError(
            "members with client libraries require a policy with a client assignor, such as "
            f"sticky, got {policy.name!r}"
        )
    return own
