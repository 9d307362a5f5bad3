"""Events that cause a rebalance: members join, leave or resubscribe, or topics grow."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from random import Random

from kassay.reference.model.group import NO_GENERATION, Group, Member

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
    """Change the subscriptions of random members, at most a quarter of all members.

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
