"""Chains of transfers that improve an assignment."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import NO_OWNER
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.improvement.residual_network import Step, node_prices
from kassay.solver.problem import Placement, build_problem
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
    placement = problem.valid_placement(assignment)
    counts = network.counts(placement)
    loads = network.loads(counts)
    chain = node_prices(network, counts).chain
    choice = _PartitionChoice(network, placement)
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

    def __init__(self, network: SubscriptionNetwork, placement: Placement) -> None:
        self.problem = network.problem
        self.topic = network.topic
        self.placement = placement.copy()

    def transfers(self, chain: tuple[Step, ...]) -> tuple[Transfer, ...]:
        """Choose a partition for each transfer of a chain."""
        return tuple(transfer for step in chain for transfer in self._step(step))

    def exchange(self) -> tuple[Transfer, ...]:
        """Find two partitions of a topic that two members can exchange to reduce movement."""
        owner, placement = self.problem.owner, self.placement
        for partition in np.flatnonzero((owner != NO_OWNER) & (owner != placement)).tolist():
            taker, giver = int(owner[partition]), int(placement[partition])
            inside = self.topic == self.topic[partition]
            foreign = np.flatnonzero(inside & (placement == taker) & (owner != taker))
            if len(foreign):
                back = self._prefer_owned(foreign, giver)
                return self._transfer(partition, taker), self._transfer(back, giver)
        return ()

    def _step(self, step: Step) -> Iterator[Transfer]:
        owner, placement = self.problem.owner, self.placement
        inside = self.topic == step.topic
        assigned = np.flatnonzero(inside & (placement == step.giver))
        foreign = assigned[owner[assigned] != step.giver]
        partition = self._prefer_owned(foreign if len(foreign) else assigned, step.taker)
        elsewhere = np.flatnonzero(inside & (owner == step.taker) & (placement != step.taker))
        if owner[partition] == step.taker or not len(elsewhere):
            yield self._transfer(partition, step.taker)
            return
        # A third member has a partition that the taker owns, and exchanges it.
        exchanged = int(elsewhere[0])
        yield self._transfer(partition, int(placement[exchanged]))
        yield self._transfer(exchanged, step.taker)

    def _prefer_owned(self, partitions: NDArray[np.intp], taker: int) -> int:
        owned = partitions[self.problem.owner[partitions] == taker]
        return int(owned[0] if len(owned) else partitions[0])

    def _transfer(self, partition: int, taker: int) -> Transfer:
        problem, giver = self.problem, int(self.placement[partition])
        self.placement[partition] = taker
        topic = problem.group.topics[problem.topic[partition]].name
        return Transfer(
            TopicPartition(topic, int(problem.number[partition])),
            problem.member_id(giver),
            problem.member_id(taker),
        )
