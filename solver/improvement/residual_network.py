"""The residual network of an assignment: which transfers are possible, and what they cost."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import Assignment, assignees, violations
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import participant_indices
from kassay.reference.model.ownership import NO_OWNER, ownership

Numbers = NDArray[np.int64]
_FAR = np.int64(2**62)


@dataclass(frozen=True, slots=True)
class Arcs:
    """Subscriptions of a group as arcs from topics to members, with what an assignment does.

    Parameters
    ----------
    topic_names, member_ids
        Names of the topics that somebody consumes and of the members that consume any.
    tail, head
        Topic and member of each arc, sorted by topic, then member.
    count, owned
        Partitions of the topic that the member is assigned, and that it owns.
    loads
        Partitions of each member.
    """

    topic_names: tuple[str, ...]
    member_ids: tuple[str, ...]
    tail: Numbers
    head: Numbers
    count: Numbers
    owned: Numbers
    loads: Numbers

    @property
    def least_movement(self) -> int:
        """Movement of these counts, if every member keeps as many owned partitions as it can."""
        return int((self.owned - np.minimum(self.count, self.owned)).sum())


def require_valid(group: Group, assignment: Assignment) -> None:
    """Raise ValueError, naming the first violation, unless an assignment is valid."""
    violation = next(violations(group, assignment), None)
    if violation is not None:
        raise ValueError(f"the assignment is not valid: {violation}")


def build_arcs(group: Group, assignment: Assignment) -> Arcs:
    """Count partitions along every subscription."""
    position = np.full(len(group.members), NO_OWNER, dtype=np.int64)
    active = participant_indices(group)
    position[list(active)] = np.arange(len(active))
    subscribers = {topic: who for topic, who in group.subscribers().items() if who}
    now, before = assignees(group, assignment), ownership(group).owners
    size = len(group.members)
    count, owned, head = [], [], []
    for topic, who in subscribers.items():
        index = np.array(who, dtype=np.int64)
        head.append(position[index])
        count.append(np.bincount(now[topic][now[topic] != NO_OWNER], minlength=size)[index])
        owned.append(np.bincount(before[topic][before[topic] != NO_OWNER], minlength=size)[index])
    widths = [len(who) for who in subscribers.values()]
    heads, counts = _join(head), _join(count)
    return Arcs(
        topic_names=tuple(subscribers),
        member_ids=tuple(group.members[index].id for index in active),
        tail=np.repeat(np.arange(len(widths), dtype=np.int64), widths),
        head=heads,
        count=counts,
        owned=_join(owned),
        loads=np.bincount(heads, weights=counts, minlength=len(active)).astype(np.int64),
    )


def _join(columns: list[Numbers]) -> Numbers:
    return np.concatenate([np.zeros(0, dtype=np.int64), *columns])


@dataclass(frozen=True, slots=True)
class NodePrices:
    """Least cost of placing one more partition: at each member, and of each topic.

    A cost (squared load, movement) is one integer, ``squared * scale + movement``:
    no chain is long enough to carry from the second into the first.

    Parameters
    ----------
    members, topics
        Costs; final if ``chain`` is None.
    scale
        Factor of the first component.
    chain
        If costs can fall for ever, transfers (topic, giver, taker) that do it.
    """

    members: Numbers
    topics: Numbers
    scale: int
    chain: tuple[tuple[int, int, int], ...] | None

    def pairs(self, costs: Numbers) -> Iterator[tuple[int, int]]:
        """Split costs into their two components."""
        half = self.scale // 2
        for cost in costs.tolist():
            squared = (cost + half) // self.scale
            yield squared, cost - squared * self.scale


class _Search:
    """Bellman-Ford towards the sink, one vectorised sweep over the arcs a round."""

    def __init__(self, arcs: Arcs) -> None:
        self.arcs = arcs
        self.scale = 4 * (len(arcs.topic_names) + len(arcs.member_ids) + 2)
        self.first = np.searchsorted(arcs.tail, np.arange(len(arcs.topic_names)))
        self.giving = np.flatnonzero(arcs.count > 0)
        by_member = np.argsort(arcs.head[self.giving], kind="stable")
        self.giving = self.giving[by_member]
        self.givers, self.first_given = np.unique(arcs.head[self.giving], return_index=True)
        self.entering = (arcs.count >= arcs.owned).astype(np.int64)
        self.leaving = (arcs.count > arcs.owned).astype(np.int64)
        self.members = (2 * arcs.loads + 1) * self.scale
        self.floor = (2 * arcs.loads - 1) * self.scale
        self.topics = np.full(len(arcs.topic_names), _FAR)
        # The arc by which each node's cost was last lowered; -1 at the sink's side.
        self.via_topic = np.full(len(arcs.topic_names), -1, dtype=np.int64)
        self.via_member = np.full(len(arcs.member_ids), -1, dtype=np.int64)

    def sweep(self) -> bool:
        """Lower every cost once; say whether any fell."""
        return self._lower_topics() and self._lower_members()

    def _lower_topics(self) -> bool:
        offers = self.members[self.arcs.head] + self.entering
        best = np.minimum.reduceat(offers, self.first)
        fell = best < self.topics
        self.topics = np.minimum(self.topics, best)
        self._remember(self.via_topic, fell[self.arcs.tail], offers, best[self.arcs.tail])
        return bool(fell.any())

    def _remember(
        self, via: Numbers, fell: NDArray[np.bool_], offers: Numbers, best: Numbers
    ) -> None:
        arcs = np.flatnonzero(fell & (offers == best))[::-1]
        via[self.arcs.tail[arcs]] = arcs

    def _lower_members(self) -> bool:
        offers = self.topics[self.arcs.tail[self.giving]] - self.leaving[self.giving]
        best = np.minimum.reduceat(offers, self.first_given)
        fell = best < self.members[self.givers]
        self.members[self.givers] = np.minimum(self.members[self.givers], best)
        every = np.repeat(np.arange(len(best)), np.diff([*self.first_given, len(offers)]))
        arcs = np.flatnonzero(fell[every] & (offers == best[every]))[::-1]
        self.via_member[self.givers[every[arcs]]] = self.giving[arcs]
        return bool(fell.any())

    def overpriced(self) -> int | None:
        """Return the member that would gain most by placing its last partition elsewhere."""
        excess = self.floor - self.members
        member = int(np.argmax(excess))
        return member if excess[member] > 0 else None

    def chain_from(self, member: int) -> list[tuple[int, int, int]]:
        """Follow the arcs from a member; the chain ends at the sink's side or closes."""
        chain: list[tuple[int, int, int]] = []
        met = {member: 0}
        while self.via_member[member] >= 0:
            topic = int(self.arcs.tail[self.via_member[member]])
            taker = int(self.arcs.head[self.via_topic[topic]])
            chain.append((topic, member, taker))
            if taker in met:
                return chain[met[taker] :]
            met[taker] = len(chain)
            member = taker
        return chain

    def cycle(self) -> list[tuple[int, int, int]] | None:
        """Return a closed chain among the remembered arcs, if there is one."""
        for member in np.flatnonzero(self.via_member >= 0).tolist():
            chain = self.chain_from(member)
            if chain and chain[0][1] == chain[-1][2]:
                return chain
        return None


def lower_prices(arcs: Arcs) -> NodePrices:
    """Lower the prices until none can fall, or until a chain shows that they fall for ever.

    After as many rounds as a chain has transfers, a member whose partition could be
    placed elsewhere for less than it costs here is known: the first such round gives
    the shortest chain. Closed chains, which improve movement alone, are looked for when
    the rounds have reached a power of two.
    """
    search = _Search(arcs)
    rounds = 0
    chain: list[tuple[int, int, int]] | None = None
    while search.sweep():
        rounds += 1
        member = search.overpriced()
        if member is not None:
            chain = search.chain_from(member)
        elif rounds & (rounds - 1) == 0:
            chain = search.cycle()
        if chain:
            break
    return NodePrices(
        search.members, search.topics, search.scale, None if chain is None else tuple(chain)
    )
