"""Families of groups with partition weights, and of groups with racks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from random import Random
from typing import NamedTuple

from kassay.experiments.study.families.family import Family, Range
from kassay.experiments.study.families.seeded_groups import SeededFamily
from kassay.reference.model.group import Group

_MAX_WEIGHT = 1_000
_ATTEMPTS = 100
_SEEDS = 10**12  # above all seeds of a study


class WeightDistribution(StrEnum):
    """Distribution of the weights of partitions."""

    LOG_NORMAL = "log-normal"
    ZIPF = "zipf"
    TWO_SPEED = "two-speed"

    def draw(self, rank: int, rng: Random) -> int:
        """Draw the random weight of a partition. Only Zipf weights depend on ``rank``."""
        match self:
            case WeightDistribution.LOG_NORMAL:
                return max(1, min(_MAX_WEIGHT, round(rng.lognormvariate(3, 1))))
            case WeightDistribution.ZIPF:
                return max(1, _MAX_WEIGHT // (1 + rank))
            case WeightDistribution.TWO_SPEED:
                return 10 if rng.random() < 0.2 else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedFamily(Family):
    """Family that adds partition weights to the groups of another family.

    Kafka's assignors ignore weights; the optimum balances them.
    """

    weights: WeightDistribution
    base: SeededFamily

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Build the group that the family generates from ``seed``.

        If all weights are equal, the group and its weights are drawn again.
        """
        for attempt in range(_ATTEMPTS):
            group = self._draw(seed + attempt * _SEEDS)
            if group.is_weighted:
                break
        return replace(group, id=f"{self.name}/{seed}")

    def _draw(self, seed: int) -> Group:
        group = self.base.build(seed)
        rng = Random(f"{self.name}/{seed}/weights")  # noqa: S311
        ranks = list(range(sum(topic.partitions for topic in group.topics)))
        rng.shuffle(ranks)
        topics = tuple(
            replace(
                topic,
                weights=tuple(self.weights.draw(ranks.pop(), rng) for _ in range(topic.partitions)),
            )
            for topic in group.topics
        )
        return replace(group, topics=topics)


@dataclass(frozen=True, slots=True, kw_only=True)
class RackFamily(Family):
    """Family that adds random racks of members and replicas to the groups of another family.

    Families with one ``base.name`` and different pasts have the same members, topics and racks.
    """

    base: SeededFamily
    racks: int = 3
    replicas: int = 2

    @property
    def own_history(self) -> bool:
        """Return whether the owned partitions are earlier results of the studied assignor."""
        return self.base.own_history

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group that the family generates from ``seed``."""
        complete = partial(self._add_racks, self._draw_racks(seed), seed)
        group = self.base.build(seed, start=start, complete=complete)
        suffix = f"@{start}" if start else ""
        return replace(group, id=f"{self.name}/{seed}{suffix}")

    def _draw_racks(self, seed: int) -> "_Racks":
        """Draw the racks of all replicas, and of all members of the final group."""
        group = self.base.build(seed)
        rng = Random(f"{self.base.name}/{seed}/racks")  # noqa: S311
        names = [f"r{index}" for index in range(self.racks)]
        replicas = {
            topic.name: tuple(
                tuple(sorted(rng.sample(names, self.replicas))) for _ in range(topic.partitions)
            )
            for topic in group.topics
        }
        return _Racks(replicas, {member.id: rng.choice(names) for member in group.members})

    def _add_racks(self, racks: "_Racks", seed: int, group: Group) -> Group:
        topics = tuple(
            replace(topic, racks=racks.replicas[topic.name][: topic.partitions])
            for topic in group.topics
        )
        members = tuple(
            replace(member, rack=racks.members.get(member.id) or self._rack_of(member.id, seed))
            for member in group.members
        )
        return replace(group, topics=topics, members=members)

    def _rack_of(self, left: str, seed: int) -> str:
        """Draw the rack of a member that has left the group."""
        rng = Random(f"{self.base.name}/{seed}/racks/{left}")  # noqa: S311
        return f"r{rng.randrange(self.racks)}"


class _Racks(NamedTuple):
    """Racks of the replicas of each topic's partitions, and rack of each member."""

    replicas: Mapping[str, tuple[tuple[str, ...], ...]]
    members: Mapping[str, str]


WEIGHTED: tuple[WeightedFamily, ...] = tuple(
    WeightedFamily(
        name=f"weights-{distribution}",
        weights=distribution,
        base=SeededFamily(
            name=f"weights-{distribution}",
            mixed=True,
            members=Range(2, 5),
            topics=Range(1, 4),
            partitions=Range(1, 5),
        ),
    )
    for distribution in WeightDistribution
)
RACKS: tuple[RackFamily, ...] = tuple(
    RackFamily(
        name=f"racks-{kind}{past}",
        base=SeededFamily(
            name=f"racks-{kind}",
            mixed=kind == "mixed",
            own_history=bool(past),
            topics=Range(2, 6),
        ),
    )
    for past in ("", "-own-past")
    for kind in ("equal", "mixed")
)
