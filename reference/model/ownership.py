"""Subscribers and current owners of partitions, derived from the members' claims."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.group import NO_GENERATION, Group, cached, topic_starts
from kassay.reference.model.topic_partitions import (
    NO_PARTITIONS,
    UNKNOWN,
    Column,
    PartitionColumns,
    Partitions,
    TopicStarts,
    select,
)

NO_OWNER = -1
# Larger tables of members and topics take more time and memory than the subscriptions.
_MAX_CELLS = 2**24


class Claim(NamedTuple):
    """An invalid claim of a member to a partition, with the reason why it is invalid."""

    member: str
    topic: str
    partition: int
    reason: str


@dataclass(frozen=True)
class Ownership:
    """Current owners of the partitions, and the claims that are not valid.

    Parameters
    ----------
    starts
        Numbering of the partitions.
    stale
        Claims to a topic or partition that does not exist or is not subscribed to, and
        claims of an older generation.
    contested
        Claims of several members to one partition in the same generation: the partition
        has no owner.
    column
        Index of each partition's owner in ``group.members``, in the order of the topics;
        `NO_OWNER` without an owner. The array is read-only.
    """

    starts: TopicStarts
    stale: tuple[Claim, ...]
    contested: tuple[Claim, ...]
    column: Column

    def __repr__(self) -> str:
        return (
            f"<ownership: {self.owned_count} of {self.starts.size} partitions have an owner, "
            f"{len(self.stale) + len(self.contested)} claims are invalid>"
        )

    @cached_property
    def owners(self) -> dict[str, Column]:
        """Owners of the partitions, as one read-only array per topic with metadata."""
        return self.starts.by_topic(self.column)

    @property
    def owned_count(self) -> int:
        """Return the number of partitions with an owner."""
        return int(np.count_nonzero(self.column != NO_OWNER))


@cached
def ownership(group: Group) -> Ownership:
    """Return the current owner of each partition.

    A claim is valid if the member subscribes to the topic, the partition exists and no
    claim has a higher generation. If several members claim a partition in the highest
    generation, it has no owner: Kafka's sticky assignors remove such a partition from all
    lists (``AbstractStickyAssignor``, Kafka 4.4.0).
    """
    starts = topic_starts(group)
    claims = starts.rows((index, member.owned) for index, member in enumerate(group.members))
    generations = np.array([member.generation for member in group.members], dtype=np.int64)
    exists = starts.exist(claims)
    present = select(claims, exists)
    place = starts.flat(present)
    generation = generations[present.member]
    highest = np.full(starts.size, NO_GENERATION, dtype=np.int64)
    np.maximum.at(highest, place, generation)
    outdated = generation < highest[place]
    claimant = np.full(starts.size, NO_OWNER, dtype=np.int32)
    claimant[place[~outdated]] = present.member[~outdated]
    disputed = np.zeros(starts.size, dtype=np.bool_)
    disputed[place[~outdated & (claimant[place] != present.member)]] = True
    subscribed = are_subscribed(group, present)
    owners = claimant.copy()
    owners[disputed] = NO_OWNER
    owners[place[~subscribed & ~outdated & ~disputed[place]]] = NO_OWNER
    owners.flags.writeable = False
    refused = [
        (select(claims, ~exists & (claims.topic == UNKNOWN)), "the topic does not exist"),
        (select(claims, ~exists & (claims.topic != UNKNOWN)), "the partition does not exist"),
        (select(present, ~subscribed), "the member does not subscribe to the topic"),
        (select(present, subscribed & outdated), "another member claims it in a higher generation"),
    ]
    contested = select(present, subscribed & ~outdated & disputed[place])
    return Ownership(
        starts=starts,
        stale=tuple(claim for rows, reason in refused for claim in _claims(group, rows, reason)),
        contested=tuple(
            _claims(group, contested, "another member claims it in the same generation")
        ),
        column=owners,
    )


def current_partitions(group: Group) -> dict[str, list[tuple[str, int]]]:
    """Return the partitions that each member owns by valid claims, in the order of the topics."""
    owned: list[list[tuple[str, int]]] = [[] for _ in group.members]
    for topic, column in ownership(group).owners.items():
        for number in np.flatnonzero(column != NO_OWNER).tolist():
            owned[column[number]].append((topic, number))
    return {member.id: owned[index] for index, member in enumerate(group.members)}


def rejoin(
    group: Group, assignment: Mapping[str, Partitions], *, generation: int | None = None
) -> Group:
    """Return the group after a rebalance, with the assigned partitions as owned partitions.

    Each member owns exactly the partitions it was assigned, in that order; a member that is
    missing from the assignment owns nothing. Every member has the given ``generation``, by
    default the highest in the group plus 1; ``sub_generation``, ``user_data``, ``target`` and the
    state of the group become None.
    """
    if generation is None:
        generation = 1 + max((m.generation for m in group.members), default=NO_GENERATION)
    members = tuple(
        replace(
            member,
            owned=assignment.get(member.id, NO_PARTITIONS),
            generation=generation,
            sub_generation=None,
            user_data=None,
            target=None,
        )
        for member in group.members
    )
    return replace(group, members=members, status=replace(group.status, state=None))


def rejoin_each(
    groups: Sequence[Group], assignments: Sequence[Mapping[str, Partitions]]
) -> list[Group]:
    """Return the group at each rebalance, with the owners that the previous assignment leaves.

    The first group keeps its owners. There is one group per assignment.
    """
    later = zip(groups[1:], assignments, strict=False)
    followers = (rejoin(group, past) for group, past in later)
    return [*groups[:1], *followers][: len(assignments)]


def _claims(group: Group, rows: PartitionColumns, reason: str) -> Iterator[Claim]:
    """Convert the rows of invalid claims to `Claim` objects.

    Only the members' lists contain the names of unknown topics.
    """
    if len(rows.topic) and int(rows.topic[0]) == UNKNOWN:
        known = {topic.name for topic in group.topics}
        for index in dict.fromkeys(rows.member.tolist()):
            member = group.members[index]
            for topic, number in member.owned:
                if topic not in known:
                    yield Claim(member.id, topic, number, reason)
        return
    for index, topic_index, number in zip(*(column.tolist() for column in rows), strict=True):
        yield Claim(group.members[index].id, group.topics[topic_index].name, number, reason)


@cached
def subscription_mask(group: Group) -> NDArray[np.bool_]:
    """Return a boolean matrix: whether a member (row) subscribes to a topic (column)."""
    starts = topic_starts(group)
    table = np.zeros((len(group.members), len(group.topics)), dtype=np.bool_)
    known: dict[tuple[str, ...], Column] = {}  # topic indices per distinct subscription
    for row, member in enumerate(group.members):
        names = member.subscription
        if names not in known:
            indices = map(starts.index.get, names, repeat(UNKNOWN))
            codes = np.fromiter(indices, dtype=np.int32, count=len(names))
            known[names] = codes[codes != UNKNOWN]
        table[row, known[names]] = True
    return table


def are_subscribed(group: Group, rows: PartitionColumns) -> NDArray[np.bool_]:
    """Return, for each row of the columns, whether the member subscribes to the topic."""
    topics = len(group.topics)
    if not len(rows.member):
        return np.zeros(0, dtype=np.bool_)
    if len(group.members) * topics <= _MAX_CELLS:
        return subscription_mask(group)[rows.member, rows.topic]
    index = topic_starts(group).index
    keys = {
        row * topics + index[name]
        for row in np.flatnonzero(np.bincount(rows.member)).tolist()
        for name in group.members[row].subscription
        if name in index
    }
    claimed = rows.member.astype(np.int64) * topics + rows.topic
    return np.isin(claimed, np.fromiter(keys, dtype=np.int64, count=len(keys)))


@cached
def consumed_partitions(group: Group) -> NDArray[np.bool_]:
    """Return, for each partition, whether its topic has a subscriber."""
    subscribers = group.subscribers()
    consumed = [bool(subscribers.get(topic.name)) for topic in group.topics]
    return np.repeat(np.array(consumed, dtype=np.bool_), topic_starts(group).counts)
