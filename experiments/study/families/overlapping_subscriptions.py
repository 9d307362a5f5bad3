"""How subscriptions overlap: nested, in chains, in blocks, at random, skewed."""

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import ClassVar

from kassay.experiments.study.families.membership_events import join, leave
from kassay.experiments.study.families.seeded_groups import Range, deal
from kassay.experiments.study.families.unlimited_family import UnlimitedFamily
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.ownership import rejoin


class OverlapShape(StrEnum):
    """How the subscriptions of a group's members overlap."""

    NESTED = "nested"
    CHAINS = "chains"
    BLOCKS = "blocks"
    RANDOM = "random"
    SKEWED = "skewed"


_MEMBERS, _TOPICS, _PARTITIONS = Range(3, 16), Range(2, 12), Range(1, 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapFamily(UnlimitedFamily):
    """Groups whose subscriptions overlap in one shape; some of them lost or won a member.

    Parameters
    ----------
    name
        Name of the family.
    shape
        ``nested``: each member consumes the first topics, some more of them than others.
        ``chains``: each consumes a run of neighbouring topics, one further than the last.
        ``blocks``: teams that share nothing, but for one member across two of them.
        ``random``: each topic with one probability. ``skewed``: topics by Zipf's law, so
        that few are consumed by nearly all and most by few.
    members, topics, partitions
        How many members, topics, and partitions a topic.
    """

    own_history: ClassVar[bool] = False

    shape: OverlapShape
    members: Range = _MEMBERS
    topics: Range = _TOPICS
    partitions: Range = _PARTITIONS

    def expected_seconds(self, seed: int) -> float:  # noqa: ARG002
        """Guess how long all assignors and the optimum take."""
        return 0.015

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Build the group of a seed: a third each is fresh, won members, lost members.

        Examples
        --------
        >>> family = OverlapFamily(name="demo", shape=OverlapShape.NESTED)
        >>> family.build(3) == family.build(3)
        True
        """
        rng = Random(f"{self.name}/{seed}")  # noqa: S311
        count = self.topics.draw(rng)
        topics = tuple(
            Topic(name=f"t{index:02}", partitions=self.partitions.draw(rng))
            for index in range(count)
        )
        members = self.members.draw(rng)
        names = [f"c{number:02}" for number in range(2 * members + 2)]
        rng.shuffle(names)
        wanted = [self._wanted(index, members, count, rng) for index in range(members)]
        group = Group(
            topics=topics,
            members=tuple(
                Member(id=names.pop(), subscription=tuple(f"t{t:02}" for t in sorted(want)))
                for want in wanted
            ),
        )
        event = rng.randrange(3)
        if event:
            group = rejoin(group, deal(group, rng))
            subscriptions = [member.subscription for member in group.members]
            group = (
                join(group, rng, lambda draw: draw.choice(subscriptions), names)
                if event == 1
                else leave(group, rng)
            )
        return replace(group, id=f"{self.name}/{seed}")

    def _wanted(self, index: int, members: int, topics: int, rng: Random) -> set[int]:
        match self.shape:
            case OverlapShape.NESTED:
                return set(range(1 + index * topics // members))
            case OverlapShape.CHAINS:
                first = index * topics // members
                return {first, (first + 1) % topics}
            case OverlapShape.BLOCKS:
                size = max(1, topics // 3)
                block = index % 3
                found = {(block * size + offset) % topics for offset in range(size)}
                return found | {(block + 1) * size % topics} if index == 0 else found
            case OverlapShape.RANDOM:
                return {t for t in range(topics) if rng.random() < 0.4} or {rng.randrange(topics)}
            case OverlapShape.SKEWED:
                found = {t for t in range(topics) if rng.random() < 1 / (1 + t)}
                return found or {rng.randrange(topics)}


OVERLAPS: tuple[OverlapFamily, ...] = tuple(
    OverlapFamily(name=f"overlap-{shape}", shape=shape) for shape in OverlapShape
)
