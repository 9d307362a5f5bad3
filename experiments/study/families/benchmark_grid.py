"""Families of groups with the parameters of Apache Kafka's assignor benchmark."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from random import Random
from typing import NamedTuple

from kassay.experiments.implementations.runner import run_until_stable
from kassay.experiments.study.families.family import Family
from kassay.experiments.study.families.seeded_groups import random_even_assignment
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.ownership import rejoin

_BUCKETS = 5
_DEFAULT_ASSIGNOR = "sticky"


class GridPoint(NamedTuple):
    """Point of a parameter grid: the parameters of one group of a family."""

    members: int
    partitions_per_member: int
    topics: int
    mixed: bool
    incremental: bool

    @property
    def partitions_per_topic(self) -> int:
        """Return the number of partitions of each topic."""
        return self.members * self.partitions_per_member // self.topics


@dataclass(frozen=True, kw_only=True)
class GridFamily(Family):
    """Family with one group per point of a parameter grid. The seed selects the point."""

    members: tuple[int, ...] = (100, 500, 1_000, 5_000, 10_000)
    partitions_per_member: tuple[int, ...] = (5, 10, 50)
    topics: tuple[int, ...] = (10, 100, 1_000)
    mixed: tuple[bool, ...] = (False, True)
    incremental: tuple[bool, ...] = (False, True)  # a member joins; else no member owns partitions
    largest: int = 10_000_000  # members times topics; larger points are skipped

    @cached_property
    def points(self) -> tuple[GridPoint, ...]:
        """Return the points with partitions and at most ``largest`` members times topics."""
        axes = (self.members, self.partitions_per_member, self.topics)
        points = (GridPoint(*point) for point in product(*axes, self.mixed, self.incremental))
        return tuple(
            point
            for point in points
            if point.partitions_per_topic and point.members * point.topics <= self.largest
        )

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return len(self.points)


@dataclass(frozen=True, kw_only=True)
class BenchmarkFamily(GridFamily):
    """Family of the groups of Kafka's ``ServerSideAssignorBenchmark`` without racks.

    With mixed subscriptions, five buckets of members subscribe to disjoint sets of topics. If
    the rebalance is incremental, the members own the result of the studied assignor, and a new
    member joins the last bucket.
    """

    @property
    def own_history(self) -> bool:
        """Return True: the owned partitions are an earlier result of the studied assignor."""
        return True

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group at position ``seed`` of the grid, with the past of ``start``."""
        point = self.points[seed]
        names = [f"topic{index}" for index in range(point.topics)]
        topics = tuple(Topic(name=n, partitions=point.partitions_per_topic) for n in names)
        present = point.members - point.incremental
        buckets = min(_BUCKETS, present, point.topics) if point.mixed else 1
        size, width = -(-present // buckets), -(-point.topics // buckets)
        subscriptions = [tuple(sorted(names[b * width : (b + 1) * width])) for b in range(buckets)]
        members = tuple(
            Member(id=f"member{index}", subscription=subscriptions[index // size])
            for index in range(present)
        )
        group = Group(topics=topics, members=members)
        if point.incremental:
            past = run_until_stable(group, start or _DEFAULT_ASSIGNOR).assignment
            after = group if past is None else rejoin(group, past)
            joined = replace(members[-1], id="newMember", generation=NO_GENERATION)
            group = replace(after, members=(*after.members, joined))
        return replace(group, id=f"{self.name}/{seed}" + (f"@{start}" if start else ""))


@dataclass(frozen=True, kw_only=True)
class WindowFamily(GridFamily):
    """Family in which the subscriptions of members are sliding windows of half of the topics.

    If the rebalance is incremental, the members own a random balanced assignment, and a new
    member joins. ``deal`` is the prefix of the seeds of these assignments.
    """

    deal: str

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Build the group at position ``seed`` of the grid."""
        point = self.points[seed]
        names = [f"topic-{index:04}" for index in range(point.topics)]
        total = point.members * point.partitions_per_member
        topics = tuple(
            Topic(name=name, partitions=max(1, (total + index) // point.topics))
            for index, name in enumerate(names)
        )
        members = []
        for index in range(point.members):
            first = index * point.topics // point.members if point.mixed else 0
            width = max(1, point.topics // 2) if point.mixed else point.topics
            window = (names[(first + offset) % point.topics] for offset in range(width))
            members.append(Member(id=f"member-{index:05}", subscription=tuple(sorted(window))))
        group = Group(topics=topics, members=tuple(members), id=f"{self.name}/{seed}")
        if not point.incremental or point.members < 2:
            return group
        before = replace(group, members=group.members[:-1])
        rng = Random(f"{self.deal}/{seed}")  # noqa: S311
        after = rejoin(before, random_even_assignment(before, rng))
        new_member = replace(group.members[-1], generation=NO_GENERATION)
        return replace(after, members=(*after.members, new_member))


JMH = BenchmarkFamily(name="jmh", largest=1_000_000)
JMH_SMALL = BenchmarkFamily(
    name="jmh-small", members=(10, 20, 50), partitions_per_member=(5, 10), topics=(10, 50)
)
WINDOWS_SMALL = WindowFamily(
    name="windows-small",
    members=(10, 20, 50),
    partitions_per_member=(5, 10),
    topics=(10, 50),
    deal="jmh-small",  # the groups of this family had this name
)
