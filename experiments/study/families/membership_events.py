"""What happens to a group between two rebalances: members come and go, topics grow."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from random import Random

from kassay.reference.model.group import NO_GENERATION, Group, Member

Subscribe = Callable[[Random], tuple[str, ...]]


class MembershipEvent(StrEnum):
    """Why a group rebalances."""

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


def join(group: Group, rng: Random, subscribe: Subscribe, names: list[str]) -> Group:
    """Let up to a quarter as many members again join, at least one, under spare names."""
    newcomers = rng.randint(1, max(1, len(group.members) // 4))
    joined = tuple(
        Member(id=names.pop(), subscription=subscribe(rng), generation=NO_GENERATION)
        for _ in range(min(newcomers, len(names)))
    )
    return replace(group, members=group.members + joined)


def leave(group: Group, rng: Random) -> Group:
    """Let up to a quarter of the members go, at least one; the last two stay."""
    if len(group.members) < 3:
        return group
    count = rng.randint(1, max(1, len(group.members) // 4))
    gone = frozenset(rng.sample(range(len(group.members)), count))
    stay = tuple(m for index, m in enumerate(group.members) if index not in gone)
    return replace(group, members=stay)


def resubscribe(group: Group, rng: Random, subscribe: Subscribe) -> Group:
    """Give up to a quarter of the members, at least one, another subscription.

    They go on claiming what they owned: the claims to topics they gave up are stale.
    """
    count = rng.randint(1, max(1, len(group.members) // 4))
    changed = frozenset(rng.sample(range(len(group.members)), min(count, len(group.members))))
    members = tuple(
        replace(member, subscription=_another(member, rng, subscribe))
        if index in changed
        else member
        for index, member in enumerate(group.members)
    )
    return replace(group, members=members)


def resubscribe_all(group: Group, rng: Random) -> Group:
    """Add a topic to every member's subscription, or take one away: they stay equal."""
    subscription = group.members[0].subscription
    spare = [topic.name for topic in group.topics if topic.name not in subscription]
    if spare and (len(subscription) < 2 or rng.random() < 0.5):
        changed = (*subscription, rng.choice(spare))
    elif len(subscription) > 1:
        dropped = rng.choice(subscription)
        changed = tuple(topic for topic in subscription if topic != dropped)
    else:
        changed = subscription
    members = tuple(
        replace(member, subscription=tuple(sorted(changed))) for member in group.members
    )
    return replace(group, members=members)


def grow(group: Group, rng: Random) -> Group:
    """Give one topic that is consumed up to half as many partitions again, at least one."""
    subscribers = group.subscribers()
    index = rng.choice([i for i, topic in enumerate(group.topics) if subscribers.get(topic.name)])
    topic = group.topics[index]
    larger = topic.partitions + rng.randint(1, max(1, topic.partitions // 2))
    grown = replace(topic, partitions=larger)
    return replace(group, topics=(*group.topics[:index], grown, *group.topics[index + 1 :]))


def _another(member: Member, rng: Random, subscribe: Subscribe) -> tuple[str, ...]:
    """Draw until it differs, a few times: with one topic there is no other."""
    for _ in range(8):
        drawn = subscribe(rng)
        if drawn != member.subscription:
            return drawn
    return member.subscription
