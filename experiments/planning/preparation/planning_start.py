"""Determine whether a group can be planned."""

from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import Protocol
from kassay.reference.model.group_remarks import is_rebalancing, streams_caveat

_ADVICE = "describe the group again when its state is Stable"


class UnplannableGroupError(KassayError, LookupError):
    """Error: a group has no plan of partitions, or its source lacks data that a plan needs."""


class StreamsApplicationError(UnplannableGroupError):
    """Error: the group is a Kafka Streams application."""


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
    >>> from kassay.reference.model.group import GroupStatus
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
