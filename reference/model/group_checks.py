"""Checks of a group that is an argument of a documented function."""

import inspect
import warnings
from collections.abc import Iterator

from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import ownership


class GroupWarning(UserWarning):
    """A part of a group has no effect, such as the claim to a partition that does not exist."""


def require_group(group: object) -> None:
    """Raise UsageError if a value is not a group, and warn of its parts without effect.

    Only callers outside of this package get a warning. The commands print `parts_without_effect`.
    """
    if not isinstance(group, Group):
        raise UsageError(
            f"group must be a Group, got {type(group).__name__}; load group documents with "
            "kassay.load_group, captures with kassay.load_captures"
        )
    function = inspect.currentframe()
    for _ in range(2):
        function = None if function is None else function.f_back
    if function is not None and not str(function.f_globals["__name__"]).startswith("kassay."):
        for text in parts_without_effect(group):
            warnings.warn(text, GroupWarning, stacklevel=3)


def parts_without_effect(group: Group) -> Iterator[str]:
    """Yield one sentence per kind of parts without effect: subscriptions, and claims.

    Kafka's assignors ignore a subscription to a topic without metadata, and invalid claims.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> member = Member("a", ("t", "u"), owned=[("t", 7)])
    >>> for text in parts_without_effect(Group((Topic("t", 4),), (member,), id="g")):
    ...     print(text)
    group 'g': 'a' subscribes to topic 'u', which the group does not have
    group 'g': dropped the claim of 'a' to t-7: the partition does not exist
    """
    topics = group.topic_table()
    unknown = {
        subscription: [topic for topic in subscription if topic not in topics]
        for subscription in dict.fromkeys(member.subscription for member in group.members)
    }
    subscribed = [
        (member.id, topic) for member in group.members for topic in unknown[member.subscription]
    ]
    if subscribed:
        member, topic = subscribed[0]
        text = f"{member!r} subscribes to topic {topic!r}, which the group does not have"
        yield f"group {group.id!r}: {text}{_others(len(subscribed))}"
    owned = ownership(group)
    dropped = (*owned.stale, *owned.contested)
    if dropped:
        first = dropped[0]
        yield (
            f"group {group.id!r}: dropped the claim of {first.member!r} to "
            f"{first.topic}-{first.partition}: {first.reason}{_others(len(dropped))}"
        )


def _others(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""
