"""Members of a simulation that use several client libraries: the leader's library assigns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kassay.experiments.implementations.library_catalogue import (
    LibraryAssignor,
    is_library_assignor,
    parse_library_assignor,
)
from kassay.experiments.simulation.cluster.claims_read_by_leader import (
    java_assignor,
    library_assignor,
    member_as_leader_reads_it,
)
from kassay.experiments.simulation.policies import Policy, policy_named
from kassay.experiments.simulation.scripts.script import MemberPlan, Script
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group


class MixedLibraries:
    """Assignors of the members' libraries, and the library that led each generation.

    Members without a library use that of the policy. A port counts as the newest Java client.
    """

    def __init__(self, libraries: Mapping[str, str], policy: Policy) -> None:
        """Find the assignors of libraries, which are given by client id."""
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
        """Return the policy with which a leader assigns the partitions that it reads.

        Parameters
        ----------
        leader
            Member id of the leader.
        generation
            The new generation.
        clients
            Client ids by member id.
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


def libraries_of(script: Script) -> dict[str, str]:
    """Return the client library of each member that has one, by client id."""
    plans = [*script.members, *(event.new_member for event in script.events)]
    return {plan.id: plan.library for plan in plans if plan is not None and plan.library}


def _own_assignor(policy: Policy) -> LibraryAssignor:
    """Return the assignor of members without a library."""
    if is_library_assignor(policy.name):
        parsed = parse_library_assignor(policy.name)
        return library_assignor(f"{parsed.library.name}@{parsed.version}", parsed.assignor.name)
    own = java_assignor(policy.name)
    if own is None:
        raise InputError(
            "the members use client libraries, so the policy must be a client assignor, such as "
            f"sticky, got {policy.name!r}"
        )
    return own


def with_library_shares(script: Script, shares: Mapping[str, int]) -> Script:
    """Assign a library to each share, in percent, of the members without a library.

    The members of each library are spread evenly over the list of members.

    Examples
    --------
    >>> plans = tuple(MemberPlan(id=f"c{n}", topics=("t",)) for n in range(4))
    >>> script = Script(name="s", topics=(), members=plans)
    >>> mixed = with_library_shares(script, {"sarama": 25, "franz-go": 50})
    >>> [member.library for member in mixed.members]
    ['franz-go', None, 'sarama', 'franz-go']
    """
    free = [member.id for member in script.members if member.library is None]
    chosen = dict(zip(free, _spread(shares, len(free)), strict=True))

    def with_library(member: MemberPlan) -> MemberPlan:
        return replace(member, library=member.library or chosen.get(member.id))

    return replace(script, members=tuple(map(with_library, script.members)))


def _spread(shares: Mapping[str, int], count: int) -> Sequence[str | None]:
    """Return one library per member, so that each prefix of the list has about these shares."""
    percents: dict[str | None, int] = {None: 100 - sum(shares.values())}
    percents.update(shares)
    given = dict.fromkeys(percents, 0)
    chosen: list[str | None] = []
    for number in range(1, count + 1):
        library = max(percents, key=lambda name: percents[name] * number - 100 * given[name])
        given[library] += 1
        chosen.append(library)
    return chosen
