"""Subscription network: topics supply partitions, members receive them.

Partitions of one topic with one owner are interchangeable, so the network has one arc per
subscription. An assignment is a count of partitions per arc.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Ints, Placement, Problem


@dataclass(frozen=True)
class SubscriptionNetwork:
    """Network of topics with partitions to place, members, and their subscriptions."""

    problem: Problem
    tail: Ints  # topic per arc, ascending
    head: Ints  # member per arc, ascending per topic

    @cached_property
    def topic(self) -> Ints:
        """Topic of every partition of the problem."""
        placed = self.problem.consumer_set_of_topic >= 0
        position = np.cumsum(placed, dtype=np.int64) - 1
        return position[self.problem.topic] if self.problem.partition_count else np.zeros(0, int)

    @cached_property
    def supply(self) -> Ints:
        """Number of partitions per topic."""
        topics = np.count_nonzero(self.problem.consumer_set_of_topic >= 0)
        return np.bincount(self.topic, minlength=topics).astype(np.int64)

    @cached_property
    def owned(self) -> Ints:
        """Number of partitions of the topic that the member owns, per arc."""
        return self.counts(self.problem.owner)

    @property
    def topics(self) -> int:
        """Number of topics."""
        return len(self.supply)

    @property
    def members(self) -> int:
        """Number of members."""
        return self.problem.member_count

    @property
    def topic_names(self) -> tuple[str, ...]:
        """Names of the topics."""
        sets = self.problem.consumer_set_of_topic.tolist()
        pairs = zip(self.problem.group.topics, sets, strict=True)
        return tuple(topic.name for topic, consumers in pairs if consumers >= 0)

    @property
    def member_ids(self) -> tuple[str, ...]:
        """Ids of the members."""
        return tuple(self.problem.member_index)

    def arc_of(self, topic: Ints, member: Ints) -> Ints:
        """Return the indices of the arcs from topics to members; each arc must exist."""
        keys = self.tail * self.members + self.head
        return np.searchsorted(keys, topic * self.members + member)

    def counts(self, placement: Placement) -> Ints:
        """Return the number of partitions per arc; partitions with `NO_OWNER` are not counted."""
        placed = placement != NO_OWNER
        arcs = self.arc_of(self.topic[placed], placement[placed].astype(np.int64))
        return np.bincount(arcs, minlength=len(self.tail)).astype(np.int64)

    def loads(self, counts: Ints) -> Ints:
        """Return the number of partitions per member."""
        loads = np.bincount(self.head, weights=counts, minlength=self.members)
        return loads.astype(np.int64)

    def min_movement(self, counts: Ints) -> int:
        """Return the minimum number of moves of all assignments with these counts per arc."""
        return int((self.owned - np.minimum(counts, self.owned)).sum())

    def place(self, counts: Ints) -> Placement:
        """Choose a partition for each count, with the minimum number of moves.

        An owner keeps its lowest numbers. The other partitions of a topic go to members
        in group order, in ascending order.
        """
        problem = self.problem
        kept = np.minimum(counts, self.owned)
        stays = np.zeros(problem.partition_count, dtype=np.bool_)
        owned = np.flatnonzero(problem.owner != NO_OWNER)
        arcs = self.arc_of(self.topic[owned], problem.owner[owned].astype(np.int64))
        order = np.argsort(arcs, kind="stable")
        rank = np.arange(len(order)) - np.searchsorted(arcs[order], arcs[order])
        stays[owned[order]] = rank < kept[arcs[order]]
        placement = np.where(stays, problem.owner, np.int32(NO_OWNER)).astype(np.int32)
        placement[~stays] = np.repeat(self.head, counts - kept)
        return placement


def build_network(problem: Problem) -> SubscriptionNetwork:
    """Build the subscription network of a problem."""
    placed = problem.consumer_set_of_topic[problem.consumer_set_of_topic >= 0]
    consumers = [problem.consumer_sets[index] for index in placed.tolist()]
    sizes = [len(members) for members in consumers]
    return SubscriptionNetwork(
        problem=problem,
        tail=np.repeat(np.arange(len(placed), dtype=np.int64), sizes),
        head=np.concatenate([np.zeros(0, dtype=np.int64), *consumers]),
    )
