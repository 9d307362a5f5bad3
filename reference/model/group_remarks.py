"""Remarks on groups: ignored claims and subscriptions, assumptions and rebalances.

Results for a group with assumed subscriptions hold under a condition. The subscription of a member
contains the topics of its partitions, and the topics of the group contain the subscription. The two
readings of a group are these two limits. If they are equal, the subscription follows from the
assignment, and an import does not mark it as assumed.
"""

import inspect
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from kassay.reference.model.assignment import Assignment, movement, ownership, rejoin
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import ASSUMED, Assumed, Group, Member
from kassay.reference.model.joined_groups import SEPARATOR
from kassay.reference.model.load_metrics import Measure, measures, member_units


class GroupWarning(UserWarning):
    """Warning: a claim or subscription of a group has no effect."""


def require_group(group: object) -> None:
    """Raise UsageError if a value is not a group. Warn of claims without effect.

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


def require_single_copies(group: Group) -> None:
    """Raise UsageError if partitions can have several members, as in share groups."""
    if group.has_copies:
        raise UsageError(
            f"{group.label}: this function supports neither partitions with several members "
            "(share groups) nor stateful topics and standbys (Streams); use kassay.solve"
        )


def parts_without_effect(group: Group) -> Iterator[str]:
    """Yield sentences on the subscriptions and claims in a group that have no effect.

    Kafka's assignors ignore a subscription to a topic without metadata, and invalid claims.
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
        yield f"{group.label}: {text}{_others(len(subscribed))}"
    owned = ownership(group)
    dropped = (*owned.stale, *owned.contested)
    if dropped:
        first = dropped[0]
        yield (
            f"{group.label}: dropped the claim of {first.member!r} to "
            f"{first.topic}-{first.partition}: {first.reason}{_others(len(dropped))}"
        )


