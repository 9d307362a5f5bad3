"""Text notation for small groups and assignments."""

from dataclasses import replace

from kassay import Group, Member, Topic
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import rejoin


def group(topics: str, **members: str) -> Group:
    """Parse a group, such as ``group("t:2", a="t | t-0 t-1 @3", b="t")``.

    A member has topics, owned partitions after a bar, and their generation after ``@``.
    Underscores in member names become hyphens.
    """
    return Group(
        topics=tuple(
            Topic(name=name, partitions=int(count))
            for name, count in (item.split(":") for item in topics.split())
        ),
        members=tuple(_member(name.replace("_", "-"), text) for name, text in members.items()),
    )


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
    counts = (item.split(":") for item in topics.split())
    return replace(
        group, topics=tuple(Topic(name=name, partitions=int(count)) for name, count in counts)
    )


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
    members = tuple(replace(member, instance_id=ids.get(member.id)) for member in group.members)
    return replace(group, members=members)


def _member(name: str, text: str) -> Member:
    text, _, generation = text.partition("@")
    subscription, _, claims = text.partition("|")
    pairs = (claim.rsplit("-", 1) for claim in claims.split())
    return Member(
        id=name,
        subscription=tuple(subscription.split()),
        owned=[(topic, int(number)) for topic, number in pairs],
        generation=int(generation) if generation else (1 if claims else -1),
    )
