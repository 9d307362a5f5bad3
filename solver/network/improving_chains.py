"""Find chains of transfers that improve an assignment."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER, Assignment, movement
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group, require_single_copies
from kassay.reference.model.load_metrics import sum_of_squares
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.limits import SearchLimits
from kassay.solver.network.level_cost_network import SQUARES_AND_MOVES, LevelNetwork
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.problem import Ints, Placement, build_problem


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
    are ignored. Raise UsageError if the assignment is not valid for the group.
    """
    problem = build_problem(group)
    network = build_network(problem)
    placement = problem.valid_placement(assignment)
    counts = network.counts(placement)
    loads = network.loads(counts)
    chain = _improving_steps(network, counts)
    choice = _PartitionChoice(network, placement)
    if chain and loads[chain[0].giver] > loads[chain[-1].taker] + 1:
        return choice.transfers(chain)
    if movement(group, assignment) > network.min_movement(counts):
        return choice.exchange()
    return choice.transfers(chain)


class _Step(NamedTuple):
    """Transfer of one partition between two members. All fields are indices in the network."""

    topic: int
    giver: int
    taker: int


def _improving_steps(network: SubscriptionNetwork, counts: Ints) -> tuple[_Step, ...]:
    """Find an improving chain of transfers from a cycle of the residual network."""
    arcs = LevelNetwork(network, hosts=None, has_sums=False, has_speeds=False)
    _, cycle = arcs.paths(arcs.weighted(SQUARES_AND_MOVES), arcs.flow_of(counts))
    number = np.where(cycle < 0, ~cycle, cycle)
    # The first step is behind the sink, or, in a closed chain, anywhere.
    starts = (cycle < 0) & (number >= arcs.members.start)
    first = int(np.argmax(starts if starts.any() else cycle < 0)) if len(cycle) else 0
    order = np.roll(number, -first)
    # A partition leaves a member for its topic, then the topic for another member.
    used = arcs.network_arc[order[order < arcs.members.start]]
    topics, members = network.tail[used].tolist(), network.head[used].tolist()
    return tuple(map(_Step, topics[::2], members[::2], members[1::2]))


def apply_chain(group: Group, assignment: Assignment, chain: tuple[Transfer, ...]) -> Assignment:
    """Apply a chain of transfers to an assignment."""
    lists = {m.id: list(assignment[m.id]) if m.id in assignment else [] for m in group.members}
    for transfer in chain:
        if transfer.partition not in lists.get(transfer.giver, ()):
            raise UsageError(f"member {transfer.giver!r} does not have {transfer.partition}")
        if transfer.taker not in lists:
            raise UsageError(f"the group has no member {transfer.taker!r}")
        lists[transfer.giver].remove(transfer.partition)
        lists[transfer.taker].append(transfer.partition)
    return Assignment(lists)


class _PartitionChoice:
    """Selection of the partitions that a chain of transfers moves."""

    def __init__(self, network: SubscriptionNetwork, placement: Placement) -> None:
        self.problem = network.problem
        self.topic = network.topic
        self.placement = placement.copy()

    def transfers(self, chain: tuple[_Step, ...]) -> tuple[Transfer, ...]:
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

    def _step(self, step: _Step) -> Iterator[Transfer]:
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


@dataclass(frozen=True, slots=True)
class Explanation:
    """One improving chain of transfers, and its effect on imbalance and movement.

    Parameters
    ----------
    members
        Load of every member in the chain: (member, before, after).
    moves
        Change in movement.
    imbalance
        Sum of squared numbers of partitions, or maximum load: (before, after).
    """

    transfers: tuple[Transfer, ...]
    members: tuple[tuple[str, float, float], ...]
    moves: int
    imbalance: tuple[float, float]

    @property
    def loads(self) -> tuple[tuple[str, float, float], ...]:
        """Return the members with a changed load, and their old and new loads."""
        return tuple(member for member in self.members if member[1] != member[2])

    def __str__(self) -> str:
        chain = ", ".join(str(transfer) for transfer in self.transfers)
        changes = [
            f"{member} {'drops' if after < before else 'rises'} from {before} to {after}"
            for member, before, after in self.loads
        ] or ["no load changes"]
        return f"{chain}: {', '.join([*changes, _moves_text(self.moves)])}"


def explain(
    group: Group, assignment: Assignment, *, limits: SearchLimits | float = SearchLimits()
) -> tuple[Explanation, ...]:
    """Explain why an assignment is not optimal, as chains of transfers that improve it.

    Each step is a chain that lowers the imbalance, a shortest one up to 32 transfers; if there is
    none, a chain that lowers movement. Weights are ignored.

    All steps together lead to an optimal assignment; an optimal one has no step. If ``limits``
    has an event that stops the search, further steps are missing.

    Raises
    ------
    UsageError
        If the assignment is not valid for the group, or partitions can have several members.

    Examples
    --------
    >>> from kassay import Member, Topic
    >>> members = (
    ...     Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1)]),
    ...     Member(id="b", subscription=("t",)),
    ... )
    >>> group = Group(topics=(Topic(name="t", partitions=2),), members=members)
    >>> for step in explain(group, Assignment({"a": [("t", 0), ("t", 1)]})):
    ...     print(step)
    a gives t-0 to b: a drops from 2 to 1, b rises from 0 to 1, 1 move more than ...
    """
    require_group(group)
    require_single_copies(group)
    limits = SearchLimits.of(limits)
    steps: list[Explanation] = []
    while not limits.is_stopped and (chain := improving_chain(group, assignment)):
        better = apply_chain(group, assignment, chain)
        old, new = assignment.counts(), better.counts()
        members = dict.fromkeys([chain[0].giver, *(transfer.taker for transfer in chain)])
        step = Explanation(
            transfers=chain,
            members=tuple((member, old.get(member, 0), new[member]) for member in members),
            moves=movement(group, better) - movement(group, assignment),
            imbalance=(sum_of_squares(old.values()), sum_of_squares(new.values())),
        )
        steps.append(step)
        assignment = better
    return tuple(steps)


def _moves_text(moves: int) -> str:
    if moves == 0:
        return "as many moves as without this step"
    noun, more = "move" if abs(moves) == 1 else "moves", "more" if moves > 0 else "fewer"
    return f"{abs(moves)} {noun} {more} than without this step"
