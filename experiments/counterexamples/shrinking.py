"""Shrink a group: remove members, partitions and other parts while a condition holds."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import NamedTuple, TypeVar

from kassay.reference.model.assignment import ownership
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions, TopicPartition

_Item = TypeVar("_Item")

_DEFAULT_MEMBER = Member(id="", subscription=())


class GroupSize(NamedTuple):
    """Size of a group. Sorting puts smaller groups first."""

    members: int
    partitions: int
    topics: int
    owned: int
    subscriptions: int


def size_of(group: Group) -> GroupSize:
    """Count the members, partitions, topics, owned partitions and subscriptions of a group."""
    return GroupSize(
        members=len(group.members),
        partitions=group.partition_count,
        topics=len(group.topics),
        owned=ownership(group).owned_count,
        subscriptions=sum(len(member.subscription) for member in group.members),
    )


def shrink(
    found: _Item,
    fails: Callable[[_Item], bool],
    smaller: Callable[[_Item], Iterator[_Item]],
    *,
    attempts: int,
) -> _Item:
    """Remove parts of a group or document step by step, as long as ``fails`` is True for the rest.

    ``fails`` is True for ``found``. ``smaller`` yields copies of a group or document without one
    part.
    """
    while True:
        for candidate in smaller(found):
            attempts -= 1
            if attempts < 0:
                return found
            if fails(candidate):
                found = candidate
                break
        else:
            return found


def smaller_groups(group: Group) -> Iterator[Group]:
    """Yield copies of a group, each without one part; removals of large parts come first."""
    for members in _shorter(group.members):
        yield replace(group, members=members)
    yield from _without_member_and_owned(group)
    yield from _without_topics(group)
    yield from _with_fewer_partitions(group)
    for topic in group.topics:
        for number in range(topic.partitions):
            yield _without_partition(group, TopicPartition(topic.name, number))
    for index, member in enumerate(group.members):
        for smaller in _smaller_members(member):
            members = (*group.members[:index], smaller, *group.members[index + 1 :])
            yield replace(group, members=members)
    for index, topic in enumerate(group.topics):
        for simpler in _simpler_topics(topic):
            yield _with_topic(group, index, simpler)


def _ranges(length: int) -> Iterator[tuple[int, int]]:
    """Yield index ranges to remove: all items, halves, quarters, down to single items."""
    size = length
    while size >= 1:
        for start in range(0, length, size):
            yield start, min(start + size, length)
        size //= 2


def _shorter(items: tuple[_Item, ...]) -> Iterator[tuple[_Item, ...]]:
    """Yield the items without each range of `_ranges`."""
    for start, end in _ranges(len(items)):
        yield items[:start] + items[end:]


def _map_claims(group: Group, change: Callable[[TopicPartition], tuple[str, int] | None]) -> Group:
    """Replace each claimed partition by the result of ``change``; None removes the claim."""
    members = tuple(
        replace(
            member,
            owned=Partitions.of(claim for claim in map(change, member.owned) if claim is not None),
        )
        for member in group.members
    )
    return replace(group, members=members)


def _without_member_and_owned(group: Group) -> Iterator[Group]:
    """Yield copies of a group, each without one member and that member's owned partitions."""
    partitions = {topic.name: topic.partitions for topic in group.topics}
    for index, member in enumerate(group.members):
        owned = {tp for tp in member.owned if tp.partition < partitions.get(tp.topic, 0)}
        smaller = replace(group, members=group.members[:index] + group.members[index + 1 :])
        for tp in sorted(owned, reverse=True):
            smaller = _without_partition(smaller, tp)
        if owned:
            yield smaller


def _without_partition(group: Group, removed: TopicPartition) -> Group:
    """Remove a partition, and renumber the later partitions of its topic."""

    def remaining(column: tuple[_Item, ...] | None) -> tuple[_Item, ...] | None:
        if column is None:
            return None
        return column[: removed.partition] + column[removed.partition + 1 :]

    def renumbered(tp: TopicPartition) -> tuple[str, int] | None:
        if tp == removed:
            return None
        return tp.topic, tp.partition - (tp.topic == removed.topic and tp > removed)

    topics = tuple(
        replace(
            topic,
            partitions=topic.partitions - 1,
            racks=remaining(topic.racks),
            weights=remaining(topic.weights),
        )
        if topic.name == removed.topic
        else topic
        for topic in group.topics
    )
    return _map_claims(replace(group, topics=topics), renumbered)


def _without_topics(group: Group) -> Iterator[Group]:
    for start, end in _ranges(len(group.topics)):
        removed = frozenset(topic.name for topic in group.topics[start:end])
        fewer = replace(group, topics=group.topics[:start] + group.topics[end:])
        members = tuple(
            replace(
                member,
                subscription=tuple(topic for topic in member.subscription if topic not in removed),
                owned=Partitions.of(tp for tp in member.owned if tp.topic not in removed),
            )
            for member in group.members
        )
        yield replace(fewer, members=members)
        yield fewer


def _with_fewer_partitions(group: Group) -> Iterator[Group]:
    for index, topic in enumerate(group.topics):
        for count in sorted({0, topic.partitions // 2, topic.partitions - 1}):
            if 0 <= count < topic.partitions:
                racks = None if topic.racks is None else topic.racks[:count]
                fewer = replace(topic, partitions=count, racks=racks, weights=None)
                smaller = _with_topic(group, index, fewer)
                yield _map_claims(smaller, partial(_claim_unless_removed, fewer))
                yield smaller


def _claim_unless_removed(topic: Topic, tp: TopicPartition) -> TopicPartition | None:
    return None if tp.topic == topic.name and tp.partition >= topic.partitions else tp


def _with_topic(group: Group, index: int, topic: Topic) -> Group:
    return replace(group, topics=(*group.topics[:index], topic, *group.topics[index + 1 :]))


def _simpler_topics(topic: Topic) -> Iterator[Topic]:
    if topic.weights is not None:
        yield replace(topic, weights=None)
    if topic.racks is not None:
        yield replace(topic, racks=None)
        for index, racks in enumerate(topic.racks):
            for fewer in _shorter(racks):
                yield replace(topic, racks=(*topic.racks[:index], fewer, *topic.racks[index + 1 :]))
    if topic.id is not None:
        yield replace(topic, id=None)


def _smaller_members(member: Member) -> Iterator[Member]:
    for subscription in _shorter(member.subscription):
        yield replace(member, subscription=subscription)
    for owned in _shorter(tuple(member.owned.to_list())):
        yield replace(member, owned=Partitions.of(owned))
    for name in (field.name for field in fields(Member)):
        default = getattr(_DEFAULT_MEMBER, name)
        is_optional = name not in ("id", "subscription", "owned")
        if is_optional and getattr(member, name) != default:
            yield replace(member, **{name: default})
