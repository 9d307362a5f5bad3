"""Add members to a group, or remove members from it."""

from dataclasses import replace

from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Member
from kassay.reference.model.group_annotations import WeightSource
from kassay.reference.model.group_remarks import require_single_copies
from kassay.reference.model.ownership import current_partitions, rejoin
from kassay.reference.model.topic_partitions import Partitions


def check_sizing_weights(group: Group, *, allow_lag: bool) -> None:
    """Check that partitions have single members, and that weights are not lag unless allowed."""
    require_single_copies(group)
    if group.weight_source is WeightSource.LAG and not allow_lag:
        raise InputError(
            f"group {group.id!r}: the weights are lag, and lag is a backlog, not a load: it does "
            "not show how many members the traffic needs. Use rates (kassay import "
            "--bootstrap-server HOST:PORT --weights rate) or --weights FILE; --allow-lag (Python: "
            "allow_lag=True) shares the backlog among members"
        )


def with_valid_ownership(group: Group) -> Group:
    """Keep only the valid claims of each member.

    Otherwise, the removal of a member could make a claim of another member valid.
    """
    owned = {member: Partitions.of(tps) for member, tps in current_partitions(group).items()}
    return rejoin(group, owned, generation=0)


def with_capacity(group: Group, capacity: int | None) -> Group:
    """Set the capacity of every member that has no capacity."""
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
    """Create a copy of the member ``like``, or a member that subscribes to all consumed topics.

    Raises
    ------
    InputError
        If the member ``like`` does not exist, or if it is not given and members differ in speed.
    """
    if like is not None:
        model = next((member for member in group.members if member.id == like), None)
        if model is None:
            raise InputError(f"no member {like!r} in group {group.id!r}")
        return replace(model, owned=Partitions.of(()), instance_id=None)
    if not group.has_equal_speeds:
        raise InputError(
            f"group {group.id!r}: members differ in speed, and the speed of added members is not "
            "known; give --like MEMBER (Python: like), the member whose speed they get"
        )
    consumed = tuple(topic for topic, members in group.subscribers().items() if members)
    speed = group.members[0].speed if group.members else 1
    return Member(id="new", subscription=consumed, generation=0, capacity=capacity, speed=speed)


def resized(group: Group, number: int, added: Member) -> Group:
    """Add members to the group, or remove its last members, to reach a number of members."""
    taken = {member.id for member in group.members}
    members = list(group.members[:number])
    count = 0
    while len(members) < number:
        count += 1
        name = f"new-{count}"
        if name not in taken:
            members.append(replace(added, id=name))
    return replace(group, members=tuple(members))
