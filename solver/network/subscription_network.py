"""Flow network in which topics supply partitions to subscribed members.

Partitions of one topic with one owner are interchangeable, so the network has one arc per topic
and subscribed member. An assignment is a count of partitions per arc. Constraints on single
members and partitions change the network only: a capacity limits a member, and a forbidden or
pinned partition is a topic of its own with fewer arcs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.topic_partitions import Column
from kassay.solver.constraints import Capacity, Constraint, Forbidden, MaxPartitions, Pinned
from kassay.solver.evaluation import Room, group_constraints, permitted_members, topic_partitions
from kassay.solver.problem import Ints, Placement, Problem, first_partitions


@dataclass(frozen=True)
class SubscriptionNetwork:
    """Flow network of topics and members, with an arc from each topic to each subscriber.

    With constraints on partitions, the partitions of one topic of the group can belong to several
    topics of the network.
    """

    problem: Problem
    tail: Ints  # topic of each arc, ascending
    head: Ints  # member of each arc, ascending per topic
    topic: Ints  # topic of each partition of the problem
    topic_names: tuple[str, ...]  # name in the group, per topic
    capacity: Ints | None = None  # maximum number of partitions per member; None without limits

    @cached_property
    def partitions(self) -> Ints:
        """Return the number of distinct partitions per topic."""
        copies = self.problem.copies
        return self.supply if copies is None else copies.partitions

    @cached_property
    def optional(self) -> Ints:
        """Return the number of copies per topic that may remain without a member."""
        copies = self.problem.copies
        if copies is None:
            return np.zeros(self.topics, dtype=np.int64)
        return copies.partitions * (copies.most - copies.least)

    @cached_property
    def is_stateful(self) -> NDArray[np.bool_]:
        """Return which topics have partitions with state."""
        topics = self.problem.group.topic_table()
        return np.array([topics[name].is_stateful for name in self.topic_names], dtype=np.bool_)

    @cached_property
    def supply(self) -> Ints:
        """Return the number of partitions per topic; copies count separately."""
        return np.bincount(self.topic, minlength=self.topics).astype(np.int64)

    @cached_property
    def owned(self) -> Ints:
        """Return the number of partitions per arc that the member owns and may keep."""
        if self.problem.copies is not None:
            return self.partitions[self.tail] * self.problem.copies.holders[self.tail, self.head]
        return np.bincount(self._kept_arcs[1], minlength=len(self.tail)).astype(np.int64)

    @cached_property
    def _kept_arcs(self) -> tuple[Ints, Ints]:
        """Return the partitions that their owners may keep, with their arcs."""
        partitions = np.flatnonzero(self.problem.owner != NO_OWNER)
        topic, owner = self.topic[partitions], self.problem.owner[partitions].astype(np.int64)
        arcs = self.arc_of(topic, owner)
        if len(arcs) and len(self.tail):
            arcs = np.minimum(arcs, len(self.tail) - 1)
            permitted = (self.tail[arcs] == topic) & (self.head[arcs] == owner)
            return partitions[permitted], arcs[permitted]
        return partitions[:0], arcs[:0]

    @property
    def topics(self) -> int:
        """Return the number of topics in the network."""
        return len(self.topic_names)

    @property
    def members(self) -> int:
        """Return the number of members in the network."""
        return self.problem.member_count

    @property
    def member_ids(self) -> tuple[str, ...]:
        """Return the ids of the members."""
        return tuple(self.problem.member_index)

    @cached_property
    def _keys(self) -> Ints:
        """Return an integer per arc that identifies its topic and member."""
        return self.tail * self.members + self.head

    def arc_of(self, topic: Ints, member: Ints) -> Ints:
        """Return the arc index for each pair of topic and member; all arcs must exist."""
        return np.searchsorted(self._keys, topic * self.members + member)

    def counts(self, placement: Placement) -> Ints:
        """Return the number of assigned partitions per arc (topic, member) in a placement."""
        placed = placement != NO_OWNER
        arcs = self.arc_of(self.topic[placed], placement[placed].astype(np.int64))
        return np.bincount(arcs, minlength=len(self.tail)).astype(np.int64)

    def loads(self, counts: Ints) -> Ints:
        """Return the number of partitions per member, from counts per arc."""
        loads = np.bincount(self.head, weights=counts, minlength=self.members)
        return loads.astype(np.int64)

    @cached_property
    def max_counts(self) -> Ints:
        """Return the maximum number of partitions per member."""
        reachable = self.loads(self.partitions[self.tail])
        return reachable if self.capacity is None else np.minimum(reachable, self.capacity)

    def min_movement(self, counts: Ints) -> int:
        """Return the minimum number of moves for given partition counts per arc."""
        if self.problem.copies is not None:
            is_held = self.problem.copies.is_held[self.tail]
            return int(counts[is_held].sum() - np.minimum(counts, self.owned)[is_held].sum())
        owned = int(np.count_nonzero(self.problem.owner != NO_OWNER))
        return owned - int(np.minimum(counts, self.owned).sum())

    def place(self, counts: Ints) -> Placement:
        """Choose the partitions for given counts per arc with the fewest moves.

        An owner keeps its lowest numbers. The other partitions of a topic go to members
        in group order, in ascending order.
        """
        problem = self.problem
        if problem.copies is not None:
            return self._deal_copies(counts)
        kept = np.minimum(counts, self.owned)
        stays = np.zeros(problem.partition_count, dtype=np.bool_)
        owned, arcs = self._kept_arcs
        order = np.argsort(arcs, kind="stable")
        rank = np.arange(len(order)) - np.searchsorted(arcs[order], arcs[order])
        stays[owned[order]] = rank < kept[arcs[order]]
        placement = np.where(stays, problem.owner, np.int32(NO_OWNER)).astype(np.int32)
        by_topic = np.argsort(self.topic, kind="stable")
        placement[by_topic[~stays[by_topic]]] = np.repeat(self.head, counts - kept)
        return placement

    def _deal_copies(self, counts: Ints) -> Placement:
        """Assign the copies of each topic so that no member gets two copies of a partition."""
        problem = self.problem
        placement = np.full(problem.partition_count, NO_OWNER, dtype=np.int32)
        for topic in range(self.topics):
            arcs = np.flatnonzero(self.tail == topic)
            dealt = np.repeat(self.head[arcs], counts[arcs])
            count = int(self.partitions[topic])
            # Rows of one partition are consecutive, so a round takes every ``most``-th row.
            rows = np.flatnonzero(self.topic == topic).reshape(count, -1).T.reshape(-1)
            placement[rows[: len(dealt)]] = dealt
        return placement


def build_network(problem: Problem, rules: Iterable[Constraint] = ()) -> SubscriptionNetwork:
    """Build the flow network of a problem with the constraints that it can express."""
    group, copies = problem.group, problem.copies
    if copies is None:
        placed = np.flatnonzero(problem.consumer_set_of_topic >= 0)
        position = np.zeros(len(group.topics), dtype=np.int64)
        position[placed] = np.arange(len(placed))
        topic = position[problem.topic] if problem.partition_count else position[:0]
    else:  # a topic of the network per class of partitions, and capacities only
        placed, topic, rules = copies.topic, copies.class_of, group_constraints(group)
    rules = tuple(rules)
    names = [group.topics[index].name for index in placed.tolist()]
    sets = problem.consumer_set_of_topic[placed].tolist()
    consumers = [problem.consumer_sets[index] for index in sets]
    restrictions = [rule for rule in rules if isinstance(rule, Pinned | Forbidden)]
    if restrictions:
        _separate(problem, restrictions, topic, names, consumers)
    sizes = [len(members) for members in consumers]
    return SubscriptionNetwork(
        problem=problem,
        tail=np.repeat(np.arange(len(consumers), dtype=np.int64), sizes),
        head=np.concatenate([np.zeros(0, dtype=np.int64), *consumers]),
        topic=topic,
        topic_names=tuple(names),
        capacity=_capacity(problem, rules),
    )


def _separate(
    problem: Problem,
    restrictions: Sequence[Pinned | Forbidden],
    topic: Ints,
    names: list[str],
    consumers: list[Column],
) -> None:
    """Create separate topics for pinned and forbidden partitions."""
    of_topics = permitted_members(problem, [one for one in restrictions if one.partition is None])
    first = first_partitions(problem).values()
    consumers[:] = [np.array(of_topics[at], dtype=np.int32) for at in first]
    permitted = permitted_members(problem, restrictions)
    single = (one for one in restrictions if one.partition is not None)
    named = (topic_partitions(problem, one.topic, one.partition).tolist() for one in single)
    separate: dict[tuple[int, tuple[int, ...]], int] = {}
    for partition in sorted(set(chain.from_iterable(named))):
        parent, own = int(topic[partition]), permitted[partition]
        if own == of_topics[partition]:
            continue
        key = parent, tuple(own)
        if key not in separate:
            separate[key] = len(consumers)
            consumers.append(np.array(key[1], dtype=np.int32))
            names.append(names[parent])
        topic[partition] = separate[key]


def _capacity(problem: Problem, rules: Sequence[Constraint]) -> Ints | None:
    """Return the maximum number of partitions per member; None without limits."""
    if not any(isinstance(rule, Capacity | MaxPartitions) for rule in rules):
        return None
    room, weight = Room(problem, rules), problem.group.common_weight or 1
    has_loads = any(isinstance(rule, Capacity) for rule in rules)
    loads = [load // weight for load in room.loads] if has_loads else room.counts
    return np.array([*map(min, loads, room.counts)], dtype=np.int64)
