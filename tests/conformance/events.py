"""What happens to a group between two rebalances: the usual, and the odd.

Every event takes the source of random choices, the group and its setting, and returns the
group after it; where an event cannot happen, the group as it was.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kassay.reference.model.group import Group, Member, Topic
from tests.conformance.names import fresh_name
from tests.conformance.setting import (
    Setting,
    new_member,
    new_topic,
    replica_racks,
    subscription,
)

Event = Callable[[random.Random, Group, Setting], Group]


def _nothing(_: random.Random, group: Group, __: Setting) -> Group:
    return group


def _join(rng: random.Random, group: Group, setting: Setting) -> Group:
    joined = list(group.members)
    for _ in range(rng.choice((1, 1, 2))):
        member = new_member(rng, replace(group, members=tuple(joined)), setting)
        joined.insert(rng.randint(0, len(joined)), member)
    return replace(group, members=tuple(joined))


def _leave(rng: random.Random, group: Group, _: Setting) -> Group:
    if len(group.members) < 2:
        return group
    staying = rng.randint(max(1, len(group.members) - 3), len(group.members) - 1)
    kept = sorted(rng.sample(range(len(group.members)), staying))
    return replace(group, members=tuple(group.members[i] for i in kept))


def _replace_member(rng: random.Random, group: Group, setting: Setting) -> Group:
    return _join(rng, _leave(rng, group, setting), setting)


def _bounce(rng: random.Random, group: Group, setting: Setting) -> Group:
    """Restart a member: a new id; a static one keeps what it owned."""

    def restarted(member: Member) -> Member:
        name = fresh_name(rng, setting.member_naming, group.member_table())
        if member.instance_id is not None:
            return replace(member, id=name)
        return replace(member, id=name, owned=(), generation=-1)

    return _with_member(rng, group, restarted)


def _resubscribe(rng: random.Random, group: Group, setting: Setting) -> Group:
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


def _grow(rng: random.Random, group: Group, setting: Setting) -> Group:
    def grown(topic: Topic) -> Topic:
        more = topic.partitions + rng.randint(1, 4)
        return replace(topic, partitions=more, racks=replica_racks(rng, more, setting))

    return _with_topic(rng, group, grown)


def _create(rng: random.Random, group: Group, setting: Setting) -> Group:
    topic = new_topic(rng, group, setting)
    members = (
        replace(member, subscription=(*member.subscription, topic.name))
        if topic.name not in member.subscription
        and (setting.equal or rng.random() < setting.density)
        else member
        for member in group.members
    )
    return replace(group, topics=(*group.topics, topic), members=tuple(members))


def _delete(rng: random.Random, group: Group, _: Setting) -> Group:
    """Delete a topic; the subscriptions to it stay, or go."""
    if not group.topics:
        return group
    gone = rng.choice(group.topics)
    group = replace(group, topics=tuple(t for t in group.topics if t is not gone))
    if rng.random() < 0.5:
        return group
    members = (
        replace(member, subscription=tuple(t for t in member.subscription if t != gone.name))
        for member in group.members
    )
    return replace(group, members=tuple(members))


def _move_replicas(rng: random.Random, group: Group, setting: Setting) -> Group:
    return _with_topic(
        rng,
        group,
        lambda topic: replace(topic, racks=replica_racks(rng, topic.partitions, setting)),
    )


def _move_member(rng: random.Random, group: Group, setting: Setting) -> Group:
    rack = rng.choice((*setting.racks, None, "elsewhere")) if setting.racks else None
    return _with_member(rng, group, lambda member: replace(member, rack=rack))


# ---- Odd events -----------------------------------------------------------------


def _claim_others(rng: random.Random, group: Group, _: Setting) -> Group:
    """Let a member claim what another one owns, in an older, the same or a newer generation."""
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


def _claim_beyond(rng: random.Random, group: Group, _: Setting) -> Group:
    """Let a member claim partitions that its topic does not have, or a topic that is gone."""
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


def _shrink(rng: random.Random, group: Group, setting: Setting) -> Group:
    def shrunk(topic: Topic) -> Topic:
        fewer = rng.randint(0, max(0, topic.partitions - 1))
        return replace(topic, partitions=fewer, racks=replica_racks(rng, fewer, setting))

    return _with_topic(rng, group, shrunk)


def _empty_topic(rng: random.Random, group: Group, _: Setting) -> Group:
    return _with_topic(
        rng,
        group,
        lambda topic: replace(topic, partitions=0, racks=None if topic.racks is None else ()),
    )


def _subscribe_to_nothing(rng: random.Random, group: Group, _: Setting) -> Group:
    return _with_member(rng, group, lambda member: replace(member, subscription=()))


def _subscribe_to_unknown(rng: random.Random, group: Group, _: Setting) -> Group:
    return _with_member(
        rng,
        group,
        lambda member: (
            member
            if "unknown" in member.subscription
            else replace(member, subscription=("unknown", *member.subscription))
        ),
    )


def _fenced(rng: random.Random, group: Group, _: Setting) -> Group:
    """Take a member's generation, and sometimes what it owned."""
    keeps = rng.random() < 0.6
    return _with_member(
        rng,
        group,
        lambda member: replace(member, owned=member.owned if keeps else (), generation=-1),
    )


def _older_generation(rng: random.Random, group: Group, _: Setting) -> Group:
    back = rng.randint(1, 3)
    return _with_member(
        rng, group, lambda member: replace(member, generation=max(-1, member.generation - back))
    )


def _two_generations(rng: random.Random, group: Group, _: Setting) -> Group:
    """Let the subscription state another generation than the user data."""
    drift = rng.choice((None, -1, 1, 2))
    return _with_member(
        rng,
        group,
        lambda member: replace(
            member,
            sub_generation=-1 if drift is None else max(-1, member.generation + drift),
        ),
    )


def _old_client(rng: random.Random, group: Group, _: Setting) -> Group:
    version = rng.randint(0, 3)
    data = rng.choice((None, "v0"))
    everybody = rng.random() < 0.3

    def older(member: Member) -> Member:
        return replace(member, protocol_version=version, user_data=data)

    if everybody:
        return replace(group, members=tuple(older(member) for member in group.members))
    return _with_member(rng, group, older)


def _everybody_leaves(_: random.Random, group: Group, __: Setting) -> Group:
    return replace(group, members=())


def _same_instance(rng: random.Random, group: Group, _: Setting) -> Group:
    twin = next((m.instance_id for m in group.members if m.instance_id is not None), "twin")
    return _with_member(rng, group, lambda member: replace(member, instance_id=twin))


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
    _nothing,
    _join,
    _join,
    _leave,
    _leave,
    _replace_member,
    _bounce,
    _resubscribe,
    _grow,
    _create,
    _delete,
    _move_replicas,
    _move_member,
)
ODD: tuple[Event, ...] = (
    _claim_others,
    _claim_others,
    _claim_others,
    _claim_beyond,
    _shrink,
    _empty_topic,
    _subscribe_to_nothing,
    _subscribe_to_unknown,
    _fenced,
    _older_generation,
    _two_generations,
    _old_client,
    _same_instance,
    _everybody_leaves,
)
