"""Determine the assignment from which the plan of a rebalancing group starts."""

from dataclasses import replace

from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import Protocol

_ADVICE = "describe the group again when its state is Stable"


class RebalancingGroupError(KassayError, LookupError):
    """Error: the source lacks data of a rebalancing group from which a plan starts."""


def planning_start(group: Group) -> Group:
    """Return the group with the partition owners from which a plan starts.

    The plan of a group that reconciles starts from its target assignment, which the broker
    completes without any action. The plans of other rebalancing groups start from the owners
    before the rebalance. A note in the group states the start.

    Raises
    ------
    RebalancingGroupError
        If the group is rebalancing, and its source shows no owners, or members without
        subscription and partitions.

    Examples
    --------
    >>> from kassay.reference.model.group_annotations import GroupStatus
    >>> planning_start(Group(topics=(), members=(), status=GroupStatus(state="Assigning")))
    Traceback (most recent call last):
    kassay...RebalancingGroupError: group None is rebalancing (Assigning): ...
    """
    if not group.status.is_rebalancing:
        return group
    where = f"group {group.id!r} is rebalancing ({group.status.state})"
    has_target = any(member.target is not None for member in group.members)
    started = tuple(
        member if member.target is None else replace(member, owned=member.target, target=None)
        for member in group.members
    )
    if not any(len(member.owned) for member in started):
        raise RebalancingGroupError(f"{where}: the source shows no owners; {_ADVICE}")
    unknown = [member.id for member in started if not member.subscription]
    if unknown:
        others = f" and of {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise RebalancingGroupError(
            f"{where}: the source does not show the subscription of {unknown[0]!r}{others}; "
            f"give --subscriptions, or {_ADVICE}"
        )
    if group.status.protocol is Protocol.CONSUMER and group.status.state == "Assigning":
        raise RebalancingGroupError(
            f"{where}: the broker has not computed its target assignment; {_ADVICE}"
        )
    note = "the plan starts from " + (
        "the target assignment, which the broker completes without any action"
        if has_target
        else "the owners before the rebalance"
    )
    return replace(group, members=started, notes=(*group.notes, f"{where}: {note}"))
