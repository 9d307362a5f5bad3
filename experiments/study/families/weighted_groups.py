"""Partitions of unequal weight, and members in racks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import ClassVar

from kassay.experiments.study.families.seeded_groups import Range, SeededFamily
from kassay.experiments.study.families.unlimited_family import UnlimitedFamily
from kassay.reference.model.group import Group, Member, Topic


class WeightDistribution(StrEnum):
    """Law that the weights of partitions are drawn by."""

    LOG_NORMAL = "log-normal"
    ZIPF = "zipf"
    TWO_SPEED = "two-speed"


_LARGEST = 1_000


def _law(weights: WeightDistribution, rng: Random) -> Callable[[int], int]:
    """Return a weight as a function of the partition's rank."""
    match weights:
        case WeightDistribution.LOG_NORMAL:
            return lambda _: max(1, min(_LARGEST, round(rng.lognormvariate(3, 1))))
        case WeightDistribution.ZIPF:
            return lambda rank: max(1, _LARGEST // (1 + rank))
        case WeightDistribution.TWO_SPEED:
            return lambda _: 10 if rng.random() < 0.2 else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedFamily(UnlimitedFamily):
    """Groups of another family whose partitions differ in weight.

    The assignors do not know weights; the optimum balances them. Groups are small, for the
    problem is hard.

    Parameters
    ----------
    name
        Name of the family.
    weights
        The law of the weights.
    base
        Where groups come from.
    """

    own_history: ClassVar[bool] = False

    weights: WeightDistribution
    base: SeededFamily

    def expected_seconds(self, seed: int) -> float:  # noqa: ARG002
        """Guess how long all assignors and the optimum take."""
        return 0.15

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Build the group of a seed."""
        group = self.base.build(seed)
        rng = Random(f"{self.name}/{seed}/weights")  # noqa: S311
        law = _law(self.weights, rng)
        ranks = list(range(sum(topic.partitions for topic in group.topics)))
        rng.shuffle(ranks)
        topics = tuple(
            replace(topic, weights=tuple(law(ranks.pop()) for _ in range(topic.partitions)))
            for topic in group.topics
        )
        return replace(group, topics=topics, id=f"{self.name}/{seed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RackFamily(UnlimitedFamily):
    """Groups of another family whose members and replicas are spread over racks.

    Parameters
    ----------
    name
        Name of the family.
    base
        Where groups come from.
    racks
        How many racks.
    replicas
        Racks that hold a replica of each partition.
    """

    own_history: ClassVar[bool] = False

    base: SeededFamily
    racks: int = 3
    replicas: int = 2

    def expected_seconds(self, seed: int) -> float:  # noqa: ARG002
        """Guess how long all assignors and the optimum take."""
        return 0.03

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Build the group of a seed."""
        group = self.base.build(seed)
        rng = Random(f"{self.name}/{seed}/racks")  # noqa: S311
        racks = [f"r{index}" for index in range(self.racks)]
        return replace(
            group,
            topics=tuple(self._replicated(topic, racks, rng) for topic in group.topics),
            members=tuple(_placed(member, rng.choice(racks)) for member in group.members),
            id=f"{self.name}/{seed}",
        )

    def _replicated(self, topic: Topic, racks: list[str], rng: Random) -> Topic:
        held = tuple(
            tuple(sorted(rng.sample(racks, self.replicas))) for _ in range(topic.partitions)
        )
        return replace(topic, racks=held)


def _placed(member: Member, rack: str) -> Member:
    return replace(member, rack=rack)


def _small(name: str, *, mixed: bool) -> SeededFamily:
    return SeededFamily(
        name=name, mixed=mixed, members=Range(2, 5), topics=Range(1, 4), partitions=Range(1, 5)
    )


WEIGHTED: tuple[WeightedFamily, ...] = tuple(
    WeightedFamily(name=f"weights-{law}", weights=law, base=_small(f"weights-{law}", mixed=True))
    for law in WeightDistribution
)
RACKS: tuple[RackFamily, ...] = tuple(
    RackFamily(
        name=f"racks-{kind}",
        base=SeededFamily(name=f"racks-{kind}", mixed=kind == "mixed", topics=Range(2, 6)),
    )
    for kind in ("equal", "mixed")
)
