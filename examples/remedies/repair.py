"""Repair of an assignment by chains of transfers: a remedy for Kafka's assignors.

A chain of transfers gives a partition of the first member to the second, a partition of the
second to the third, and so on. Only the loads of the first and the last member change, and
no load changes if the last member is the first. The repair applies chains that lower the
imbalance, then chains that keep the imbalance and lower the number of moves. Kafka's sticky
assignors try single transfers only.

Each function without a leading underscore that takes only a group is a custom assignor:
``--assignor python:examples/remedies/repair.py:sticky_two_steps``. See docs/remedies.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from kassay import Assignment, Group
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import LivelockError, current_partitions

_UNKNOWN = (1 << 62, 0)


@dataclass(frozen=True, slots=True)
class Transfer:
    """Transfer of one partition of a topic between two members, as indices."""

    topic: int
    giver: int
    taker: int


class Counts:
    """Number of partitions per topic and member, owned and assigned, and loads.

    Partitions of a topic that one member owns are interchangeable, so that counts determine
    the fewest moves.
    """

    def __init__(self, group: Group, assignment: Assignment) -> None:
        self.members = [member.id for member in group.members]
        self.topics = [topic.name for topic in group.topics]
        topic_index = {name: index for index, name in enumerate(self.topics)}
        self.subscribers: list[list[int]] = [[] for _ in self.topics]
        for index, member in enumerate(group.members):
            for name in dict.fromkeys(member.subscription):
                if name in topic_index:
                    self.subscribers[topic_index[name]].append(index)
        self.assigned = [dict.fromkeys(members, 0) for members in self.subscribers]
        self.owned = [dict.fromkeys(members, 0) for members in self.subscribers]
        self.loads = [0] * len(self.members)
        owned = current_partitions(group)
        for index, member_id in enumerate(self.members):
            for name, _ in assignment.get(member_id, ()):
                self.assigned[topic_index[name]][index] += 1
                self.loads[index] += 1
            for name, _ in owned[member_id]:
                self.owned[topic_index[name]][index] += 1

    def leave_cost(self, topic: int, member: int) -> int:
        """Return the additional moves if a member gives a partition of a topic."""
        return int(self.assigned[topic][member] <= self.owned[topic][member])

    def enter_cost(self, topic: int, member: int) -> int:
        """Return the additional moves if a member takes a partition of a topic: -1 or 0."""
        return -int(self.assigned[topic][member] < self.owned[topic][member])

    def apply(self, chain: list[Transfer]) -> None:
        """Apply the transfers of a chain."""
        for transfer in chain:
            self.assigned[transfer.topic][transfer.giver] -= 1
            self.assigned[transfer.topic][transfer.taker] += 1
            self.loads[transfer.giver] -= 1
            self.loads[transfer.taker] += 1


def repair(
    group: Group,
    assignment: Assignment,
    *,
    max_transfers: int | None = None,
    max_chains: int | None = None,
) -> tuple[Assignment, int]:
    """Apply improving chains of transfers. Return the assignment and the number of chains.

    Parameters
    ----------
    max_transfers
        Maximum number of transfers per chain; None for no limit.
    max_chains
        Maximum number of chains; None for no limit. Without both limits, the result has the
        minimum imbalance and, among these assignments, the fewest moves.
    """
    counts = Counts(group, assignment)
    length = len(counts.members) if max_transfers is None else max_transfers
    chains = 0
    for search in (_balancing_chain, _returning_chain):
        while (max_chains is None or chains < max_chains) and (chain := search(counts, length)):
            counts.apply(chain)
            chains += 1
    return _choose_partitions(group, assignment, counts), chains


def _balancing_chain(counts: Counts, length: int) -> list[Transfer]:
    """Return a shortest chain that lowers the imbalance; an empty list if there is none.

    ``best`` has the least load at which a chain from each member can end, with the fewest
    additional moves. Among chains of equal length, the load difference decides, then the moves.
    """
    best = [(load, 0) for load in counts.loads]
    steps: list[dict[int, Transfer]] = []
    for _ in range(length):
        improved = list(best)
        step: dict[int, Transfer] = {}
        for topic, members in enumerate(counts.subscribers):
            ends = ((best[m][0], best[m][1] + counts.enter_cost(topic, m), m) for m in members)
            load, moves, taker = min(ends, default=(*_UNKNOWN, -1))
            for giver in members:
                end = (load, moves + counts.leave_cost(topic, giver))
                if counts.assigned[topic][giver] and end < improved[giver]:
                    improved[giver] = end
                    step[giver] = Transfer(topic, giver, taker)
        if not step:
            return []
        best = improved
        steps.append(step)
        gains = ((best[m][0] - load, best[m][1], m) for m, load in enumerate(counts.loads))
        gain, _, giver = min(gains)
        if gain <= -2:
            return list(_follow(steps, giver))
    return []


def _follow(steps: list[dict[int, Transfer]], giver: int) -> Iterator[Transfer]:
    """Yield the transfers of the best chain from a member."""
    for step in reversed(steps):
        if giver in step:
            yield step[giver]
            giver = step[giver].taker


def _returning_chain(counts: Counts, length: int) -> list[Transfer]:
    """Return a shortest chain that keeps the imbalance and lowers the number of moves.

    Such a chain returns a partition of some topic to a member that lost one. The search starts
    with the partitions that this member can give instead.
    """
    shortest: list[Transfer] = []
    lost = dict.fromkeys(
        member
        for topic, members in enumerate(counts.subscribers)
        for member in members
        if counts.enter_cost(topic, member)
    )
    for member in lost:
        found = _CycleSearch(counts, member).run(length)
        if found:
            shortest, length = found, len(found) - 1
    return shortest


class _CycleSearch:
    """Search for a chain through one member that lowers the number of moves.

    A node is a member and whether the chain has ended and begun again: a chain may end at a
    member and begin at a member with one partition more, because both exchange their loads.
    """

    def __init__(self, counts: Counts, start: int) -> None:
        self.counts = counts
        self.start = start
        self.moves: dict[tuple[int, bool], int] = {(start, False): 0}
        self.chains: dict[tuple[int, bool], tuple[Transfer, ...]] = {(start, False): ()}

    def run(self, length: int) -> list[Transfer]:
        """Return a shortest chain of at most ``length`` transfers, empty if there is none."""
        self._begin_again()
        for _ in range(length):
            if not self._extend():
                break
            self._begin_again()
            for has_ended in (False, True):
                if self.moves.get((self.start, has_ended), 0) < 0:
                    return list(self.chains[self.start, has_ended])
        return []

    def _extend(self) -> bool:
        """Append one transfer to each chain. Return whether any node has fewer moves."""
        known, chains = dict(self.moves), dict(self.chains)
        for (topic, members), has_ended in product(
            enumerate(self.counts.subscribers), (False, True)
        ):
            gifts = (
                (known[member, has_ended] + self.counts.leave_cost(topic, member), member)
                for member in members
                if (member, has_ended) in known and self.counts.assigned[topic][member]
            )
            moves, giver = min(gifts, default=(0, -1))
            for taker in members if giver >= 0 else ():
                if taker != giver:
                    chain = (*chains[giver, has_ended], Transfer(topic, giver, taker))
                    total = moves + self.counts.enter_cost(topic, taker)
                    self._reach((taker, has_ended), total, chain)
        return self.moves != known

    def _begin_again(self) -> None:
        """Continue each chain at the members with one partition more than its last member."""
        loads = self.counts.loads
        ends: dict[int, tuple[int, int]] = {}
        for (end, has_ended), moves in self.moves.items():
            if not has_ended:
                ends[loads[end]] = min((moves, end), ends.get(loads[end], (moves, end)))
        for member, load in enumerate(loads):
            if load - 1 in ends:
                moves, end = ends[load - 1]
                self._reach((member, True), moves, self.chains[end, False])

    def _reach(self, node: tuple[int, bool], moves: int, chain: tuple[Transfer, ...]) -> None:
        if node not in self.moves or moves < self.moves[node]:
            self.moves[node], self.chains[node] = moves, chain


def _choose_partitions(group: Group, assignment: Assignment, counts: Counts) -> Assignment:
    """Choose partitions for the counts: owned ones first, then those of the assignment."""
    chosen: dict[str, list[tuple[str, int]]] = {member: [] for member in counts.members}
    owned = current_partitions(group)
    room = {
        (counts.topics[topic], counts.members[member]): count
        for topic, members in enumerate(counts.assigned)
        for member, count in members.items()
    }
    rest = {
        (topic.name, number)
        for topic, members in zip(group.topics, counts.subscribers, strict=True)
        for number in range(topic.partitions if members else 0)
    }

    def place(member: str, partitions: list[tuple[str, int]]) -> None:
        for partition in partitions:
            if partition in rest and room.get((partition[0], member), 0):
                chosen[member].append(partition)
                room[partition[0], member] -= 1
                rest.remove(partition)

    received = {
        member: [(tp.topic, tp.partition) for tp in assignment.get(member, ())]
        for member in counts.members
    }
    for member in counts.members:
        unchanged = set(received[member])
        place(member, sorted(owned[member], key=lambda tp: (tp not in unchanged, tp)))
    for member in counts.members:
        place(member, received[member])
    for member in counts.members:
        place(member, sorted(rest))
    return Assignment(chosen)


def sticky_two_steps(group: Group) -> Assignment:
    """Repair the result of the sticky assignor by chains of at most two transfers."""
    return repair(group, _sticky(group), max_transfers=2)[0]


def sticky_three_steps(group: Group) -> Assignment:
    """Repair the result of the sticky assignor by chains of at most three transfers."""
    return repair(group, _sticky(group), max_transfers=3)[0]


def sticky_ten_chains(group: Group) -> Assignment:
    """Repair the result of the sticky assignor by at most ten chains of any length."""
    return repair(group, _sticky(group), max_chains=10)[0]


def uniform_two_steps(group: Group) -> Assignment:
    """Repair the result of the uniform assignor by chains of at most two transfers."""
    return repair(group, assign(group, "uniform"), max_transfers=2)[0]


def uniform_three_steps(group: Group) -> Assignment:
    """Repair the result of the uniform assignor by chains of at most three transfers."""
    return repair(group, assign(group, "uniform"), max_transfers=3)[0]


def uniform_ten_chains(group: Group) -> Assignment:
    """Repair the result of the uniform assignor by at most ten chains of any length."""
    return repair(group, assign(group, "uniform"), max_chains=10)[0]


def _sticky(group: Group) -> Assignment:
    """Return the result of the sticky assignor, in a livelock the first repeated state."""
    try:
        return assign(group, "sticky")
    except LivelockError as livelock:
        return livelock.state