def _others(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""


class AssumedSubscriptions(StrEnum):
    """Assumption about the subscriptions of members if a source does not show them."""

    ASSIGNED = "assigned"  # the topics that the member has partitions of
    EQUAL = "equal"  # all topics of the group


def condition(group: Group, *, with_racks: bool = False) -> str | None:
    """Return the assumptions on which results for a group depend; None without assumptions.

    ``with_racks`` states that the results depend on the racks of members.
    """
    clauses = [one.removeprefix(ASSUMED) for one in group.notes if one.startswith(ASSUMED)]
    assumed = [member for member in group.members if Assumed.TOPICS in member.assumed]
    if assumed:
        reading = _reading_of(group, assumed)
        clauses.append(
            "the assumed subscriptions are correct"
            if reading is None
            else _clause(group, assumed, reading)
        )
    if with_racks and any(Assumed.RACK in member.assumed for member in group.members):
        clauses.append("the members have no racks")
    return " and ".join(clauses) or None


def other_reading(group: Group) -> Group | None:
    """Return the group with the other assumption about its unknown subscriptions, or None.

    One assumption is the topics of the member's partitions, the other one all topics of the group.
    Return None if both give the same subscriptions, or if no subscription is assumed.
    """
    assumed = [member for member in group.members if Assumed.TOPICS in member.assumed]
    if not assumed:
        return None
    is_equal = _reading_of(group, assumed) is AssumedSubscriptions.EQUAL
    reading = AssumedSubscriptions.ASSIGNED if is_equal else AssumedSubscriptions.EQUAL
    return None if _all_equal(group, assumed, reading) else with_assumption(group, reading)


def with_assumption(group: Group, reading: AssumedSubscriptions) -> Group:
    """Replace the assumed subscriptions of a group by those of an assumption."""
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
    """Return the assumption that gives all assumed subscriptions; None if neither does."""
    for reading in (AssumedSubscriptions.EQUAL, AssumedSubscriptions.ASSIGNED):
        if _all_equal(group, assumed, reading):
            return reading
    return None


def _all_equal(group: Group, members: Iterable[Member], reading: AssumedSubscriptions) -> bool:
    return all(set(one.subscription) == set(_topics(group, one, reading)) for one in members)


def _topics(group: Group, member: Member, reading: AssumedSubscriptions) -> tuple[str, ...]:
    if reading is AssumedSubscriptions.EQUAL:
        return tuple(sorted(_topics_of_group(group, member)))
    return tuple(sorted({topic for topic, _ in (*member.owned, *(member.target or ()))}))


def _topics_of_group(group: Group, member: Member) -> Iterator[str]:
    """Yield the topics of a member's own group, also within a joined group."""
    prefix, is_joined, _ = member.id.partition(SEPARATOR)
    for topic in group.topics:
        own, separator, _ = topic.name.partition(SEPARATOR)
        if not separator or not is_joined or own == prefix:
            yield topic.name


def _clause(group: Group, assumed: list[Member], reading: AssumedSubscriptions) -> str:
    subject, owner = "every member subscribes", "its"
    if not _all_equal(group, group.members, reading):
        subject = f"member {assumed[0].id!r} subscribes"
        if len(assumed) > 1:
            subject = f"the {len(assumed)} members without a known subscription subscribe"
            owner = "their"
    if reading is AssumedSubscriptions.EQUAL:
        return f"{subject} to every topic of the group"
    return f"{subject} only to the topics of {owner} partitions"


class TargetAssignment(NamedTuple):
    """Maximum load and number of moves of a group's target assignment."""

    makespan: int
    moves: int


NO_IDLE_MEMBER = f"{ASSUMED}every member has partitions"
HIDDEN_MEMBERS = f"{ASSUMED}members that the source counts but does not show get no partitions"
"""Note about members without partitions that the source of a group does not show."""


def hides_idle_members(group: Group) -> bool:
    """Return whether the source of a group can omit members without partitions."""
    return any(note.startswith((NO_IDLE_MEMBER, HIDDEN_MEMBERS)) for note in group.notes)


_WITHOUT_EFFECT = ("generation is not shown", "the capture shows lag")
"""Starts of notes about values that change neither a number nor a condition."""
_SHOWN_NOTES = 3


def shown_notes(group: Group) -> list[str]:
    """Return three notes that affect results, without assumptions, and the number of others."""
    notes = [note for note in group.notes if not note.startswith((*_WITHOUT_EFFECT, ASSUMED))]
    more = len(notes) - _SHOWN_NOTES
    return notes[:_SHOWN_NOTES] + ([f"{more} more notes (kassay import)"] if more > 0 else [])


def is_rebalancing(group: Group) -> bool:
    """Return whether the state or a target assignment shows that a rebalance is in progress."""
    return group.status.is_rebalancing or has_target(group)


def has_target(group: Group) -> bool:
    """Return whether the target assignment of a member differs from its partitions."""
    return any(member.target is not None for member in group.members)


def target_assignment(group: Group) -> TargetAssignment | None:
    """Return the target assignment of a group, or None if no member has a target."""
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
    """Describe the rebalance in progress and its effect on results; return None without one."""
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


_PER_TOPIC = ("range", "server-range")
_BALANCED = (*_PER_TOPIC, "roundrobin", "sticky", "cooperative-sticky", "uniform")
"""Assignors with which the numbers of partitions of members with equal subscriptions differ by at
most one: of each topic, or in total."""


def assignor_caveat(group: Group) -> str | None:
    """Return why the assignor cannot have made the current assignment; None if it may have."""
    name = group.status.registered_assignor
    is_partial = any(note.startswith(ASSUMED + "the partitions") for note in group.notes)
    if name not in _BALANCED or is_rebalancing(group) or is_partial or len(group.members) < 2:
        return None
    shown = {
        frozenset(one.subscription) for one in group.members if Assumed.TOPICS not in one.assumed
    }
    if len(shown) > 1:
        return None
    counts = {member.id: Counter(topic for topic, _ in member.owned) for member in group.members}
    topics = [topic for topic in group.topics if all(topic.name in one for one in shown)]
    parts = [[topic] for topic in topics] if name in _PER_TOPIC else [topics]
    for part in parts:
        loads = {id: sum(count[topic.name] for topic in part) for id, count in counts.items()}
        most, least = max(loads, key=loads.__getitem__), min(loads, key=loads.__getitem__)
        if loads[most] - loads[least] > 1:
            low, rest = divmod(sum(topic.partitions for topic in part), len(counts))
            usual = (
                f"{low} or {low + 1} partitions" if rest else f"{low} partition{'s'[low == 1 :]}"
            )
            of_topic = f" of {part[0].name}" if name in _PER_TOPIC else ""
            held = f"{most!r} has {loads[most]} and {least!r} {loads[least]}"
            rule = f"{group.status.assignor} gives members {usual}{of_topic}"
            return f"With equal subscriptions, {rule}, but {held}: {_REASONS[bool(shown)]}."
    return None


_REASONS = {
    False: "the members have other subscriptions (such as a pattern that matches fewer topics, or "
    "topics that a member may not describe), or a rebalance is pending",
    True: "a rebalance is pending, or a pattern or a missing permission hides topics from a member",
}


def streams_caveat(group: Group) -> str | None:
    """Return why no plan applies to a Kafka Streams application; None for other groups."""
    libraries = {member.client.library for member in group.members}
    if group.status.assignor != "stream" and "kafka-streams" not in libraries:
        return None
    return (
        "The group is a Kafka Streams application (classic protocol, assignor 'stream'): Kafka "
        "assigns tasks, so single partitions cannot move and a plan of partitions does not apply."
    )
