"""Families of random groups, without owned partitions or after membership events."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from kassay.experiments.implementations.runner import run_until_stable
from kassay.experiments.study.families.family import Family, Range
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.ownership import rejoin

_MEMBERS, _TOPICS, _PARTITIONS = Range(3, 20), Range(1, 10), Range(1, 30)
_MIN_MEMBER_NAMES = 100  # over the whole history of a group
DrawSubscription = Callable[[Random], tuple[str, ...]]


class MembershipEvent(StrEnum):
    """Cause of a rebalance. ``fresh`` means that no member owns a partition."""

    FRESH = "fresh"
    JOIN = "join"
    LEAVE = "leave"
    RESUBSCRIBE = "resubscribe"
    GROW = "grow"


CHURN = (
    MembershipEvent.JOIN,
    MembershipEvent.LEAVE,
    MembershipEvent.RESUBSCRIBE,
    MembershipEvent.GROW,
)


def join(
    group: Group, rng: Random, draw_subscription: DrawSubscription, unused_names: list[str]
) -> Group:
    """Add members to a group: at least one, at most a quarter of the current number."""
    count = rng.randint(1, max(1, len(group.members) // 4))
    joined = tuple(
        Member(id=unused_names.pop(), subscription=draw_subscription(rng), generation=NO_GENERATION)
        for _ in range(min(count, len(unused_names)))
    )
    return replace(group, members=group.members + joined)


def leave(group: Group, rng: Random) -> Group:
    """Remove random members from a group, at most a quarter of all members.

    Groups with fewer than 3 members are not changed.
    """
    if len(group.members) < 3:
        return group
    count = rng.randint(1, max(1, len(group.members) // 4))
    leaving = frozenset(rng.sample(range(len(group.members)), count))
    remaining = tuple(m for index, m in enumerate(group.members) if index not in leaving)
    return replace(group, members=remaining)


def resubscribe(group: Group, rng: Random, draw_subscription: DrawSubscription) -> Group:
    """Change the subscriptions of random members: at least one, at most a quarter.

    These members still claim their old partitions, so that claims to unsubscribed topics become
    stale.
    """
    count = rng.randint(1, max(1, len(group.members) // 4))
    changed = frozenset(rng.sample(range(len(group.members)), min(count, len(group.members))))
    members = tuple(
        replace(member, subscription=_draw_different(member.subscription, rng, draw_subscription))
        if index in changed
        else member
        for index, member in enumerate(group.members)
    )
    return replace(group, members=members)


def resubscribe_all(group: Group, rng: Random) -> Group:
    """Add a random topic to the common subscription of all members, or remove one from it."""
    subscription = group.members[0].subscription
    other_topics = [topic.name for topic in group.topics if topic.name not in subscription]
    if other_topics and (len(subscription) < 2 or rng.random() < 0.5):
        subscription = (*subscription, rng.choice(other_topics))
    elif len(subscription) > 1:
        removed = rng.choice(subscription)
        subscription = tuple(topic for topic in subscription if topic != removed)
    members = tuple(
        replace(member, subscription=tuple(sorted(subscription))) for member in group.members
    )
    return replace(group, members=members)


def grow(group: Group, rng: Random) -> Group:
    """Add at most 50 % more partitions, but at least one, to a random subscribed topic."""
    subscribers = group.subscribers()
    index = rng.choice([i for i, topic in enumerate(group.topics) if subscribers.get(topic.name)])
    topic = group.topics[index]
    partitions = topic.partitions + rng.randint(1, max(1, topic.partitions // 2))
    larger = replace(topic, partitions=partitions)
    return replace(group, topics=(*group.topics[:index], larger, *group.topics[index + 1 :]))


def _draw_different(
    subscription: tuple[str, ...], rng: Random, draw_subscription: DrawSubscription
) -> tuple[str, ...]:
    """Draw a subscription that differs from the current one, with at most 8 attempts."""
    for _ in range(8):
        drawn = draw_subscription(rng)
        if drawn != subscription:
            return drawn
    return subscription


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededFamily(Family):
    """Family with one random group per seed."""

    mixed: bool  # heterogeneous: each member draws its own topics
    event: MembershipEvent | None = None  # before the rebalance; None draws `steps` events
    steps: int = 1  # number of events; a rebalance follows each event except the last
    # Members own earlier results of the studied assignor, or a random even assignment.
    own_history: bool = False
    members: Range = _MEMBERS
    topics: Range = _TOPICS
    partitions: Range = _PARTITIONS

    def build(
        self,
        seed: int,
        *,
        start: str | None = None,
        complete: Callable[[Group], Group] = lambda group: group,
    ) -> Group:
        """Build the random group of a seed. Equal seeds give equal groups in every process.

        ``start`` does not affect the events. If this assignor fails on a group, the history ends
        with that group. ``complete`` adds data, such as racks, to the group and to the earlier
        groups that ``start`` assigns; it does not change partitions, members or subscriptions.

        Examples
        --------
        >>> family = SeededFamily(name="demo", mixed=False, event=MembershipEvent.JOIN)
        >>> family.build(3) == family.build(3)
        True
        """
        rng = Random(f"{self.name}/{seed}")  # noqa: S311
        # A join adds at most a quarter of the members, at least one.
        most = self.members.high
        for _ in range(self.steps):
            most += max(1, most // 4)
        names = [f"c{number:02}" for number in range(max(_MIN_MEMBER_NAMES, most))]
        rng.shuffle(names)
        group, draw_subscription = self._initial_group(rng, names)
        for step, event in enumerate(self._events(rng)):
            rejoined = self._rebalance(group, f"{self.name}/{seed}/{step}", start, complete)
            if rejoined is None:
                break
            group = self._apply(event, rejoined, rng, draw_subscription, names)
        suffix = f"@{start}" if start else ""
        return replace(complete(group), id=f"{self.name}/{seed}{suffix}")

    def _initial_group(self, rng: Random, names: list[str]) -> tuple[Group, DrawSubscription]:
        count = self.topics.draw(rng)
        topics = tuple(
            Topic(name=f"t{index}", partitions=self.partitions.draw(rng)) for index in range(count)
        )
        all_topics = tuple(topic.name for topic in topics)
        density = rng.uniform(0.2, 0.9)
        common = tuple(sorted(rng.sample(all_topics, rng.randint((count + 1) // 2, count))))

        def draw_subscription(rng: Random) -> tuple[str, ...]:
            if not self.mixed:
                return common
            drawn = tuple(name for name in all_topics if rng.random() < density)
            return drawn or (rng.choice(all_topics),)

        members = tuple(
            Member(id=names.pop(), subscription=draw_subscription(rng))
            for _ in range(self.members.draw(rng))
        )
        return Group(topics=topics, members=members), draw_subscription

    def _events(self, rng: Random) -> tuple[MembershipEvent, ...]:
        if self.event is MembershipEvent.FRESH:
            return ()
        if self.event is not None:
            return (self.event,) * self.steps
        return tuple(rng.choice(CHURN) for _ in range(self.steps))

    def _rebalance(
        self, group: Group, seed: str, start: str | None, complete: Callable[[Group], Group]
    ) -> Group | None:
        if start is None or not self.own_history:
            return rejoin(group, random_even_assignment(group, Random(seed)))  # noqa: S311
        assignment = run_until_stable(complete(group), start).assignment
        return None if assignment is None else rejoin(group, assignment)

    def _apply(
        self,
        event: MembershipEvent,
        group: Group,
        rng: Random,
        draw_subscription: DrawSubscription,
        names: list[str],
    ) -> Group:
        match event:
            case MembershipEvent.JOIN:
                if not self.mixed:  # the common subscription may have changed
                    draw_subscription = lambda _: group.members[0].subscription  # noqa: E731
                return join(group, rng, draw_subscription, names)
            case MembershipEvent.LEAVE:
                return leave(group, rng)
            case MembershipEvent.RESUBSCRIBE if self.mixed:
                return resubscribe(group, rng, draw_subscription)
            case MembershipEvent.RESUBSCRIBE:
                return resubscribe_all(group, rng)
            case MembershipEvent.GROW:
                return grow(group, rng)
            case MembershipEvent.FRESH:
                return group


def random_even_assignment(group: Group, rng: Random) -> Assignment:
    """Assign partitions in random order, each to a random member with minimum load."""
    subscribers = group.subscribers()
    partitions = [
        (topic.name, number)
        for topic in group.topics
        if subscribers.get(topic.name)
        for number in range(topic.partitions)
    ]
    rng.shuffle(partitions)
    lists: list[list[tuple[str, int]]] = [[] for _ in group.members]
    for partition in partitions:
        candidates = subscribers[partition[0]]
        least = min(len(lists[member]) for member in candidates)
        lists[rng.choice([m for m in candidates if len(lists[m]) == least])].append(partition)
    return Assignment(
        {member.id: sorted(tps) for member, tps in zip(group.members, lists, strict=True)}
    )


LARGE: tuple[SeededFamily, ...] = tuple(
    SeededFamily(
        name=f"{kind}-large",
        mixed=kind == "mixed",
        steps=2,
        own_history=True,
        members=Range(32, 1000),
        topics=Range(2, 20),
        partitions=Range(10, 200),
    )
    for kind in ("equal", "mixed")
)
