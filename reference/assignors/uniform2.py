"""Port of the unreleased broker assignor ``Uniform2Assignor``.

Upstream: org.apache.kafka.coordinator.group.assignor.Uniform2Assignor (commit d9754fda of
apache/kafka) and the package ``uniform2`` (GroupModel f9ff5d7b, CurrentAssignment 1c725bc2, Keep
and Shares 0c0dd520, HandOut 29237581, ShareBalancer and PartitionPlacement 9f30be82,
ExtraPartitionMoves c845796c), which pull requests 23723 and 23732 propose. The rules can change
before a release.

A topic with P partitions and N subscribers gives each subscriber P div N partitions, its *base*.
P mod N subscribers get one more, an *extra*. The steps have upstream's names: keep, hand out,
balance, place.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from kassay.reference.java_collections import utf16_key, uuid_key
from kassay.reference.model.assignment import NO_OWNER, Assignment
from kassay.reference.model.group import Group, Member, Topic, topic_starts
from kassay.reference.model.topic_partitions import Column, Partitions, select

NO_MEMBER = -1


@dataclass(frozen=True, slots=True)
class GroupModel:
    """Members and topics of a group, and sets of members with equal subscriptions.

    A cohort is a set of members with equal counted topics. A topic is counted if it exists and
    has a subscriber.
    """

    members: Sequence[Member]
    topics: Sequence[Topic]
    cohort_of: Sequence[int]  # by member
    members_of: Sequence[Sequence[int]]  # by cohort
    topics_of: Sequence[frozenset[int]]  # by cohort
    cohorts_of: Sequence[Sequence[int]]  # by topic
    subscribers: Sequence[int]  # number by topic

    @classmethod
    def of(cls, group: Group) -> "GroupModel":
        """Sort members and subscribed topics in upstream's order, and form the cohorts."""
        members = sorted(group.members, key=lambda member: utf16_key(member.id))
        consumed = {name for names in {one.subscription for one in members} for name in names}
        topics = sorted(
            (topic for topic in group.topics if topic.name in consumed),
            key=lambda topic: uuid_key(topic.uuid.int),
        )
        number = {topic.name: index for index, topic in enumerate(topics)}
        cohorts: dict[frozenset[int], int] = {}
        lists: dict[tuple[str, ...], int] = {}  # a cohort can have several lists of topics
        cohort_of = []
        for names in (member.subscription for member in members):
            if names not in lists:
                own = frozenset(number[name] for name in names if name in number)
                lists[names] = cohorts.setdefault(own, len(cohorts))
            cohort_of.append(lists[names])
        members_of: list[list[int]] = [[] for _ in cohorts]
        for index, cohort in enumerate(cohort_of):
            members_of[cohort].append(index)
        cohorts_of: list[list[int]] = [[] for _ in topics]
        for own, cohort in cohorts.items():
            for topic in sorted(own):
                cohorts_of[topic].append(cohort)
        return cls(
            members=members,
            topics=topics,
            cohort_of=cohort_of,
            members_of=members_of,
            topics_of=list(cohorts),
            cohorts_of=cohorts_of,
            subscribers=[sum(len(members_of[one]) for one in each) for each in cohorts_of],
        )

    def owners(self) -> list[Column]:
        """Return the owner of each partition per topic. `NO_OWNER` means no owner.

        Claims of topics outside the subscription and of missing partitions do not count.
        """
        starts = topic_starts(Group(topics=tuple(self.topics), members=()))
        owners = np.full(starts.size, NO_OWNER, dtype=np.int32)
        for members, topics in zip(self.members_of, self.topics_of, strict=True):
            rows = starts.rows((index, self.members[index].owned) for index in members)
            rows = select(rows, starts.exist(rows))
            rows = select(rows, np.isin(rows.topic, sorted(topics)))
            # Tie-break: of two owners, the last one in the order of cohorts and members is valid.
            owners[starts.flat(rows)] = rows.member
        return [*starts.by_topic(owners).values()]


@dataclass(slots=True)
class Shares:
    """Number of partitions of each topic that each member receives."""

    model: GroupModel
    base: list[int]
    extras: list[int]  # number by topic
    above: list[frozenset[int]]  # by member: topics with extras, owned above the base
    sizes: list[int]  # by member
    holders: list[set[int]]  # by topic: members with an extra
    extra_counts: list[int]  # by member

    @classmethod
    def of(cls, model: GroupModel, owners: Sequence[Column]) -> "Shares":
        """Create the shares of a group, before members get extra partitions."""
        shares = [
            divmod(topic.partitions, count)
            for topic, count in zip(model.topics, model.subscribers, strict=True)
        ]
        above: list[list[int]] = [[] for _ in model.members]
        for topic, (base, extras) in enumerate(shares):
            if extras:
                owned = owners[topic][owners[topic] != NO_OWNER]
                for member in np.flatnonzero(np.bincount(owned) > base).tolist():
                    above[member].append(topic)
        sizes = [sum(shares[topic][0] for topic in topics) for topics in model.topics_of]
        return cls(
            model=model,
            base=[base for base, _ in shares],
            extras=[extras for _, extras in shares],
            above=[frozenset(topics) for topics in above],
            sizes=[sizes[cohort] for cohort in model.cohort_of],
            holders=[set() for _ in shares],
            extra_counts=[0] * len(model.members),
        )

    def give_extra(self, member: int, topic: int) -> None:
        """Give a member an extra partition of a topic."""
        self.holders[topic].add(member)
        self.extra_counts[member] += 1
        self.sizes[member] += 1

    def take_extra(self, member: int, topic: int) -> None:
        """Take the extra partition of a topic away from a member."""
        self.holders[topic].remove(member)
        self.extra_counts[member] -= 1
        self.sizes[member] -= 1

    def missing(self, topic: int) -> int:
        """Return the number of a topic's extra partitions that no member has yet."""
        return self.extras[topic] - len(self.holders[topic])


