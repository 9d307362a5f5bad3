"""Random events that change a group between two rebalances.

Every event returns the changed group, or the same group if the event is not possible.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kassay.reference.model.group import Group, Member, Topic
from tests.conformance.generated_names import new_name
from tests.conformance.history_settings import (
    HistorySettings,
    new_member,
    new_topic,
    replica_racks,
    subscription,
)

Event = Callable[[random.Random, Group, HistorySettings], Group]


def _no_change(_: random.Random, group: Group, __: HistorySettings) -> Group:
    return group


def _join(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    joined = list(group.members)
    for _ in range(rng.choice((1, 1, 2))):
        member = new_member(rng, replace(group, members=tuple(joined)), setting)
        joined.insert(rng.randint(0, len(joined)), member)
    return replace(group, members=tuple(joined))


def _leave(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    if len(group.members) < 2:
        return group
    remaining = rng.randint(max(1, len(group.members) - 3), len(group.members) - 1)
    kept = sorted(rng.sample(range(len(group.members)), remaining))
    return replace(group, members=tuple(group.members[i] for i in kept))


def _replace_member(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    return _join(rng, _leave(rng, group, setting), setting)


def _restart(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    """Restart a member with a new id; a static member keeps its owned partitions."""

    def restarted(member: Member) -> Member:
        name = new_name(rng, setting.member_naming, group.member_table())
        if member.instance_id is not None:
            return replace(member, id=name)
        return replace(member, id=name, owned=(), generation=-1)

    return _with_member(rng, group, restarted)


def _resubscribe(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    if setting.equal:
        names = [topic.name for topic in group.topics]
        if not names:
            return group
        chosen = rng.sample(names, rng.randint(1, len(names)))
        members = (replace(member, subscription=tuple(chosen)) for member in group.members)
        return replace(group, members=tuple(members))
    return _with_member(
        rng, group, lambda member: replace(member, subscription=subscription(rng, group, setting))
    )


def _grow(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    def grown(topic: Topic) -> Topic:
        more = topic.partitions + rng.randint(1, 4)
        return replace(topic, partitions=more, racks=replica_racks(rng, more, setting))

    return _with_topic(rng, group, grown)


def _create(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    topic = new_topic(rng, group, setting)
    members = (
        replace(member, subscription=(*member.subscription, topic.name))
        if topic.name not in member.subscription
        and (setting.equal or rng.random() < setting.density)
        else member
        for member in group.members
    )
    return replace(group, topics=(*group.topics, topic), members=tuple(members))


def _delete(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    """Delete a topic, and sometimes the subscriptions to it."""
    if not group.topics:
        return group
    deleted = rng.choice(group.topics)
    group = replace(group, topics=tuple(t for t in group.topics if t is not deleted))
    if rng.random() < 0.5:
        return group
    members = (
        replace(member, subscription=tuple(t for t in member.subscription if t != deleted.name))
        for member in group.members
    )
    return replace(group, members=tuple(members))


def _move_replicas(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    return _with_topic(
        rng,
        group,
        lambda topic: replace(topic, racks=replica_racks(rng, topic.partitions, setting)),
    )


def _move_member(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    rack = rng.choice((*setting.racks, None, "elsewhere")) if setting.racks else None
    return _with_member(rng, group, lambda member: replace(member, rack=rack))


# ---- Unusual events --------------------------------------------------------------


def _claim_others(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    """Let a member claim partitions of others, in an older, equal or newer generation."""
    others = [tp for member in group.members for tp in member.owned]
    if not others:
        return group
    more = rng.sample(others, rng.randint(1, min(4, len(others))))
    drift = rng.choice((-2, -1, 0, 0, 1))

    def claiming(member: Member) -> Member:
        owned = list(member.owned) if rng.random() < 0.5 else []
        owned += [tp for tp in more if tp not in owned]
        generation = max(m.generation for m in group.members)
        return replace(member, owned=owned, generation=max(-1, generation + drift))

    return _with_member(rng, group, claiming)


def _claim_beyond(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    """Let a member claim partitions beyond the partition count, or of a deleted topic."""
    topics = [(topic.name, topic.partitions) for topic in group.topics]
    name, partitions = rng.choice([*topics, ("gone", 0)])
    claim = (name, partitions + rng.randint(0, 2))
    return _with_member(
        rng,
        group,
        lambda member: replace(
            member, owned=[*member.owned, claim], generation=max(0, member.generation)
        ),
    )


def _shrink(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    def shrunk(topic: Topic) -> Topic:
        fewer = rng.randint(0, max(0, topic.partitions - 1))
        return replace(topic, partitions=fewer, racks=replica_racks(rng, fewer, setting))

    return _with_topic(rng, group, shrunk)


def _empty_topic(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    return _with_topic(
        rng,
        group,
        lambda topic: replace(topic, partitions=0, racks=None if topic.racks is None else ()),
    )


def _subscribe_to_no_change(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    return _with_member(rng, group, lambda member: replace(member, subscription=()))


def _subscribe_to_unknown(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    return _with_member(
        rng,
        group,
        lambda member: (
            member
            if "unknown" in member.subscription
            else replace(member, subscription=("unknown", *member.subscription))
        ),
    )


def _fenced(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    """Reset a member's generation, and sometimes its owned partitions."""
    keeps = rng.random() < 0.6
    return _with_member(
        rng,
        group,
        lambda member: replace(member, owned=member.owned if keeps else (), generation=-1),
    )


