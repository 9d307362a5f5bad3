"""Who owns what before a rebalance: claims, and which of them hold."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference.group import Group, Member
from reference.partitions import Column

NOBODY = -1
_NO_CLAIM = -2  # below every generation, NO_GENERATION included


class Claim(NamedTuple):
    """A member's claim to a partition that was not granted, and why.

    Parameters
    ----------
    member
        Id of the claimant.
    topic
        Topic claimed.
    partition
        Partition number claimed.
    reason
        Why it does not hold, in words.
    """

    member: str
    topic: str
    partition: int
    reason: str


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner of every partition, and the claims that came to nothing.

    Parameters
    ----------
    owners
        Per topic with metadata, the index in ``group.members`` of each partition's
        owner, `NOBODY` where there is none. Arrays are read-only, shape (partitions,).
    stale
        Claims dropped: topic or partition gone, topic no longer subscribed to, or
        beaten by a higher generation.
    contested
        Claims of one generation by several members to one partition: none of them
        owns it.
    """

    owners: dict[str, Column]
    stale: tuple[Claim, ...]
    contested: tuple[Claim, ...]

    @property
    def owned_count(self) -> int:
        """Partitions that have an owner."""
        return sum(int(np.count_nonzero(owner != NOBODY)) for owner in self.owners.values())


@dataclass(slots=True)
class _Ledger:
    """One topic's claims so far: the strongest claimant of each partition."""

    claimant: Column
    generation: NDArray[np.int64]
    contested: NDArray[np.bool_]

    @classmethod
    def of_size(cls, partitions: int) -> "_Ledger":
        return cls(
            np.full(partitions, NOBODY, dtype=np.int32),
            np.full(partitions, _NO_CLAIM, dtype=np.int64),
            np.zeros(partitions, dtype=np.bool_),
        )

    def enter(self, member: int, generation: int, numbers: Column) -> None:
        standing = self.generation[numbers]
        rival = (standing == generation) & (self.claimant[numbers] != member)
        self.contested[numbers[rival]] = True
        winning = numbers[standing < generation]
        self.claimant[winning] = member
        self.generation[winning] = generation
        self.contested[winning] = False


def ownership(group: Group) -> Ownership:
    """Decide who owns each partition before the rebalance.

    A claim holds if the claimant subscribes to the topic, the partition exists and
    no claim of a higher generation beats it. Where several members claim a partition
    in the same highest generation, nobody owns it: Kafka's sticky assignors drop such
    a partition from all of their lists (``AbstractStickyAssignor``, Kafka 4.4.0).

    Parameters
    ----------
    group
        The rebalance.

    Returns
    -------
    Ownership
        Owners and the claims that do not hold.

    Examples
    --------
    >>> from reference.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2),),
    ...     members=(
    ...         Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 9)], generation=3),
    ...         Member(id="b", subscription=("t",), owned=[("t", 0)], generation=4),
    ...     ),
    ... )
    >>> result = ownership(group)
    >>> result.owners["t"].tolist()
    [1, -1]
    >>> [(claim.member, claim.partition, claim.reason) for claim in result.stale]
    [('a', 9, 'no such partition'), ('a', 0, 'claimed in a higher generation')]
    """
    ledgers = {topic.name: _Ledger.of_size(topic.partitions) for topic in group.topics}
    for index, member in enumerate(group.members):
        for topic, numbers in _claims(member):
            if topic in ledgers:
                ledger = ledgers[topic]
                ledger.enter(index, member.generation, numbers[numbers < len(ledger.claimant)])
    rejected = [
        (contested, claim)
        for member in group.members
        for contested, claim in _rejected(member, ledgers)
    ]
    return Ownership(
        owners=_owners(group, ledgers),
        stale=tuple(claim for contested, claim in rejected if not contested),
        contested=tuple(claim for contested, claim in rejected if contested),
    )


def _claims(member: Member) -> Iterator[tuple[str, Column]]:
    owned = member.owned
    for code in np.unique(owned.codes).tolist():
        yield owned.topics[code], owned.numbers[owned.codes == code]


def _owners(group: Group, ledgers: dict[str, _Ledger]) -> dict[str, Column]:
    subscribers = group.subscribers()
    owners: dict[str, Column] = {}
    for topic, ledger in ledgers.items():
        subscribed = np.array(subscribers.get(topic, ()), dtype=np.int32)
        holds = ~ledger.contested & np.isin(ledger.claimant, subscribed)
        owner = np.where(holds, ledger.claimant, np.int32(NOBODY)).astype(np.int32)
        owner.flags.writeable = False
        owners[topic] = owner
    return owners


def _rejected(member: Member, ledgers: dict[str, _Ledger]) -> Iterator[tuple[bool, Claim]]:
    """Yield the claims of a member that do not hold, each with whether it is contested."""
    for topic, numbers in _claims(member):
        if topic not in ledgers:
            for number in numbers.tolist():
                yield False, Claim(member.id, topic, number, "no such topic")
            continue
        ledger = ledgers[topic]
        exists = numbers < len(ledger.claimant)
        for number in numbers[~exists].tolist():
            yield False, Claim(member.id, topic, number, "no such partition")
        present = numbers[exists]
        if topic not in member.subscription:
            for number in present.tolist():
                yield False, Claim(member.id, topic, number, "topic not subscribed to")
            continue
        beaten = present[ledger.generation[present] > member.generation]
        for number in beaten.tolist():
            yield False, Claim(member.id, topic, number, "claimed in a higher generation")
        level = present[ledger.generation[present] == member.generation]
        for number in level[ledger.contested[level]].tolist():
            reason = "claimed by another member in the same generation"
            yield True, Claim(member.id, topic, number, reason)
