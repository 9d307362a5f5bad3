"""Families of random groups: mixed subscriptions, weights and racks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.study.families.base_family import Family, Range, random_even_assignment
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic

_MEMBERS, _TOPICS, _PARTITIONS = Range(3, 20), Range(1, 10), Range(1, 30)
_MIN_MEMBER_NAMES = 100  # over the whole history of a group
DrawSubscription = Callable[[Random], tuple[str, ...]]


class MembershipEvent(StrEnum):
    """Cause of a rebalance in a random group. With ``fresh``, no member owns a partition."""

    FRESH = "fresh"
    STABLE = "stable"
    JOIN = "join"
    LEAVE = "leave"
    RESUBSCRIBE = "resubscribe"
    GROW = "grow"


_NO_CHANGE = (MembershipEvent.FRESH, MembershipEvent.STABLE)
CHURN = tuple(event for event in MembershipEvent if event not in _NO_CHANGE)


def _join(
    group: Group, rng: Random, draw_subscription: DrawSubscription, unused_names: list[str]
) -> Group:
    """Add members: at least one, at most a quarter of the current number."""
    count = rng.randint(1, max(1, len(group.members) // 4))
    joined = tuple(
        Member(id=unused_names.pop(), subscription=draw_subscription(rng), generation=NO_GENERATION)
        for _ in range(min(count, len(unused_names)))
    )
    return replace(group, members=group.members + joined)


def _leave(group: Group, rng: Random) -> Group:
    """Remove up to a quarter of the members, unless the group has only 1 or 2."""
    if len(group.members) < 3:
        return group
    leaving = _draw_members(group, rng)
    remaining = tuple(m for index, m in enumerate(group.members) if index not in leaving)
    return replace(group, members=remaining)


def _draw_members(group: Group, rng: Random) -> set[int]:
    indices = range(len(group.members))
    count = rng.randint(1, max(1, len(indices) // 4))
    return set(rng.sample(indices, min(count, len(indices))))


def _resubscribe(group: Group, rng: Random, draw_subscription: DrawSubscription) -> Group:
    """Change the subscriptions of up to a quarter of the members, at least one.

    These members still claim their old partitions: claims to unsubscribed topics are not valid.
    A drawn subscription that equals the old one is drawn again, at most 8 times.
    """
    members = list(group.members)
    changed = _draw_members(group, rng)
    for index, member in enumerate(members):
        if index in changed:
            draws = (draw_subscription(rng) for _ in range(8))
            drawn = next((one for one in draws if one != member.subscription), member.subscription)
            members[index] = replace(member, subscription=drawn)
    return replace(group, members=tuple(members))


def _resubscribe_all(group: Group, rng: Random) -> Group:
    """Add or remove a random topic in the subscriptions of all members."""
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


def _grow(group: Group, rng: Random) -> Group:
    """Add up to 50% more partitions to a random subscribed topic, at least one."""
    subscribers, topics = group.subscribers(), list(group.topics)
    index = rng.choice([i for i, topic in enumerate(topics) if subscribers.get(topic.name)])
    partitions = topics[index].partitions
    partitions += rng.randint(1, max(1, partitions // 2))
    topics[index] = replace(topics[index], partitions=partitions)
    return replace(group, topics=tuple(topics))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededFamily(Family):
    """Family with one random group per seed.

    Members own results of an assignor or, without ``own_history``, a random even assignment.
    """

    mixed: bool  # heterogeneous: each member draws its own topics
    event: MembershipEvent | None = None  # before the rebalance; None draws `steps` events
    steps: int = 1  # number of events; a rebalance follows each event except the last
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
        """Build the random group of a seed. Equal seeds give equal groups.

        The assignor ``start`` does not affect the events. If it fails on a group, this group is the
        result. ``complete`` adds data, such as racks, to the group and to the earlier groups that
        ``start`` assigns. It does not change partitions, members or subscriptions.
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
            if start is None or not self.own_history:
                own_rng = Random(f"{self.name}/{seed}/{step}")  # noqa: S311
                assignment = random_even_assignment(group, own_rng)
            else:
                result = run_until_stable(complete(group), start)
                if result.assignment is None:
                    break
                assignment = result.assignment
            rejoined = rejoin(group, assignment)
            group = self._apply(event, rejoined, rng, draw_subscription, names)
        return replace(complete(group), id=self.id_of(seed, start))

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
                return _join(group, rng, draw_subscription, names)
            case MembershipEvent.LEAVE:
                return _leave(group, rng)
            case MembershipEvent.RESUBSCRIBE if self.mixed:
                return _resubscribe(group, rng, draw_subscription)
            case MembershipEvent.RESUBSCRIBE:
                return _resubscribe_all(group, rng)
            case MembershipEvent.GROW:
                return _grow(group, rng)
            case MembershipEvent.FRESH | MembershipEvent.STABLE:
                return group


