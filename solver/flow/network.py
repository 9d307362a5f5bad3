"""The network: topics supply partitions, members take them, subscriptions are the arcs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Problem

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Network:
    """Topics, members and the subscriptions between them.

    Parameters
    ----------
    problem
        Where the network comes from. Topics count those with rows, in row order;
        members count as in the problem.
    supply
        Partitions of each topic.
    tail, head
        Topic and member of each arc; arcs are sorted by topic, then member.
    owned
        For each arc, how many partitions of the topic the member owns.
    """

    problem: Problem
    supply: Counts
    tail: Counts
    head: Counts
    owned: Counts

    @property
    def topics(self) -> int:
        """Number of topics."""
        return len(self.supply)

    @property
    def members(self) -> int:
        """Number of members."""
        return self.problem.width

    def arc_of(self, topic: Counts, member: Counts) -> Counts:
        """Find the arcs from topics to members; each must exist."""
        keys = self.tail * self.members + self.head
        return np.searchsorted(keys, topic * self.members + member)


def build_network(problem: Problem) -> Network:
    """Lay the network of a problem out.

    Examples
    --------
    >>> from kassay.reference.model.group import Group, Member, Topic
    >>> from kassay.solver.problem import build_problem
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=3),),
    ...     members=(
    ...         Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 2)]),
    ...         Member(id="b", subscription=("t",)),
    ...     ),
    ... )
    >>> network = build_network(build_problem(group))
    >>> network.supply.tolist(), network.head.tolist(), network.owned.tolist()
    ([3], [0, 1], [2, 0])
    """
    placed = np.flatnonzero(problem.set_of_topic >= 0)
    consumers = [problem.sets[index] for index in problem.set_of_topic[placed].tolist()]
    widths = [len(members) for members in consumers]
    tail = np.repeat(np.arange(len(placed), dtype=np.int64), widths)
    head = np.concatenate([np.zeros(0, dtype=np.int64), *consumers])
    network = Network(
        problem=problem,
        supply=np.bincount(topic_of_row(problem), minlength=len(placed)).astype(np.int64),
        tail=tail,
        head=head,
        owned=np.zeros(len(tail), dtype=np.int64),
    )
    has_owner = problem.owner != NO_OWNER
    arcs = network.arc_of(
        topic_of_row(problem)[has_owner], problem.owner[has_owner].astype(np.int64)
    )
    owned = np.bincount(arcs, minlength=len(tail)).astype(np.int64)
    return Network(problem, network.supply, tail, head, owned)


def topic_of_row(problem: Problem) -> Counts:
    """Return the network's topic of every row of the problem."""
    placed = np.flatnonzero(problem.set_of_topic >= 0)
    position = np.zeros(len(problem.set_of_topic), dtype=np.int64)
    position[placed] = np.arange(len(placed))
    return position[problem.topic] if problem.size else np.zeros(0, dtype=np.int64)
