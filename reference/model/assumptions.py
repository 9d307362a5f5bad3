"""Conditions of results for groups whose source does not show all subscriptions or racks.

The subscription of a member contains the topics of its partitions, and the topics of the group
contain the subscription. The two readings of a group are these two limits. If they are equal, the
subscription follows from the assignment, and an import does not mark it as assumed.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from kassay.reference.model.group import Group, Member
from kassay.reference.model.group_annotations import Assumed
from kassay.reference.model.joined_groups import SEPARATOR


class AssumedSubscriptions(StrEnum):
    """Assumption about the subscriptions of members if a source does not show them."""

    ASSIGNED = "assigned"  # the topics that the member has partitions of
    EQUAL = "equal"  # all topics of the group


_CLAUSES = {
    AssumedSubscriptions.EQUAL: "to every topic of the group",
    AssumedSubscriptions.ASSIGNED: "only to the topics of its partitions",
}
_PLURAL_CLAUSES = _CLAUSES | {
    AssumedSubscriptions.ASSIGNED: "only to the topics of their partitions"
}


def condition(group: Group, *, with_racks: bool = False) -> str | None:
    """Return the condition under which results for a group hold, or None without a condition.

    ``with_racks`` states that the results depend on the racks of members.

    Examples
    --------
    >>> from kassay.reference.model.group import Topic
    >>> member = Member(id="a", subscription=("t",), assumed=(Assumed.TOPICS,))
    >>> condition(Group(topics=(Topic(name="t", partitions=1),), members=(member,)))
    'every member subscribes to every topic of the group'
    """
    clauses = []
    assumed = [member for member in group.members if Assumed.TOPICS in member.assumed]
    if assumed:
        reading = _reading_of(group, assumed)
        subject, clause_of = _subject(group, assumed, reading)
        clauses.append(
            "the assumed subscriptions are correct"
            if reading is None
            else f"{subject} {clause_of[reading]}"
        )
    if with_racks and any(Assumed.RACK in member.assumed for member in group.members):
        clauses.append("the members have no racks")
    return " and ".join(clauses) or None


def other_reading(group: Group) -> Group | None:
    """Return the group with the other limit of the assumed subscriptions.

    The other limit of the topics of the partitions are all topics of the group, and vice versa.
    The result is None if both limits are equal or no subscription is assumed.
    """
    assumed = [member for member in group.members if Assumed.TOPICS in member.assumed]
    if not assumed:
        return None
    is_equal = _reading_of(group, assumed) is AssumedSubscriptions.EQUAL
    reading = AssumedSubscriptions.ASSIGNED if is_equal else AssumedSubscriptions.EQUAL
    other = with_assumption(group, reading)
    changed = any(
        set(old.subscription) != set(new.subscription)
        for old, new in zip(group.members, other.members, strict=True)
    )
    return other if changed else None


def with_assumption(group: Group, reading: AssumedSubscriptions) -> Group:
    """Return the group with another assumption about the subscriptions that are assumed."""
    return replace(
        group,
        members=tuple(
            replace(member, subscription=_topics(group, member, reading))
            if Assumed.TOPICS in member.assumed
            else member
            for member in group.members
        ),
    )


def _reading_of(group: Group, assumed: list[Member]) -> AssumedSubscriptions | None:
    """Return the limit to which all assumed subscriptions are equal, if any."""
    for reading in (AssumedSubscriptions.EQUAL, AssumedSubscriptions.ASSIGNED):
        if all(
            set(member.subscription) == set(_topics(group, member, reading)) for member in assumed
        ):
            return reading
    return None


def _topics(group: Group, member: Member, reading: AssumedSubscriptions) -> tuple[str, ...]:
    if reading is AssumedSubscriptions.EQUAL:
        return tuple(sorted(_topics_of_group(group, member)))
    return assigned_topics(member)


def assigned_topics(member: Member) -> tuple[str, ...]:
    """Return the topics of the owned partitions and of the target assignment, sorted."""
    return tuple(sorted({topic for topic, _ in (*member.owned, *(member.target or ()))}))


def _topics_of_group(group: Group, member: Member) -> Iterator[str]:
    """Yield all topics; in a joined group, those of the group of the member."""
    prefix, is_joined, _ = member.id.partition(SEPARATOR)
    for topic in group.topics:
        own, separator, _ = topic.name.partition(SEPARATOR)
        if not separator or not is_joined or own == prefix:
            yield topic.name


def _subject(
    group: Group, assumed: list[Member], reading: AssumedSubscriptions | None
) -> tuple[str, dict[AssumedSubscriptions, str]]:
    if reading is not None and all(
        set(member.subscription) == set(_topics(group, member, reading)) for member in group.members
    ):
        return "every member subscribes", _CLAUSES
    if len(assumed) == 1:
        return f"member {assumed[0].id!r} subscribes", _CLAUSES
    return f"the {len(assumed)} members without a known subscription subscribe", _PLURAL_CLAUSES
