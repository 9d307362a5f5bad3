"""Notation for small groups and assignments."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kassay import Group, Member, Topic
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import rejoin


def group(topics: str, **members: str) -> Group:
    """Parse a group, such as ``group("t:4 u:9,5", a="t | t-0..2 u-1 @3", b="t u")``.

    A topic has a number of partitions or their weights, with commas. A member has topics, owned
    partitions after a bar, and their generation after ``@``. Underscores in member names become
    hyphens.
    """
    crew = tuple(_member(name.replace("_", "-"), text) for name, text in members.items())
    return Group(_topics(topics), crew)


def even_group(weights: Sequence[int], members: int, owners: Sequence[int] = ()) -> Group:
    """Return a group with one topic that all members consume; owner -1 means no owner."""
    owned: list[list[tuple[str, int]]] = [[] for _ in range(members)]
    for number, owner in enumerate(owners):
        if owner >= 0:
            owned[owner].append(("t", number))
    crew = (Member(f"c{at}", ("t",), owned=own, generation=1) for at, own in enumerate(owned))
    return Group((Topic("t", len(weights), weights=tuple(weights)),), tuple(crew))


def changed(group: Group, **members: dict[str, Any]) -> Group:
    """Return the group with changed fields of members, such as ``a={"speed": 2}``."""
    crew = (replace(one, **members.get(one.id, {})) for one in group.members)
    return replace(group, members=tuple(crew))


def lists(group: Group, assignor: str) -> dict[str, str]:
    """Assign and format each member's list as ``t-0 t-1``."""
    assignment = assign(group, assignor)
    return {member: " ".join(str(tp) for tp in assignment[member]) for member in assignment}


def after(group: Group, assignor: str, *, generation: int = 1) -> Group:
    """Return the group after all members have adopted the assignment."""
    return rejoin(group, assign(group, assignor), generation=generation)


def without(group: Group, *leaving: str) -> Group:
    """Return the group after members have left."""
    return replace(group, members=tuple(m for m in group.members if m.id not in leaving))


def joined(group: Group, **members: str) -> Group:
    """Return the group after members have joined."""
    new = tuple(_member(name, text) for name, text in members.items())
    return replace(group, members=(*group.members, *new))


def with_topics(group: Group, topics: str) -> Group:
    """Return the group with other topics."""
    return replace(group, topics=_topics(topics))


def with_racks(group: Group, racks: dict[str, list[str]], **members: str) -> Group:
    """Return the group with racks: one string of racks per partition and topic."""
    return replace(
        group,
        topics=tuple(
            replace(topic, racks=tuple(tuple(text.split()) for text in racks[topic.name]))
            if topic.name in racks
            else topic
            for topic in group.topics
        ),
        members=tuple(replace(member, rack=members.get(member.id)) for member in group.members),
    )


def with_instance_ids(group: Group, **ids: str) -> Group:
    """Return the group with instance ids, which make members static."""
    return changed(group, **{id: {"instance_id": instance} for id, instance in ids.items()})


def _topics(text: str) -> tuple[Topic, ...]:
    topics = []
    for item in text.split():
        name, _, size = item.partition(":")
        weights = tuple(map(int, size.split(","))) if "," in size else None
        topics.append(Topic(name, len(weights) if weights else int(size), weights=weights))
    return tuple(topics)


def _member(name: str, text: str) -> Member:
    text, _, generation = text.partition("@")
    subscription, _, claims = text.partition("|")
    owned = []
    for claim in claims.split():
        topic, _, numbers = claim.rpartition("-")
        first, _, last = numbers.partition("..")
        owned += [(topic, number) for number in range(int(first), int(last or first) + 1)]
    return Member(
        id=name,
        subscription=tuple(subscription.split()),
        owned=owned,
        generation=int(generation) if generation else (1 if claims else -1),
    )
