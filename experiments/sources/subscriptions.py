"""Subscriptions of members: as the source shows them, as a file states them, or assumed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kassay.experiments.sources.import_options import ImportOptions, MemberTopics
from kassay.experiments.sources.merge_captures import ObservedGroup, ObservedMember
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Member
from kassay.reference.model.group_annotations import Assumed
from kassay.reference.model.group_remarks import AssumedSubscriptions, with_assumption

_NOTES = {
    AssumedSubscriptions.EQUAL: "all topics are assumed for every member",
    AssumedSubscriptions.ASSIGNED: "the assigned topics are assumed",
}


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Subscription by member id, and the members whose subscription is assumed.

    A subscription is not assumed if it follows from the assignment: if the member has partitions
    of every topic of the group.
    """

    topics: Mapping[str, tuple[str, ...]]
    assumed: frozenset[str] = field(default=frozenset())


def member_subscriptions(
    observed: ObservedGroup, options: ImportOptions, notes: list[str]
) -> Subscriptions:
    """Return the subscriptions of the members of a captured group.

    A file of the options precedes the source, and the source precedes an assumption.
    """
    members = list(observed.members.values())
    given = (options.subscriptions or {}).get(observed.id)
    if given is not None:
        topics = {one.id: _given_subscription(one, given) for one in members}
        notes.extend(_replaced_notes(members, topics))
        return Subscriptions(topics)
    sent = {member.id: member.subscription for member in members if member.subscription is not None}
    notes.extend(_foreign_notes(members))
    missing = [member for member in members if member.id not in sent]
    if not missing:
        return Subscriptions(sent)
    reading = options.assumed_subscriptions or AssumedSubscriptions.ASSIGNED
    count = f"{len(missing)} " if sent else ""
    subject = "1 subscription is" if count == "1 " else f"{count}subscriptions are"
    notes.append(f"{subject} not shown, {_NOTES[reading]}")
    all_topics = {topic for topic, _ in observed.partitions}.union(*sent.values())
    assigned = {
        one.id: {topic for topic, _ in one.owned | (one.target or set())} for one in missing
    }
    is_equal = reading is AssumedSubscriptions.EQUAL
    topics = {
        member: tuple(sorted(all_topics if is_equal else own)) for member, own in assigned.items()
    }
    assumed = frozenset(member for member, own in assigned.items() if own != all_topics)
    return Subscriptions({one.id: (sent | topics)[one.id] for one in members}, assumed)


def with_subscriptions(group: Group, options: ImportOptions) -> Group:
    """Apply the option for subscriptions to a group document.

    An assumption replaces only subscriptions that the document states as assumed. A note names
    what the option changes, or that it changes nothing.
    """
    given = (options.subscriptions or {}).get(group.id or "")
    if given is not None:
        members = tuple(_with_given(member, given) for member in group.members)
        changed = [
            new.id
            for old, new in zip(group.members, members, strict=True)
            if Assumed.TOPICS not in old.assumed and old.subscription != new.subscription
        ]
        notes = tuple(_replaced_note(changed))
        return replace(group, members=members, notes=(*group.notes, *notes))
    reading = options.assumed_subscriptions
    if reading is None or not group.members:
        return group
    if not any(Assumed.TOPICS in member.assumed for member in group.members):
        note = f"--subscriptions {reading} has no effect: the source shows all subscriptions"
        return replace(group, notes=(*group.notes, note))
    note = f"--subscriptions {reading}: {_NOTES[reading]}, except for known subscriptions"
    other = [one for one in group.notes if not one.endswith(tuple(_NOTES.values()))]
    return replace(with_assumption(group, reading), notes=(*other, note))


def _with_given(member: Member, given: MemberTopics) -> Member:
    topics = _given_topics((member.id, member.instance_id, member.client.id), given)
    assumed = tuple(one for one in member.assumed if one is not Assumed.TOPICS)
    return replace(member, subscription=topics, assumed=assumed)


def _foreign_notes(members: Iterable[ObservedMember]) -> Iterator[str]:
    """Yield a note per member that has partitions of topics that it does not subscribe to.

    Leaders of some clients assign the topics of their own subscription to all members.
    """
    for member in members:
        if member.subscription is None or member.target is not None:
            continue
        topics = {topic for topic, _ in member.owned} - set(member.subscription)
        if topics:
            yield (
                f"member {member.id!r} has partitions of topics that it does not subscribe to: "
                + ", ".join(sorted(topics))
            )


def _replaced_notes(
    members: Iterable[ObservedMember], given: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    yield from _replaced_note(
        [
            member.id
            for member in members
            if member.subscription is not None and set(member.subscription) != set(given[member.id])
        ]
    )


def _replaced_note(changed: list[str]) -> Iterator[str]:
    if changed:
        others = f" and of {len(changed) - 1} more" if len(changed) > 1 else ""
        yield (
            "the file of --subscriptions replaces the subscription that the source shows of "
            f"member {changed[0]!r}{others}"
        )


def _given_subscription(member: ObservedMember, given: MemberTopics) -> tuple[str, ...]:
    topics = _given_topics((member.id, member.instance_id, member.client_id), given)
    # A member may still own partitions of a topic that it no longer consumes.
    foreign = sorted(
        partition
        for partition in member.owned
        if partition[0] not in topics and member.target is None
    )
    if foreign:
        topic, number = foreign[0]
        raise InputError(
            f"member {member.id!r} has {topic}-{number}, but the subscription "
            f"given for it is {list(topics)}; correct the file of --subscriptions"
        )
    return topics


def _given_topics(names: tuple[str | None, ...], given: MemberTopics) -> tuple[str, ...]:
    topics = next((given[name] for name in names if name is not None and name in given), None)
    if topics is None:
        raise InputError(f"the file of --subscriptions has no entry for member {names[0]!r}")
    return topics
