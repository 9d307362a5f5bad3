"""The smallest group on which something still goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions, TopicPartition

_Item = TypeVar("_Item")
Predicate = Callable[[Group], bool]

_PLAIN = Member(id="", subscription=())
_DETAILS = (
    "rack",
    "instance_id",
    "user_data",
    "sub_generation",
    "protocol_version",
    "capacity",
    "streams",
    "generation",
)


def shrink(group: Group, fails: Predicate, *, attempts: int = 5_000) -> Group:
    """Take away from a group whatever can go while ``fails`` still holds.

    Members, topics, subscriptions, claims, partitions and details are tried in turn until
    none of them can go: what is left fails, and no single step makes it smaller.

    Parameters
    ----------
    group
        A group on which ``fails`` holds.
    fails
        What must go on to hold.
    attempts
        Most groups to try.

    Raises
    ------
    ValueError
        If ``fails`` does not hold on ``group``.
    """
    if not fails(group):
        raise ValueError("nothing to shrink: the group does not fail")
    budget = attempts
    while True:
        for smaller in smaller_groups(group):
            budget -= 1
            if budget < 0:
                return group
            if fails(smaller):
                group = smaller
                break
        else:
            return group


def smaller_groups(group: Group) -> Iterator[Group]:
    """Yield groups one step smaller, those with most gone first."""
    yield from _without_members(group)
    yield from _without_members_and_theirs(group)
    yield from _without_topics(group)
    yield from _fewer_partitions(group)
    yield from _without_one_partition(group)
    for index, member in enumerate(group.members):
        for changed in _smaller_members(member):
            members = (*group.members[:index], changed, *group.members[index + 1 :])
            yield replace(group, members=members)
    for index, topic in enumerate(group.topics):
        for plainer in _plainer_topics(topic):
            yield _with_topic(group, index, plainer)


def _chunks(length: int) -> Iterator[tuple[int, int]]:
    """Ranges to leave out: halves, then quarters, down to single ones."""
    size = length
    while size >= 1:
        for start in range(0, length, size):
            yield start, min(start + size, length)
        size //= 2


def _without_members(group: Group) -> Iterator[Group]:
    for start, end in _chunks(len(group.members)):
        yield replace(group, members=group.members[:start] + group.members[end:])


def _without_members_and_theirs(group: Group) -> Iterator[Group]:
    """Leave a member out with all that it owns, so that the others keep their share."""
    for index, member in enumerate(group.members):
        rest = replace(group, members=group.members[:index] + group.members[index + 1 :])
        counts = {topic.name: topic.partitions for topic in group.topics}
        gone = [tp for tp in member.owned if tp.partition < counts.get(tp.topic, 0)]
        for tp in sorted(set(gone), reverse=True):
            rest = _without_partition(rest, tp)
        if gone:
            yield rest


def _without_one_partition(group: Group) -> Iterator[Group]:
    for topic in group.topics:
        for number in range(topic.partitions):
            yield _without_partition(group, TopicPartition(topic.name, number))


def _without_partition(group: Group, gone: TopicPartition) -> Group:
    """Leave one partition out; those after it take the numbers before theirs."""

    def left(column: tuple[_Item, ...] | None) -> tuple[_Item, ...] | None:
        if column is None:
            return None
        return column[: gone.partition] + column[gone.partition + 1 :]

    topics = tuple(
        replace(
            topic,
            partitions=topic.partitions - 1,
            racks=left(topic.racks),
            weights=left(topic.weights),
        )
        if topic.name == gone.topic
        else topic
        for topic in group.topics
    )
    members = tuple(
        replace(
            member,
            owned=Partitions.of(
                (tp.topic, tp.partition - (tp.topic == gone.topic and tp.partition > gone[1]))
                for tp in member.owned
                if tp != gone
            ),
        )
        for member in group.members
    )
    return replace(group, topics=topics, members=members)


def _without_topics(group: Group) -> Iterator[Group]:
    for start, end in _chunks(len(group.topics)):
        gone = {topic.name for topic in group.topics[start:end]}
        members = tuple(
            replace(
                member,
                subscription=tuple(t for t in member.subscription if t not in gone),
                owned=Partitions.of(tp for tp in member.owned if tp.topic not in gone),
            )
            for member in group.members
        )
        topics = group.topics[:start] + group.topics[end:]
        yield replace(group, topics=topics, members=members)
        yield replace(group, topics=topics)


def _fewer_partitions(group: Group) -> Iterator[Group]:
    for index, topic in enumerate(group.topics):
        for count in sorted({0, topic.partitions // 2, topic.partitions - 1}):
            if 0 <= count < topic.partitions:
                racks = None if topic.racks is None else topic.racks[:count]
                fewer = replace(topic, partitions=count, racks=racks, weights=None)
                yield _with_topic(_without_claims_beyond(group, fewer), index, fewer)
                yield _with_topic(group, index, fewer)


def _without_claims_beyond(group: Group, topic: Topic) -> Group:
    members = tuple(
        replace(
            member,
            owned=Partitions.of(
                tp for tp in member.owned if tp.topic != topic.name or tp[1] < topic.partitions
            ),
        )
        for member in group.members
    )
    return replace(group, members=members)


def _with_topic(group: Group, index: int, topic: Topic) -> Group:
    return replace(group, topics=(*group.topics[:index], topic, *group.topics[index + 1 :]))


def _plainer_topics(topic: Topic) -> Iterator[Topic]:
    if topic.weights is not None:
        yield replace(topic, weights=None)
    if topic.racks is not None:
        yield replace(topic, racks=None)
        for index, racks in enumerate(topic.racks):
            for start, end in _chunks(len(racks)):
                fewer = racks[:start] + racks[end:]
                yield replace(topic, racks=(*topic.racks[:index], fewer, *topic.racks[index + 1 :]))
    if topic.id is not None:
        yield replace(topic, id=None)


def _smaller_members(member: Member) -> Iterator[Member]:
    for start, end in _chunks(len(member.subscription)):
        yield replace(member, subscription=member.subscription[:start] + member.subscription[end:])
    owned = member.owned.to_list()
    for start, end in _chunks(len(owned)):
        yield replace(member, owned=Partitions.of(owned[:start] + owned[end:]))
    for name in _DETAILS:
        plain = getattr(_PLAIN, name)
        if getattr(member, name) != plain:
            yield replace(member, **{name: plain})
