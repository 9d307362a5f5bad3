"""Chains of transfers that improve an assignment."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kassay.reference.model.assignment import Assignment, assignees
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import movement
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.evaluation import valid_placement
from kassay.solver.improvement.residual_network import Step, node_prices
from kassay.solver.problem import Ints, build_problem
from kassay.solver.subscription_network import SubscriptionNetwork, build_network


@dataclass(frozen=True, slots=True)
class Transfer:
    """Transfer of one partition from one member to another member."""

    partition: TopicPartition
    giver: str
    taker: str

    def __str__(self) -> str:
        return f"{self.giver} gives {self.partition} to {self.taker}"


def improving_chain(group: Group, assignment: Assignment) -> tuple[Transfer, ...]:
    """Return a chain of transfers that improves an assignment.

    The chain is empty if the assignment is optimal. The transfers lower the imbalance, or keep
    the imbalance and lower movement. Only the loads of the first giver and the last taker
    change. A chain of up to 32 transfers that lowers the imbalance is a shortest one. Weights
    are ignored.

    Raises
    ------
    UsageError
        If the assignment is not valid for the group.
    """
    problem = build_problem(group)
    network = build_network(problem)
    counts = network.counts(valid_placement(problem, assignment))
    loads = network.loads(counts)
    chain = node_prices(network, counts).chain
    choice = _PartitionChoice(group, assignment, network)
    if chain is not None and loads[chain[0].giver] > loads[chain[-1].taker] + 1:
        return choice.transfers(chain)
    if movement(group, assignment) > network.min_movement(counts):
        return choice.exchange()
    return () if chain is None else choice.transfers(chain)


def apply_chain(group: Group, assignment: Assignment, chain: tuple[Transfer, ...]) -> Assignment:
    """Apply transfers to an assignment in order, and return the new assignment.

    Raise UsageError if a giver does not have its partition.
    """
    lists = {m.id: list(assignment[m.id]) if m.id in assignment else [] for m in group.members}
    for transfer in chain:
        if transfer.partition not in lists.get(transfer.giver, ()):
            raise UsageError(f"member {transfer.giver!r} does not have {transfer.partition}")
        if transfer.taker not in lists:
            raise UsageError(f"no member {transfer.taker!r} in the group")
        lists[transfer.giver].remove(transfer.partition)
        lists[transfer.taker].append(transfer.partition)
    return Assignment(lists)


class _PartitionChoice:
    """Choice of partitions for a chain of transfers, with the current member of each partition."""

    def __init__(self, group: Group, assignment: Assignment, network: SubscriptionNetwork) -> None:
        self.network = network
        self.ids = [member.id for member in group.members]
        self.assignee = {
            topic: column.copy() for topic, column in assignees(group, assignment).items()
        }
        self.owner = ownership(group).owners

    def transfers(self, chain: tuple[Step, ...]) -> tuple[Transfer, ...]:
        """Choose a partition for each transfer of a chain."""
        names, members = self.network.topic_names, self.network.problem.members
        return tuple(
            transfer
            for step in chain
            for transfer in self._step(names[step.topic], members[step.giver], members[step.taker])
        )

    def exchange(self) -> tuple[Transfer, ...]:
        """Find two partitions of a topic that two members can exchange to reduce movement."""
        for topic, assignee in self.assignee.items():
            owner = self.owner[topic]
            moved = (owner != NO_OWNER) & (assignee != NO_OWNER) & (assignee != owner)
            for number in np.flatnonzero(moved).tolist():
                taker, giver = int(owner[number]), int(assignee[number])
                foreign = np.flatnonzero((assignee == taker) & (owner != taker))
                if len(foreign):
                    back = self._prefer_owned(topic, foreign, giver)
                    return (
                        self._transfer(topic, number, giver, taker),
                        self._transfer(topic, back, taker, giver),
                    )
        return ()

    def _step(self, topic: str, giver: int, taker: int) -> Iterator[Transfer]:
        assignee, owner = self.assignee[topic], self.owner[topic]
        assigned = np.flatnonzero(assignee == giver)
        foreign = assigned[owner[assigned] != giver]
        number = self._prefer_owned(topic, foreign if len(foreign) else assigned, taker)
        elsewhere = np.flatnonzero((owner == taker) & (assignee != taker) & (assignee != NO_OWNER))
        if owner[number] == taker or not len(elsewhere):
            yield self._transfer(topic, number, giver, taker)
            return
        # A third member has a partition that the taker owns, and exchanges it.
        third = int(assignee[elsewhere[0]])
        yield self._transfer(topic, number, giver, third)
        yield self._transfer(topic, int(elsewhere[0]), third, taker)

    def _prefer_owned(self, topic: str, numbers: Ints, taker: int) -> int:
        owned = numbers[self.owner[topic][numbers] == taker]
        return int(owned[0] if len(owned) else numbers[0])

    def _transfer(self, topic: str, number: int, giver: int, taker: int) -> Transfer:
        self.assignee[topic][number] = taker
        return Transfer(TopicPartition(topic, number), self.ids[giver], self.ids[taker])
