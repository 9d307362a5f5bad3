"""The grid that Kafka's own benchmarks of its assignors run over."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from random import Random
from typing import ClassVar

from kassay.experiments.study.families.seeded_groups import deal
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.ownership import rejoin


@dataclass(frozen=True, kw_only=True)
class GridFamily:
    """Every point of a grid, one group each; the seed is the position.

    Parameters
    ----------
    name
        Name of the family.
    members, partitions_a_member, topics
        Values on the three axes. Partitions are spread evenly over topics, at least one each.
    mixed
        All members subscribe to all topics, or each to a window of half of them.
    incremental
        Everything is to be assigned, or one more member joins those that own everything.
    largest
        Points with more subscriptions (members times topics) than this are left out.
    """

    own_history: ClassVar[bool] = False

    name: str
    members: tuple[int, ...] = (100, 500, 1_000, 5_000, 10_000)
    partitions_a_member: tuple[int, ...] = (5, 10, 50)
    topics: tuple[int, ...] = (10, 100, 500, 1_000)
    mixed: tuple[bool, ...] = (False, True)
    incremental: tuple[bool, ...] = (False, True)
    largest: int = 10_000_000

    @cached_property
    def points(self) -> tuple[tuple[int, int, int, bool, bool], ...]:
        """The points: members, partitions a member, topics, mixed, incremental."""
        axes = (self.members, self.partitions_a_member, self.topics)
        return tuple(
            point
            for point in product(*axes, self.mixed, self.incremental)
            if point[0] * point[2] <= self.largest
        )

    @property
    def size(self) -> int:
        """How many groups there are."""
        return len(self.points)

    def parameters(self) -> dict[str, object]:
        """Return the parameters, as a manifest records them."""
        return asdict(self)

    def expected_seconds(self, seed: int) -> float:
        """Guess how long all assignors and the optimum take."""
        members, each, topics, mixed, _ = self.points[seed]
        return 0.02 + (20 if mixed else 4) * 1e-6 * members * (topics + 9 * each)

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Build the group at a position.

        Examples
        --------
        >>> group = GridFamily(name="demo", members=(4,), topics=(10,)).build(2)
        >>> len(group.members), group.partition_count, len(group.members[0].subscription)
        (4, 20, 5)
        """
        members, each, topics, mixed, incremental = self.points[seed]
        rng = Random(f"{self.name}/{seed}")  # noqa: S311
        names = tuple(f"topic-{index:04}" for index in range(topics))
        counts = [max(1, (members * each + index) // topics) for index in range(topics)]
        window = max(1, topics // 2)

        def wants(index: int) -> tuple[str, ...]:
            first = index * topics // members if mixed else 0
            width = window if mixed else topics
            return tuple(sorted(names[(first + offset) % topics] for offset in range(width)))

        everybody = tuple(
            Member(id=f"member-{index:05}", subscription=wants(index)) for index in range(members)
        )
        group = Group(
            topics=tuple(
                Topic(name=name, partitions=count)
                for name, count in zip(names, counts, strict=True)
            ),
            members=everybody,
            id=f"{self.name}/{seed}",
        )
        return _one_more(group, rng) if incremental and members > 1 else group


def _one_more(group: Group, rng: Random) -> Group:
    """Let all members but the last own everything that they can, and the last one join."""
    newcomer = replace(group.members[-1], generation=NO_GENERATION)
    before = replace(group, members=group.members[:-1])
    after = rejoin(before, deal(before, rng))
    return replace(after, members=(*after.members, newcomer))


JMH = GridFamily(name="jmh", largest=1_000_000)
JMH_SMALL = GridFamily(
    name="jmh-small", members=(10, 20, 50), partitions_a_member=(5, 10), topics=(10, 50)
)
