"""Family of groups with the parameters of Apache Kafka's assignor benchmarks."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from random import Random
from typing import NamedTuple

from kassay.experiments.study.families.family import Family
from kassay.experiments.study.families.seeded_groups import random_even_assignment
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.ownership import rejoin


class GridPoint(NamedTuple):
    """Point of a parameter grid: the parameters of one group of a `GridFamily`."""

    members: int
    partitions_per_member: int
    topics: int
    mixed: bool
    incremental: bool


@dataclass(frozen=True, kw_only=True)
class GridFamily(Family):
    """Family with one group per point of a parameter grid. The seed selects the point."""

    members: tuple[int, ...] = (100, 500, 1_000, 5_000, 10_000)
    partitions_per_member: tuple[int, ...] = (5, 10, 50)
    topics: tuple[int, ...] = (10, 100, 500, 1_000)
    mixed: tuple[bool, ...] = (False, True)  # each member subscribes to half of the topics
    incremental: tuple[bool, ...] = (False, True)  # a member joins; else no member owns partitions
    largest: int = 10_000_000  # members times topics; larger points are skipped

    @cached_property
    def points(self) -> tuple[GridPoint, ...]:
        """Return the grid points with at most ``largest`` members times topics."""
        axes = (self.members, self.partitions_per_member, self.topics)
        points = (GridPoint(*point) for point in product(*axes, self.mixed, self.incremental))
        return tuple(point for point in points if point.members * point.topics <= self.largest)

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return len(self.points)

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
        rng = Random(f"{self.name}/{seed}")  # noqa: S311
        after = rejoin(before, random_even_assignment(before, rng))
        new_member = replace(group.members[-1], generation=NO_GENERATION)
        return replace(after, members=(*after.members, new_member))


JMH = GridFamily(name="jmh", largest=1_000_000)
JMH_SMALL = GridFamily(
    name="jmh-small", members=(10, 20, 50), partitions_per_member=(5, 10), topics=(10, 50)
)
