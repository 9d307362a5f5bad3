"""Determine whether a group can be planned, and the assignment from which a plan starts."""

from dataclasses import dataclass

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import Protocol
from kassay.reference.model.metrics import Measure, measures, member_units, movement
from kassay.reference.model.ownership import rejoin

_STREAMS_ASSIGNOR = "stream"
_STREAMS_LIBRARY = "kafka-streams"
_ADVICE = "describe the group again when its state is Stable"


class UnplannableGroupError(KassayError, LookupError):
    """Error: a group has no plan of partitions, or its source lacks data that a plan needs."""


class StreamsApplicationError(UnplannableGroupError):
    """Error: the group is a Kafka Streams application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAssignment:
    """Target assignment of a group that reconciles: its maximum load and the pending moves."""

    makespan: int
    moves: int

    def record(self) -> dict[str, int]:
        """Return the values as a JSON object."""
        return {"makespan": self.makespan, "moves": self.moves}


def is_rebalancing(group: Group) -> bool:
    """Return whether the owners of partitions change: by the state or by a target assignment."""
    return group.status.is_rebalancing or has_target(group)


def has_target(group: Group) -> bool:
    """Return whether the target assignment of a member differs from its partitions."""
    return any(member.target is not None for member in group.members)


def target_assignment(group: Group) -> TargetAssignment | None:
    """Return the target assignment that the broker completes, or None if no member has one."""
    if not has_target(group):
        return None
    target = Assignment(
        {one.id: one.owned if one.target is None else one.target for one in group.members}
    )
    after = rejoin(group, target)
    return TargetAssignment(
        makespan=measures(after, target)[Measure.MAKESPAN], moves=movement(group, target)
    )


def rebalance_caveat(group: Group) -> str | None:
    """Describe the rebalance of a group as a sentence, or return None if the group is stable."""
    if not is_rebalancing(group):
        return None
    target = target_assignment(group)
    if target is not None:
        return (
            "The group is reconciling: the broker completes its target assignment without any "
            f"action, with {target.moves:,} {'move' if target.moves == 1 else 'moves'} and a "
            f"maximum load of {member_units(group).shown(target.makespan):,}. Results start from "
            "the partitions that the members own now."
        )
    return (
        f"The group is rebalancing ({group.status.state}): results start from the owners before "
        "the rebalance."
    )


def streams_caveat(group: Group) -> str | None:
    """State that a group is a Kafka Streams application, or return None for other groups."""
    libraries = {member.client.library for member in group.members}
    if group.status.assignor != _STREAMS_ASSIGNOR and _STREAMS_LIBRARY not in libraries:
        return None
    return (
        "The group is a Kafka Streams application (classic protocol, assignor 'stream'): Kafka "
        "assigns tasks, so single partitions cannot move and a plan of partitions does not apply."
    )


def check_planning_start(group: Group) -> None:
    """Check that the group has consumers, and that a plan can start from the current owners.

    Raises
    ------
    UnplannableGroupError
        If the group is rebalancing, and its source shows no owners, or members without
        subscription and partitions.
    StreamsApplicationError
        If the group is a Kafka Streams application.

    Examples
    --------
    >>> from kassay.reference.model.group_annotations import GroupStatus
    >>> check_planning_start(Group(topics=(), members=(), status=GroupStatus(state="Assigning")))
    Traceback (most recent call last):
    kassay...UnplannableGroupError: group None is rebalancing (Assigning): ...
    """
    caveat = streams_caveat(group)
    if caveat is not None:
        raise StreamsApplicationError(f"group {group.id!r}: {caveat}")
    if not is_rebalancing(group):
        return
    where = f"group {group.id!r} is rebalancing ({group.status.state})"
    if not any(len(member.owned) or member.target for member in group.members):
        raise UnplannableGroupError(f"{where}: the source shows no owners; {_ADVICE}")
    unknown = [member.id for member in group.members if not member.subscription]
    if unknown:
        others = f" and of {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise UnplannableGroupError(
            f"{where}: the source does not show the subscription of {unknown[0]!r}{others}; "
            f"give --subscriptions, or {_ADVICE}"
        )
    if group.status.protocol is Protocol.CONSUMER and group.status.state == "Assigning":
        raise UnplannableGroupError(
            f"{where}: the broker has not computed its target assignment; {_ADVICE}"
        )
