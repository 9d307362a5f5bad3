"""What may become of a group: one function a change, each from a group to a group.

Every change starts from the group as it is settled today: each member owns what it has a
claim to that holds. What a change cannot be made to is an `InputError` that names
it; nothing is guessed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Member, Topic
from kassay.solver.sizing.resized_groups import new_member, resized, with_capacity

Change = Callable[[Group], Group]
"""A group as it would be."""


def add_members(group: Group, count: int, *, like: str | None = None) -> Group:
    """Add members, or take the last ones away where ``count`` is negative.

    Parameters
    ----------
    group
        The group.
    count
        How many more.
    like
        The member whose subscription, rack and capacity they have. By default they
        subscribe to every topic that is consumed today.

    Raises
    ------
    InvalidGroupError
        If fewer than no members would be left, or ``like`` is not in the group.

    Examples
    --------
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),),
    ...     members=(Member(id="a", subscription=("t",)),),
    ... )
    >>> [member.id for member in add_members(group, 2).members]
    ['a', 'new-1', 'new-2']
    """
    number = len(group.members) + count
    if number < 0:
        raise InputError(
            f"{-count} members cannot leave group {group.id!r}, which has {len(group.members)}"
        )
    return resized(group, number, new_member(group, like, None))


def remove_members(group: Group, members: Iterable[str]) -> Group:
    """Take members away; what they own is without an owner then."""
    leavers = set(members)
    for name in sorted(leavers):
        _member(group, name)
    return replace(group, members=tuple(m for m in group.members if m.id not in leavers))


def repartition(group: Group, topic: str, count: int) -> Group:
    """Give a topic more partitions; each new one weighs what the old ones weigh on average.

    Raises
    ------
    InvalidGroupError
        If there is no such topic, or it has more partitions: Kafka takes none away.
    """
    old = _topic(group, topic)
    if count < old.partitions:
        raise InputError(
            f"topic {topic!r} has {old.partitions} partitions and cannot have {count}: "
            "Kafka takes none away"
        )
    further = count - old.partitions
    weights, racks = old.weights, old.racks
    if weights is not None:
        mean = -(-sum(weights) // max(1, old.partitions))
        weights = (*weights, *[mean] * further)
    if racks is not None:
        racks = (*racks, *[() for _ in range(further)])
    new = replace(old, partitions=count, weights=weights, racks=racks)
    return replace(group, topics=tuple(new if one is old else one for one in group.topics))


def subscribe(group: Group, member: str, topic: str) -> Group:
    """Have a member subscribe to one more topic."""
    old = _member(group, member)
    _topic(group, topic)
    if topic in old.subscription:
        raise InputError(f"member {member!r} subscribes to {topic!r} already")
    new = replace(old, subscription=(*old.subscription, topic))
    return replace(group, members=tuple(new if one is old else one for one in group.members))


def grow(group: Group, factor: Fraction | float | str) -> Group:
    """Multiply every weight, rounding up to whole units.

    Raises
    ------
    InvalidGroupError
        If partitions have no weights: all weigh 1 then, and that is no traffic to grow.

    Examples
    --------
    >>> topic = Topic(name="t", partitions=2, weights=(3, 4))
    >>> grow(Group(topics=(topic,), members=()), "1.5").topics[0].weights
    (5, 6)
    """
    share = factor if isinstance(factor, Fraction) else Fraction(str(factor))
    if share < 0:
        raise InputError(f"growth must be 0 or more, got {factor!r}")
    if not any(topic.weights is not None for topic in group.topics):
        raise InputError(
            f"group {group.id!r} has no weights that could grow: give some with --weights"
        )
    return replace(
        group,
        topics=tuple(
            replace(
                topic,
                weights=tuple(
                    -(-topic.weight(n) * share.numerator // share.denominator)
                    for n in range(topic.partitions)
                ),
            )
            for topic in group.topics
        ),
    )


def reweigh(group: Group, weights: Mapping[str, Sequence[int]]) -> Group:
    """Weigh the partitions by a table: topic to one integer a partition.

    The table may have topics of other groups.

    Raises
    ------
    InvalidGroupError
        If a topic of the group is not in the table, or its numbers there are not as many
        as its partitions.
    """
    missing = [topic.name for topic in group.topics if topic.name not in weights]
    if missing:
        raise InputError(f"no weights for topic {missing[0]!r}")
    return replace(
        group,
        topics=tuple(replace(topic, weights=tuple(weights[topic.name])) for topic in group.topics),
    )


def limit_members(group: Group, capacity: int) -> Group:
    """Give a capacity to the members that name none."""
    return with_capacity(group, capacity)


def _topic(group: Group, name: str) -> Topic:
    topic = group.topic_table().get(name)
    if topic is None:
        raise InputError(f"no topic {name!r} in group {group.id!r}")
    return topic


def _member(group: Group, name: str) -> Member:
    member = group.member_table().get(name)
    if member is None:
        raise InputError(f"no member {name!r} in group {group.id!r}")
    return member