def keep(shares: Shares) -> None:
    """Give each topic's extra partitions to members that own more than the base share."""
    candidates: list[list[int]] = [[] for _ in shares.base]
    for member, topics in enumerate(shares.above):
        for topic in sorted(topics):
            candidates[topic].append(member)
    for topic, members in enumerate(candidates):
        # Tie-break: smallest sizes first, with the extras of earlier topics, then member order.
        members.sort(key=lambda member: (shares.sizes[member], member))
        for member in members[: shares.extras[topic]]:
            shares.give_extra(member, topic)


class HandOut:
    """Step that gives the remaining extra partitions to the subscribers with the lowest loads."""

    def __init__(self, shares: Shares) -> None:
        self._shares, self._model = shares, shares.model
        self._cursors = [0] * len(self._model.members_of)
        # Number of extras of each member, by cohort.
        self._counts = [
            np.array([shares.extra_counts[one] for one in members], dtype=np.int64)
            for members in self._model.members_of
        ]

    def run(self) -> None:
        """Hand out the remaining extra partitions, topics with few subscribers first."""
        shares = self._shares
        topics = [topic for topic in range(len(shares.base)) if shares.missing(topic)]
        for topic in sorted(topics, key=lambda topic: (self._model.subscribers[topic], topic)):
            self._hand_out(topic)

    def _hand_out(self, topic: int) -> None:
        shares, model = self._shares, self._model
        holders = shares.holders[topic]
        free = {
            cohort: np.array([one not in holders for one in model.members_of[cohort]])
            for cohort in model.cohorts_of[topic]
        }
        candidates = [
            (self._smallest_size(cohort), cohort) for cohort, has in free.items() if has.any()
        ]
        heapify(candidates)
        for _ in range(shares.missing(topic)):
            _, cohort = heappop(candidates)
            place = self._next_place(cohort, free[cohort])
            shares.give_extra(model.members_of[cohort][place], topic)
            self._counts[cohort][place] += 1
            free[cohort][place] = False
            if free[cohort].any():
                heappush(candidates, (self._smallest_size(cohort), cohort))

    def _smallest_size(self, cohort: int) -> int:
        first = self._model.members_of[cohort][0]
        base = self._shares.sizes[first] - self._shares.extra_counts[first]
        return base + int(self._counts[cohort].min())

    def _next_place(self, cohort: int, free: NDArray[np.bool_]) -> int:
        """Return the index in the cohort of the next member to get an extra partition."""
        counts, start = self._counts[cohort], self._cursors[cohort]
        lowest = np.flatnonzero((counts == counts.min()) & free)
        if lowest.size:
            place = int(lowest[np.searchsorted(lowest, start) % lowest.size])
            self._cursors[cohort] = (place + 1) % len(counts)
            return place
        # All members with the fewest extras have one of this topic; the cursor stays.
        places = np.flatnonzero(free)
        return int(places[np.argmin(counts[places])])


@dataclass(slots=True)
class Extras:
    """Topics with an extra partition of one member, in tie-break order.

    ``owned`` are the topics of which the member owns more than the base. Giving an extra of a
    topic in ``free`` costs no move.
    """

    owned: list[int] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    all: set[int] = field(default_factory=set)


