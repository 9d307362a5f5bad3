"""Chains of transfers that improve an assignment: the reason why it is not optimal."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kassay.reference.model.assignment import Assignment, assignees
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import movement
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.improvement.residual_network import (
    Arcs,
    Numbers,
    build_arcs,
    lower_prices,
    require_valid,
)


@dataclass(frozen=True, slots=True)
class Transfer:
    """One step of a chain: a partition goes from one member to another."""

    partition: TopicPartition
    giver: str
    taker: str

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.giver} gives {self.partition} to {self.taker}"


def improving_chain(group: Group, assignment: Assignment) -> tuple[Transfer, ...]:
    """Return transfers that improve an assignment; none if it is optimal.

    Better means less imbalance, or the same with less movement. Loads change at the two
    ends of the chain alone; a chain that ends where it began improves movement alone.
    Among the chains that lower the imbalance it is one through the fewest members.
    Counts partitions, whatever they weigh.

    Raises
    ------
    ValueError
        If the assignment is not valid for the group.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t0", partitions=1), Topic(name="t1", partitions=2)),
    ...     members=(
    ...         Member(id="c0", subscription=("t1",)),
    ...         Member(id="c1", subscription=("t0", "t1")),
    ...         Member(id="c2", subscription=("t0",)),
    ...     ),
    ... )
    >>> sticky = Assignment({"c0": [("t1", 0), ("t1", 1)], "c1": [("t0", 0)], "c2": []})
    >>> [str(transfer) for transfer in improving_chain(group, sticky)]
    ['c0 gives t1-0 to c1', 'c1 gives t0-0 to c2']
    """
    require_valid(group, assignment)
    arcs = build_arcs(group, assignment)
    found = lower_prices(arcs).chain
    holdings = _Holdings(group, assignment)
    if found is not None and _evens(arcs, found):
        return holdings.transfers(arcs, found)
    if movement(group, assignment) > arcs.least_movement:
        return holdings.exchange()
    return () if found is None else holdings.transfers(arcs, found)


def apply_chain(group: Group, assignment: Assignment, chain: tuple[Transfer, ...]) -> Assignment:
    """Carry the transfers of a chain out, one after the other.

    Raises
    ------
    ValueError
        If a giver does not have the partition that it is to give, or a taker is unknown.
    """
    lists = {m.id: list(assignment[m.id]) if m.id in assignment else [] for m in group.members}
    for transfer in chain:
        if transfer.partition not in lists.get(transfer.giver, ()):
            raise ValueError(f"{transfer.giver!r} does not have {transfer.partition}")
        if transfer.taker not in lists:
            raise ValueError(f"no member {transfer.taker!r} in the group")
        lists[transfer.giver].remove(transfer.partition)
        lists[transfer.taker].append(transfer.partition)
    return Assignment(lists)


def _evens(arcs: Arcs, chain: tuple[tuple[int, int, int], ...]) -> bool:
    """Whether a chain goes from a member with at least two more than the one it ends at."""
    first, last = chain[0][1], chain[-1][2]
    return bool(arcs.loads[first] > arcs.loads[last] + 1)


class _Holdings:
    """Who has and who owned each partition, while the transfers of a chain are chosen."""

    def __init__(self, group: Group, assignment: Assignment) -> None:
        self.ids = [member.id for member in group.members]
        self.index = {member: index for index, member in enumerate(self.ids)}
        self.now = {topic: column.copy() for topic, column in assignees(group, assignment).items()}
        self.owner = ownership(group).owners

    def transfers(
        self, arcs: Arcs, chain: tuple[tuple[int, int, int], ...]
    ) -> tuple[Transfer, ...]:
        """Choose a partition for each step of a chain of counts."""
        steps: list[Transfer] = []
        for topic_index, giver_index, taker_index in chain:
            topic = arcs.topic_names[topic_index]
            giver = self.index[arcs.member_ids[giver_index]]
            taker = self.index[arcs.member_ids[taker_index]]
            steps.extend(self._step(topic, giver, taker))
        return tuple(steps)

    def exchange(self) -> tuple[Transfer, ...]:
        """Find two partitions of one topic that two members should swap."""
        for topic, now in self.now.items():
            owner = self.owner[topic]
            away = np.flatnonzero((owner != NO_OWNER) & (now != NO_OWNER) & (now != owner))
            for number in away.tolist():
                taker, giver = int(owner[number]), int(now[number])
                foreign = np.flatnonzero((now == taker) & (owner != taker))
                if len(foreign):
                    back = self._best(topic, foreign, giver)
                    return (
                        self._give(topic, number, giver, taker),
                        self._give(topic, back, taker, giver),
                    )
        return ()

    def _step(self, topic: str, giver: int, taker: int) -> Iterator[Transfer]:
        now, owner = self.now[topic], self.owner[topic]
        number = self._choose(topic, giver, taker)
        elsewhere = np.flatnonzero((owner == taker) & (now != taker) & (now != NO_OWNER))
        if owner[number] == taker or not len(elsewhere):
            yield self._give(topic, number, giver, taker)
            return
        # The taker owns a partition that a third member has: that one passes it on instead.
        third = int(now[elsewhere[0]])
        yield self._give(topic, number, giver, third)
        yield self._give(topic, int(elsewhere[0]), third, taker)

    def _choose(self, topic: str, giver: int, taker: int) -> int:
        held = np.flatnonzero(self.now[topic] == giver)
        foreign = held[self.owner[topic][held] != giver]
        return self._best(topic, foreign if len(foreign) else held, taker)

    def _best(self, topic: str, numbers: Numbers, taker: int) -> int:
        owned = numbers[self.owner[topic][numbers] == taker]
        return int(owned[0] if len(owned) else numbers[0])

    def _give(self, topic: str, number: int, giver: int, taker: int) -> Transfer:
        self.now[topic][number] = taker
        return Transfer(TopicPartition(topic, number), self.ids[giver], self.ids[taker])
