"""Families of groups with partition weights, and of groups with racks."""

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

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
    """Family that adds random racks of members and replicas to the groups of another family."""

    base: SeededFamily
    racks: int = 3
    replicas: int = 2

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Build the group that the family generates from ``seed``."""
        group = self.base.build(seed)
        rng = Random(f"{self.name}/{seed}/racks")  # noqa: S311
        racks = [f"r{index}" for index in range(self.racks)]
        topics = tuple(
            replace(
                topic,
                racks=tuple(
                    tuple(sorted(rng.sample(racks, self.replicas))) for _ in range(topic.partitions)
                ),
            )
            for topic in group.topics
        )
        members = tuple(replace(member, rack=rng.choice(racks)) for member in group.members)
        return replace(group, topics=topics, members=members, id=f"{self.name}/{seed}")


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
        name=f"racks-{kind}",
        base=SeededFamily(name=f"racks-{kind}", mixed=kind == "mixed", topics=Range(2, 6)),
    )
    for kind in ("equal", "mixed")
)