class ShareBalancer:
    """Step that moves extra partitions to members with lower loads, until none can move.

    A receiver has at least two partitions fewer than the giver, and can take an extra from it.
    """

    def __init__(self, shares: Shares) -> None:
        self._shares, self._model = shares, shares.model
        self._extras = [Extras() for _ in self._model.members]
        for topic, holders in enumerate(shares.holders):
            for member in sorted(holders):
                self._add(member, topic)
        self._receivers = [
            sorted(self._receiver_key(member) for member in members)
            for members in self._model.members_of
        ]
        self._parked = dict[int, None]()

    def run(self) -> None:
        """Move extra partitions from the most loaded members until no move is possible."""
        shares = self._shares
        givers = [self._giver_key(one) for one, n in enumerate(shares.extra_counts) if n]
        heapify(givers)
        while givers:
            key = heappop(givers)
            giver = key[-1]
            # The key of a member changes with its extras; earlier keys stay in the heap.
            if key != self._giver_key(giver) or giver in self._parked:
                continue
            if not shares.extra_counts[giver]:
                continue
            receiver = self._receiver(giver)
            if receiver == NO_MEMBER:
                self._parked[giver] = None
                continue
            self._transfer(giver, receiver)
            self._parked.pop(receiver, None)
            woken = [one for one in self._parked if self._can_give(one, giver)]
            for member in (giver, receiver, *woken):
                self._parked.pop(member, None)
                heappush(givers, self._giver_key(member))

    def _giver_key(self, member: int) -> tuple[int, bool, int]:
        return (-self._shares.sizes[member], not self._extras[member].free, member)

    def _receiver_key(self, member: int) -> tuple[int, bool, int]:
        return (self._shares.sizes[member], not self._shares.above[member], member)

    def _can_give(self, giver: int, receiver: int) -> bool:
        if self._shares.sizes[giver] < self._shares.sizes[receiver] + 2:
            return False
        topics = self._model.topics_of[self._model.cohort_of[receiver]]
        return not (self._extras[giver].all & topics) <= self._extras[receiver].all

    def _receiver(self, giver: int) -> int:
        """Return the member to which ``giver`` can move an extra partition, or `NO_MEMBER`."""
        limit = self._shares.sizes[giver] - 2
        extras = self._extras[giver].all
        best: tuple[int, bool, int] | None = None
        for cohort, keys in enumerate(self._receivers):
            offered = extras & self._model.topics_of[cohort]
            for key in keys if offered else ():
                if key[0] > limit or (best is not None and key > best):
                    break
                if not offered <= self._extras[key[-1]].all:
                    best = key
                    break
        return NO_MEMBER if best is None else best[-1]

    def _transfer(self, giver: int, receiver: int) -> None:
        for member in (giver, receiver):
            keys = self._receivers[self._model.cohort_of[member]]
            del keys[bisect_left(keys, self._receiver_key(member))]
        topics, index = self._choice(giver, receiver)
        topic = topics[index]
        # Tie-break: the last topic of the list takes the place of the removed one.
        topics[index] = topics[-1]
        topics.pop()
        self._extras[giver].all.remove(topic)
        self._shares.take_extra(giver, topic)
        self._shares.give_extra(receiver, topic)
        self._add(receiver, topic)
        for member in (giver, receiver):
            insort(self._receivers[self._model.cohort_of[member]], self._receiver_key(member))

    def _choice(self, giver: int, receiver: int) -> tuple[list[int], int]:
        """Choose the extra partition to transfer, as a list of topics and an index in the list."""
        subscribed = self._model.topics_of[self._model.cohort_of[receiver]]
        above, present = self._shares.above[receiver], self._extras[receiver].all
        other = subscribed - above
        return next(
            (topics, index)
            for topics in (self._extras[giver].free, self._extras[giver].owned)
            for wanted in (above, other)
            for index in reversed(range(len(topics)))
            if topics[index] in wanted and topics[index] not in present
        )

    def _add(self, member: int, topic: int) -> None:
        extras = self._extras[member]
        (extras.owned if topic in self._shares.above[member] else extras.free).append(topic)
        extras.all.add(topic)


def place(shares: Shares, topic: int, owners: Sequence[int]) -> list[int]:
    """Return the new member of each partition of a topic, with the fewest moves."""
    model, holders = shares.model, shares.holders[topic]
    # Without a base, only the members with an extra have a share.
    cohorts = [model.members_of[cohort] for cohort in model.cohorts_of[topic]]
    members = sorted(chain.from_iterable(cohorts) if shares.base[topic] else holders)
    room = {member: shares.base[topic] + (member in holders) for member in members}
    assigned: list[int] = []
    for owner in owners:
        keeps = room.get(owner, 0) > 0
        assigned.append(owner if keeps else NO_OWNER)
        if keeps:
            room[owner] -= 1
    # Tie-break: members below their share in member order, each filled up before the next.
    free = (member for member in members for _ in range(room[member]))
    return [next(free) if member == NO_OWNER else member for member in assigned]


def assign(group: Group) -> Assignment:
    """Spread each topic evenly among its subscribers, then balance the total loads.

    The partitions of a member are in the order of the topic ids, and ascending. Upstream returns
    hash maps.
    """
    model = GroupModel.of(group)
    owners = model.owners()
    shares = Shares.of(model, owners)
    keep(shares)
    HandOut(shares).run()
    ShareBalancer(shares).run()
    names = tuple(topic.name for topic in model.topics)
    counts = [topic.partitions for topic in model.topics]
    numbers = np.concatenate([np.arange(count, dtype=np.int32) for count in [*counts, 0]])
    placed = [place(shares, topic, column.tolist()) for topic, column in enumerate(owners)]
    members = np.array([member for part in placed for member in part], dtype=np.int32)
    order = np.argsort(members, kind="stable")
    codes = np.repeat(np.arange(len(names), dtype=np.int32), counts)
    ends = np.cumsum(np.bincount(members, minlength=len(model.members))).tolist()
    lists = Partitions(names, codes[order], numbers[order]).split(ends)
    return Assignment(dict(zip((member.id for member in model.members), lists, strict=True)))