_OVERLAP_MEMBERS, _OVERLAP_TOPICS, _OVERLAP_PARTITIONS = Range(3, 16), Range(2, 12), Range(1, 12)
_BLOCKS = 3
_ATTEMPTS = 100


class OverlapShape(StrEnum):
    """Pattern by which the subscriptions of members overlap."""

    NESTED = "nested"  # each member subscribes to the first topics, later members to more
    CHAINS = "chains"  # each member subscribes to two neighbouring topics
    BLOCKS = "blocks"  # disjoint blocks of topics; one member subscribes to two blocks
    RANDOM = "random"  # members subscribe to each topic with the same probability
    SKEWED = "skewed"  # the popularity of topics follows Zipf's law


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapFamily(Family):
    """Family of groups in which subscriptions overlap by one pattern."""

    shape: OverlapShape
    members: Range = _OVERLAP_MEMBERS
    topics: Range = _OVERLAP_TOPICS
    partitions: Range = _OVERLAP_PARTITIONS

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
        group = Group(topics, tuple(Member(names.pop(), drawn) for drawn in subscriptions))
        event = rng.randrange(3)
        if event:
            group = rejoin(group, random_even_assignment(group, rng))
            group = (
                _join(group, rng, lambda draw: draw.choice(subscriptions), names)
                if event == 1
                else _leave(group, rng)
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


_MAX_WEIGHT = 1_000
_SEEDS = 10**12  # above all seeds of a study


class WeightDistribution(StrEnum):
    """Distribution of the weights of partitions."""

    LOG_NORMAL = "log-normal"
    ZIPF = "zipf"
    TWO_SPEED = "two-speed"

    def draw(self, rank: int, rng: Random) -> int:
        """Draw the random weight of a partition. ``rank`` determines only Zipf weights."""
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

    Families with the same ``base.name`` have equal members, topics and racks.
    """

    base: SeededFamily
    racks: int = 3
    replicas: int = 2

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group that the family generates from ``seed``."""
        final = self.base.build(seed)
        rng = Random(f"{self.base.name}/{seed}/racks")  # noqa: S311
        names = [f"r{index}" for index in range(self.racks)]
        replicas = {
            topic.name: tuple(
                tuple(sorted(rng.sample(names, self.replicas))) for _ in range(topic.partitions)
            )
            for topic in final.topics
        }
        rack_of = {member.id: rng.choice(names) for member in final.members}

        def add_racks(group: Group) -> Group:
            topics = (
                replace(topic, racks=replicas[topic.name][: topic.partitions])
                for topic in group.topics
            )
            members = (
                replace(member, rack=rack_of.get(member.id) or self._rack_of(member.id, seed))
                for member in group.members
            )
            return replace(group, topics=tuple(topics), members=tuple(members))

        base = replace(self.base, own_history=self.own_history)
        group = base.build(seed, start=start, complete=add_racks)
        return replace(group, id=self.id_of(seed, start))

    def _rack_of(self, left: str, seed: int) -> str:
        rng = Random(f"{self.base.name}/{seed}/racks/{left}")  # noqa: S311
        return f"r{rng.randrange(self.racks)}"