def _older_generation(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    back = rng.randint(1, 3)
    return _with_member(
        rng, group, lambda member: replace(member, generation=max(-1, member.generation - back))
    )


def _different_generations(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    """Set different generations in the subscription and the user data."""
    drift = rng.choice((None, -1, 1, 2))
    return _with_member(
        rng,
        group,
        lambda member: replace(
            member, sub_generation=-1 if drift is None else max(-1, member.generation + drift)
        ),
    )


def _old_client(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    version = rng.randint(0, 3)
    data = rng.choice((None, "v0"))
    all_members = rng.random() < 0.3

    def older(member: Member) -> Member:
        return replace(member, protocol_version=version, user_data=data)

    if all_members:
        return replace(group, members=tuple(older(member) for member in group.members))
    return _with_member(rng, group, older)


def _all_leave(_: random.Random, group: Group, __: HistorySettings) -> Group:
    return replace(group, members=())


def _same_instance(rng: random.Random, group: Group, _: HistorySettings) -> Group:
    shared_instance = next(
        (m.instance_id for m in group.members if m.instance_id is not None), "twin"
    )
    return _with_member(rng, group, lambda member: replace(member, instance_id=shared_instance))


def _with_member(rng: random.Random, group: Group, change: Callable[[Member], Member]) -> Group:
    if not group.members:
        return group
    chosen = rng.randrange(len(group.members))
    return replace(group, members=_changed(group.members, chosen, change))


def _with_topic(rng: random.Random, group: Group, change: Callable[[Topic], Topic]) -> Group:
    if not group.topics:
        return group
    chosen = rng.randrange(len(group.topics))
    return replace(group, topics=_changed(group.topics, chosen, change))


def _changed(items: tuple[Any, ...], chosen: int, change: Callable[[Any], Any]) -> tuple[Any, ...]:
    return tuple(change(item) if i == chosen else item for i, item in enumerate(items))


USUAL: tuple[Event, ...] = (
    _no_change,
    _join,
    _join,
    _leave,
    _leave,
    _replace_member,
    _restart,
    _resubscribe,
    _grow,
    _create,
    _delete,
    _move_replicas,
    _move_member,
)
UNUSUAL: tuple[Event, ...] = (
    _claim_others,
    _claim_others,
    _claim_others,
    _claim_beyond,
    _shrink,
    _empty_topic,
    _subscribe_to_no_change,
    _subscribe_to_unknown,
    _fenced,
    _older_generation,
    _different_generations,
    _old_client,
    _same_instance,
    _all_leave,
)
