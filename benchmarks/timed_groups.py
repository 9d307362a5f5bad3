"""The groups that are timed, seeded so that every run times the same ones."""

import random
from dataclasses import replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member, Topic


def equal_group(*, members: int, topics: int, partitions: int) -> Group:
    """Build a fresh group whose members all subscribe to every topic.

    Parameters
    ----------
    members, topics
        How many.
    partitions
        Partitions of each topic.

    Examples
    --------
    >>> equal_group(members=2, topics=3, partitions=4).partition_count
    12
    """
    names = _names("topic", topics)
    return Group(
        topics=_topics(names, partitions),
        members=tuple(Member(id=name, subscription=names) for name in _names("member", members)),
        id=f"equal {members} members x {topics} topics x {partitions} partitions",
    )


def mixed_group(*, members: int, topics: int, partitions: int, seed: int = 0) -> Group:
    """Build a fresh group whose members each subscribe to a random half of the topics.

    Parameters
    ----------
    members, topics
        How many.
    partitions
        Partitions of each topic.
    seed
        Seed of the subscriptions.

    Examples
    --------
    >>> group = mixed_group(members=3, topics=4, partitions=5)
    >>> [len(member.subscription) for member in group.members]
    [2, 2, 2]
    """
    rng = random.Random(seed)
    names = _names("topic", topics)
    half = max(1, topics // 2)
    return Group(
        topics=_topics(names, partitions),
        members=tuple(
            Member(id=name, subscription=tuple(sorted(rng.sample(names, half))))
            for name in _names("member", members)
        ),
        id=f"mixed {members} members x {topics} topics x {partitions} partitions",
    )


def after_one_left(group: Group, assignment: Assignment) -> Group:
    """Let the members own what was assigned to them, and the last of them leave.

    Examples
    --------
    >>> group = equal_group(members=2, topics=1, partitions=2)
    >>> left = after_one_left(
    ...     group, Assignment({"member-0": [("topic-0", 0)], "member-1": [("topic-0", 1)]})
    ... )
    >>> [(member.id, member.owned) for member in left.members]
    [('member-0', Partitions([topic-0-0]))]
    """
    staying = tuple(
        replace(member, owned=assignment[member.id], generation=1) for member in group.members[:-1]
    )
    return replace(group, members=staying, id=f"{group.id}, one leaves")


def _topics(names: tuple[str, ...], partitions: int) -> tuple[Topic, ...]:
    return tuple(Topic(name=name, partitions=partitions) for name in names)


def _names(kind: str, count: int) -> tuple[str, ...]:
    width = len(str(count - 1))
    return tuple(f"{kind}-{index:0{width}d}" for index in range(count))
