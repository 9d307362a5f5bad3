"""What the groups of one history have in common, and the making of their members and topics."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.ownership import rejoin
from kassay.reference.model.topic_partitions import Partitions
from tests.conformance.names import fresh_name

RACKS = ("a", "b", "rack-10", "rack-9", "Ω")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One history's sizes and habits.

    Parameters
    ----------
    members, topics, partitions
        How many of each at the start; partitions is the most that a topic has.
    equal
        Whether all members subscribe to all topics.
    density
        Share of the topics that a member subscribes to, where they differ.
    racks
        Racks of members and replicas; none if empty.
    static
        Share of static members.
    copartitioned
        Whether most topics have the same number of partitions.
    topic_ids
        Whether topics have random ids.
    member_naming, topic_naming
        Keys of `names.NAMINGS`.
    oddity
        Chance of one more odd event in a step.
    """

    members: int
    topics: int
    partitions: int
    equal: bool
    density: float
    racks: tuple[str, ...]
    static: float
    copartitioned: bool
    topic_ids: bool
    member_naming: str
    topic_naming: str
    oddity: float


def new_topic(rng: random.Random, group: Group, setting: Setting) -> Topic:
    """Make a topic that the group does not have yet."""
    name = fresh_name(rng, setting.topic_naming, group.topic_table())
    same = setting.copartitioned and rng.random() < 0.8
    partitions = setting.partitions if same else rng.randint(1, setting.partitions)
    identifier = uuid.UUID(int=rng.getrandbits(128)) if setting.topic_ids else None
    return Topic(
        name=name,
        partitions=partitions,
        racks=replica_racks(rng, partitions, setting),
        id=identifier,
    )


def replica_racks(
    rng: random.Random, partitions: int, setting: Setting
) -> tuple[tuple[str | None, ...], ...] | None:
    """Racks of each partition's replicas; sometimes none, unknown ones, or all the same."""
    if not setting.racks or rng.random() < 0.1:
        return None
    replicas = rng.randint(1, min(3, len(setting.racks)))
    rows: list[tuple[str | None, ...]] = []
    for partition in range(partitions):
        if setting.copartitioned:
            first = partition % len(setting.racks)
            row = [setting.racks[(first + i) % len(setting.racks)] for i in range(replicas)]
        else:
            row = rng.sample(setting.racks, replicas)
        rows.append(tuple(None if rng.random() < 0.02 else rack for rack in row))
    return tuple(rows)


def new_member(rng: random.Random, group: Group, setting: Setting) -> Member:
    """Make a member that the group does not have yet."""
    instances = [m.instance_id for m in group.members if m.instance_id is not None]
    static = rng.random() < setting.static
    return Member(
        id=fresh_name(rng, setting.member_naming, group.member_table()),
        subscription=subscription(rng, group, setting),
        instance_id=fresh_name(rng, setting.member_naming, instances) if static else None,
        rack=rng.choice(setting.racks) if setting.racks and rng.random() < 0.9 else None,
    )


def subscription(rng: random.Random, group: Group, setting: Setting) -> tuple[str, ...]:
    """Topics that a member of such a group subscribes to, in random order."""
    names = [topic.name for topic in group.topics]
    if setting.equal:
        # The others' may have a topic that is gone, which counts in whether all are equal.
        names = list(group.members[0].subscription) if group.members else names
        return tuple(rng.sample(names, len(names)))
    wanted = [name for name in names if rng.random() < setting.density]
    if not wanted and names:
        wanted = [rng.choice(names)]
    return tuple(rng.sample(wanted, len(wanted)))


def settled(group: Group, lists: Mapping[str, Sequence[Any]]) -> Group:
    """Let each member own what was assigned to it, in the next generation."""
    return rejoin(group, {member: Partitions.of(map(tuple, tps)) for member, tps in lists.items()})
