"""Groups with added or removed members."""

from dataclasses import replace

from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Member
from kassay.reference.model.ownership import current_partitions, rejoin
from kassay.reference.model.topic_partitions import Partitions


def with_valid_ownership(group: Group) -> Group:
    """Remove invalid claims from all members, so that removing members changes no owner."""
    owned = {member: Partitions.of(tps) for member, tps in current_partitions(group).items()}
    return rejoin(group, owned, generation=0)


def with_capacity(group: Group, capacity: int | None) -> Group:
    """Set the capacity of all members that have none."""
    if capacity is None:
        return group
    return replace(
        group,
        members=tuple(
            member if member.capacity is not None else replace(member, capacity=capacity)
            for member in group.members
        ),
    )


def new_member(group: Group, like: str | None, capacity: int | None) -> Member:
    """Return a new member: a copy of ``like``, or a member that subscribes to all used topics."""
    if like is not None:
        model = next((member for member in group.members if member.id == like), None)
        if model is None:
            raise InputError(f"no member {like!r} in group {group.id!r}")
        return replace(model, owned=Partitions.of(()), instance_id=None)
    consumed = tuple(topic for topic, members in group.subscribers().items() if members)
    return Member(id="new", subscription=consumed, generation=0, capacity=capacity)


def resized(group: Group, number: int, added: Member) -> Group:
    """Return the group with a number of members, after removing the last or adding members."""
    taken = {member.id for member in group.members}
    members = list(group.members[:number])
    count = 0
    while len(members) < number:
        count += 1
        name = f"new-{count}"
        if name not in taken:
            members.append(replace(added, id=name))
    return replace(group, members=tuple(members))
