"""What the two sticky assignors share: whose claims hold, and which algorithm runs.

Upstream: org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor,
kafka-clients 4.4.0. Unlike there, no state survives a call: the highest generation is
that of this group.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kassay.reference.assignors.client.constrained_assignment import ConstrainedAssignmentBuilder
from kassay.reference.assignors.client.general_assignment import (
    GeneralAssignmentBuilder,
    prev_assignment,
)
from kassay.reference.assignors.client.partition_table import PartitionTable
from kassay.reference.assignors.client.rack_info import RackInfo
from kassay.reference.assignors.client.reassignment import RepeatedStateError
from kassay.reference.assignors.client.rebalance_input import (
    MemberSubscription,
    partitions_per_topic,
    subscriptions,
)
from kassay.reference.java.hash_order import string_order
from kassay.reference.java.strings import utf16_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import LivelockError
from kassay.reference.model.group import NO_GENERATION, Group
from kassay.reference.model.topic_partitions import Partitions


@dataclass(frozen=True, slots=True)
class MemberData:
    """What a member remembers of its last assignment.

    Parameters
    ----------
    partitions
        The partitions, in the order in which upstream reads them.
    generation
        Their generation, `NO_GENERATION` for none.
    """

    partitions: Partitions
    generation: int


@dataclass(slots=True)
class Result:
    """An assignment by numbers.

    Parameters
    ----------
    table
        The partitions.
    members
        Ids of the consumers, by rank.
    assignment
        Partitions of each consumer, in the order of upstream's map.
    transferring
        Partitions that change hands and their new consumers, None where the algorithm
        does not tell.
    """

    table: PartitionTable
    members: Sequence[str]
    assignment: dict[int, list[int]]
    transferring: dict[int, int] | None

    def named(self) -> Assignment:
        """Return it by names."""
        return Assignment(
            {
                self.members[consumer]: self.table.partitions(partitions)
                for consumer, partitions in self.assignment.items()
            }
        )


def assign_partitions(
    group: Group, member_data: Callable[[MemberSubscription, bool], MemberData]
) -> Result:
    """Run the algorithm that fits the group.

    Parameters
    ----------
    group
        The rebalance.
    member_data
        How to read a member's memory; its second argument is whether the order of the
        partitions matters.

    Raises
    ------
    UpstreamFailure
        If the real class throws an exception on this group.
    Livelock
        If the real class would never return.
    """
    consumers = subscriptions(group)
    topics = partitions_per_topic(group)
    table = PartitionTable(topics, consumers)
    members = sorted(consumers, key=utf16_key)
    rank = {member: index for index, member in enumerate(members)}
    equal = all_subscriptions_equal(consumers.values())
    memory = {rank[m]: member_data(s, not equal) for m, s in consumers.items()}
    claims = {consumer: table.intern(data.partitions) for consumer, data in memory.items()}
    generations = {consumer: data.generation for consumer, data in memory.items()}
    stated = {rank[m]: s.generation for m, s in consumers.items()}
    owned, multiple = resolve_claims(claims, generations, stated, len(table.topic_of))
    # Upstream collects them in a second map, whose crowded bins may be in another order.
    owned = {rank[member]: owned[rank[member]] for member in string_order(consumers)}
    racks = {rank[m]: s.rack for m, s in consumers.items() if s.rack is not None}
    rack_info = RackInfo(table, topics, racks)
    if equal:
        constrained = ConstrainedAssignmentBuilder(table, rack_info, owned, multiple)
        assignment = constrained.build()
        transferring = constrained.partitions_transferring_ownership
        return Result(table, members, assignment, transferring)
    known = {
        topics: [table.position[t] for t in topics if t in table.position]
        for topics in dict.fromkeys(s.topics for s in consumers.values())
    }
    subscribed = {rank[m]: known[s.topics] for m, s in consumers.items()}
    builder = GeneralAssignmentBuilder(table, rack_info, owned, subscribed, members)
    earlier = prev_assignment(
        ((consumer, generations[consumer], claims[consumer]) for consumer in claims),
        max(generations.values()),
    )
    try:
        return Result(table, members, builder.build(earlier), None)
    except RepeatedStateError as repeated:
        state = Result(table, members, builder.current_assignment, None)
        circling = sorted(
            (table.named(p) for p in repeated.circling),
            key=lambda tp: (utf16_key(tp.topic), tp.partition),
        )
        raise LivelockError(state.named(), repeated.cycle_length, tuple(circling)) from None


def all_subscriptions_equal(subscriptions: Iterable[MemberSubscription]) -> bool:
    """Tell whether upstream takes all subscriptions for equal.

    It compares with the first that is not empty; empty ones before that pass unseen.
    """
    first: tuple[str, ...] = ()
    for subscription in subscriptions:
        if not first:
            first = subscription.topics
        elif subscription.topics != first:
            return False
    return True


def resolve_claims(
    claims: dict[int, list[int]],
    generations: dict[int, int],
    stated: dict[int, int],
    partitions: int,
) -> tuple[dict[int, list[int]], set[int]]:
    """Decide which claims hold, in the order of upstream's map.

    A later claimant's memory is judged against the generation that the earlier one's
    *subscription* states.

    Parameters
    ----------
    claims
        Partitions that each consumer remembers.
    generations
        Generation of that memory.
    stated
        Generation in each consumer's subscription.
    partitions
        How many numbers there are.

    Returns
    -------
    tuple
        What each consumer owns, in the order of its claims, and the partitions claimed
        by several in one generation.

    Examples
    --------
    >>> resolve_claims({0: [5, 6], 1: [6]}, {0: 3, 1: 4}, {0: 3, 1: 4}, 7)
    ({0: [5], 1: [6]}, set())
    >>> resolve_claims({0: [5, 6], 1: [6]}, {0: 3, 1: 3}, {0: 3, 1: 3}, 7)
    ({0: [5], 1: []}, {6})
    """
    owner = [NO_GENERATION] * partitions
    owned: dict[int, list[int]] = {}
    multiple: set[int] = set()
    for consumer, claimed in claims.items():
        mine: list[int] = []
        owned[consumer] = mine
        for partition in claimed:
            other = owner[partition]
            if other < 0:
                mine.append(partition)
                owner[partition] = consumer
                continue
            generation, rival = generations[consumer], stated[other]
            if generation < rival:
                continue
            if generation == rival:
                multiple.add(partition)
            else:
                mine.append(partition)
            if partition in owned[other]:
                owned[other].remove(partition)
            owner[partition] = consumer
    return owned, multiple
