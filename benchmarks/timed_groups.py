"""Generators of the groups that the benchmarks use; equal arguments give equal groups."""

import random
from dataclasses import replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member, Topic


def equal_group(*, members: int, topics: int, partitions: int) -> Group:
    """Build a group without owned partitions; all members subscribe to all topics.

    ``partitions`` is the number of partitions per topic.

    Examples
    --------
    >>> equal_group(members=2, topics=3, partitions=4).partition_count
    12
    """
    names = _names("topic", topics)
    return _group("equal", dict.fromkeys(_names("member", members), names), names, partitions)


def mixed_group(*, members: int, topics: int, partitions: int, seed: int = 0) -> Group:
    """Build a group without owned partitions; members subscribe to a random half of the topics.

    Examples
    --------
    >>> group = mixed_group(members=3, topics=4, partitions=5)
    >>> [len(member.subscription) for member in group.members]
    [2, 2, 2]
    """
    rng = random.Random(seed)
    names = _names("topic", topics)
    half = max(1, topics // 2)
    subscriptions = {
        member: tuple(sorted(rng.sample(names, half))) for member in _names("member", members)
    }
    return _group("mixed", subscriptions, names, partitions)


def after_one_left(group: Group, assignment: Assignment) -> Group:
    """Make the assigned partitions owned partitions, then remove the last member.

    Examples
    --------
    >>> group = equal_group(members=2, topics=1, partitions=2)
    >>> left = after_one_left(
    ...     group, Assignment({"member-0": [("topic-0", 0)], "member-1": [("topic-0", 1)]})
    ... )
    >>> [(member.id, member.owned) for member in left.members]
    [('member-0', Partitions([topic-0-0]))]
    """
    remaining = tuple(
        replace(member, owned=assignment[member.id], generation=1) for member in group.members[:-1]
    )
    return replace(group, members=remaining, id=f"{group.id}, one leaves")


def _group(
    kind: str, subscriptions: dict[str, tuple[str, ...]], topics: tuple[str, ...], partitions: int
) -> Group:
    size = f"{len(subscriptions)} members x {len(topics)} topics x {partitions} partitions"
    return Group(
        topics=tuple(Topic(name=name, partitions=partitions) for name in topics),
        members=tuple(Member(id=id, subscription=names) for id, names in subscriptions.items()),
        id=f"{kind} {size}",
    )


def _names(kind: str, count: int) -> tuple[str, ...]:
    width = len(str(count - 1))
    return tuple(f"{kind}-{index:0{width}d}" for index in range(count))
