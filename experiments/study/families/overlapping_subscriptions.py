"""Families of groups with overlapping subscriptions, for example nested subscriptions."""

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from kassay.experiments.study.families.family import Family, Range
from kassay.experiments.study.families.seeded_groups import join, leave, random_even_assignment
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.ownership import rejoin

_MEMBERS, _TOPICS, _PARTITIONS = Range(3, 16), Range(2, 12), Range(1, 12)
_BLOCKS = 3
_ATTEMPTS = 100


class OverlapShape(StrEnum):
    """Pattern in which the subscriptions of members overlap."""

    NESTED = "nested"  # each member subscribes to the first topics, later members to more
    CHAINS = "chains"  # each member subscribes to two neighbouring topics
    BLOCKS = "blocks"  # disjoint blocks of topics; one member subscribes to two blocks
    RANDOM = "random"  # members subscribe to each topic with the same probability
    SKEWED = "skewed"  # the popularity of topics follows Zipf's law


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapFamily(Family):
    """Family of groups with overlapping subscriptions of one shape."""

    shape: OverlapShape
    members: Range = _MEMBERS
    topics: Range = _TOPICS
    partitions: Range = _PARTITIONS

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Build the group that the family generates from ``seed``.

        If all members have equal subscriptions, the group is drawn again.
        """
        for attempt in range(_ATTEMPTS):
            suffix = f"/{attempt}" if attempt else ""
            group = self._draw(Random(f"{self.name}/{seed}{suffix}"))  # noqa: S311
            if len({member.subscription for member in group.members}) > 1:
                break
        return replace(group, id=f"{self.name}/{seed}")

    def _draw(self, rng: Random) -> Group:
        count = self.topics.draw(rng)
        topics = tuple(
            Topic(name=f"t{index:02}", partitions=self.partitions.draw(rng))
            for index in range(count)
        )
        members = self.members.draw(rng)
        names = [f"c{number:02}" for number in range(2 * members + 2)]
        rng.shuffle(names)
        subscriptions = [
            tuple(topics[t].name for t in sorted(self._draw_topics(index, members, count, rng)))
            for index in range(members)
        ]
        group = Group(
            topics=topics,
            members=tuple(
                Member(id=names.pop(), subscription=subscription) for subscription in subscriptions
            ),
        )
        event = rng.randrange(3)
        if event:
            group = rejoin(group, random_even_assignment(group, rng))
            group = (
                join(group, rng, lambda draw: draw.choice(subscriptions), names)
                if event == 1
                else leave(group, rng)
            )
        return group

    def _draw_topics(self, member: int, members: int, topics: int, rng: Random) -> set[int]:
        match self.shape:
            case OverlapShape.NESTED:
                return set(range(1 + member * topics // members))
            case OverlapShape.CHAINS:
                first = member * topics // members
                return {first, (first + 1) % topics}
            case OverlapShape.BLOCKS:
                size = max(1, topics // _BLOCKS)
                block = member % min(_BLOCKS, topics)
                drawn = {(block * size + offset) % topics for offset in range(size)}
                return drawn | {(block + 1) * size % topics} if member == 0 else drawn
            case OverlapShape.RANDOM:
                return {t for t in range(topics) if rng.random() < 0.4} or {rng.randrange(topics)}
            case OverlapShape.SKEWED:
                drawn = {t for t in range(topics) if rng.random() < 1 / (1 + t)}
                return drawn or {rng.randrange(topics)}


OVERLAPS: tuple[OverlapFamily, ...] = tuple(
    OverlapFamily(name=f"overlap-{shape}", shape=shape) for shape in OverlapShape
)
