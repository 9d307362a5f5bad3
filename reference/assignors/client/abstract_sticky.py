"""Code shared by the sticky assignors: resolve claims and choose the algorithm.

Upstream: org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor,
kafka-clients 4.4.0. Deviation: no state is kept between calls, so the highest generation is
that of the group.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kassay.reference.assignors.client import rebalance_input
from kassay.reference.assignors.client.constrained_assignment import ConstrainedAssignmentBuilder
from kassay.reference.assignors.client.general_assignment import GeneralAssignmentBuilder
from kassay.reference.assignors.client.partition_table import PartitionTable
from kassay.reference.assignors.client.rack_info import RackInfo
from kassay.reference.assignors.client.reassignment import RepeatedStateError
from kassay.reference.assignors.client.rebalance_input import MemberSubscription
from kassay.reference.java.hash_codes import utf16_key
from kassay.reference.java.hash_order import string_order
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import LivelockError
from kassay.reference.model.group import NO_GENERATION, Group
from kassay.reference.model.topic_partitions import Partitions


@dataclass(frozen=True, slots=True)
class MemberData:
    """Last assignment of a member, with partitions in Kafka's order, and its generation."""

    partitions: Partitions
    generation: int


@dataclass(slots=True)
class Result:
    """Assignment in which integers identify consumers and partitions."""

    table: PartitionTable
    members: Sequence[str]  # ids by rank
    assignment: dict[int, list[int]]  # in the order of Kafka's map
    transferring: dict[int, int] | None  # new consumers; None after the general algorithm

    def named(self) -> Assignment:
        """Convert the assignment to member ids and topic names."""
        table, members = self.table, self.members
        return Assignment({members[c]: table.partitions(tps) for c, tps in self.assignment.items()})


def assign_partitions(
    group: Group, member_data: Callable[[MemberSubscription, bool], MemberData]
) -> Result:
    """Choose the constrained or the general sticky algorithm, and assign the partitions.

    The constrained algorithm is for equal subscriptions.

    ``member_data`` returns the last assignment of a member; its second argument is whether
    the order of the partitions matters.
    """
    consumers = rebalance_input.subscriptions(group)
    topics = rebalance_input.partitions_per_topic(group)
    table = PartitionTable(topics, consumers)
    members = sorted(consumers, key=utf16_key)
    rank = {member: index for index, member in enumerate(members)}
    equal = all_subscriptions_equal(consumers.values())
    last = {rank[m]: member_data(s, not equal) for m, s in consumers.items()}
    claims = {consumer: table.intern(data.partitions) for consumer, data in last.items()}
    generations = {consumer: data.generation for consumer, data in last.items()}
    subscription_generations = {rank[m]: s.generation for m, s in consumers.items()}
    size = len(table.topic_of)
    owned, multiple = resolve_claims(claims, generations, subscription_generations, size)
    # Tie-break: upstream uses a second map, whose tree bins can have another order.
    owned = {rank[member]: owned[rank[member]] for member in string_order(consumers)}
    racks = {rank[m]: s.rack for m, s in consumers.items() if s.rack is not None}
    rack_info = RackInfo(table, topics, racks)
    if equal:
        constrained = ConstrainedAssignmentBuilder(table, rack_info, owned, multiple)
        assignment = constrained.build()
        transferring = constrained.partitions_transferring_ownership
        return Result(table, members, assignment, transferring)
    positions = {
        topics: [table.position[t] for t in topics if t in table.position]
        for topics in dict.fromkeys(s.topics for s in consumers.values())
    }
    subscribed = {rank[m]: positions[s.topics] for m, s in consumers.items()}
    builder = GeneralAssignmentBuilder(table, rack_info, owned, subscribed, members)
    try:
        return Result(table, members, builder.build(claims, generations), None)
    except RepeatedStateError as repeated:
        state = Result(table, members, builder.current_assignment, None)
        moved = sorted(
            (table.named(p) for p in repeated.moved),
            key=lambda tp: (utf16_key(tp.topic), tp.partition),
        )
        raise LivelockError(state.named(), repeated.cycle_length, tuple(moved)) from None


def all_subscriptions_equal(subscriptions: Iterable[MemberSubscription]) -> bool:
    """Return whether all subscriptions are equal. Leading empty subscriptions are ignored."""
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
    subscription_generations: dict[int, int],
    partitions: int,
) -> tuple[dict[int, list[int]], set[int]]:
    """Return the valid claims per consumer, and the partitions that several consumers claim.

    Upstream compares the generation of a later claim with the generation in the
    *subscription* of the earlier claimant. ``claims`` are in the order of Kafka's map.

    Examples
    --------
    >>> resolve_claims({0: [5, 6], 1: [6]}, {0: 3, 1: 4}, {0: 3, 1: 4}, partitions=7)
    ({0: [5], 1: [6]}, set())
    """
    owner = [NO_GENERATION] * partitions
    owned: dict[int, list[int]] = {}
    multiple: set[int] = set()
    for consumer, claimed in claims.items():
        valid = owned[consumer] = list[int]()
        for partition in claimed:
            other = owner[partition]
            if other < 0:
                valid.append(partition)
                owner[partition] = consumer
                continue
            generation, other_generation = generations[consumer], subscription_generations[other]
            if generation < other_generation:
                continue
            if generation == other_generation:
                multiple.add(partition)
            else:
                valid.append(partition)
            if partition in owned[other]:
                owned[other].remove(partition)
            owner[partition] = consumer
    return owned, multiple
