"""Settings of one history, and generation of its members and topics."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kassay.reference.model.assignment import rejoin
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions
from tests.conformance.generated_names import new_name

RACKS = ("a", "b", "rack-10", "rack-9", "Ω")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """Sizes and probabilities of one history.

    Parameters
    ----------
    members, topics, partitions
        Initial numbers; ``partitions`` is the maximum per topic.
    equal
        Whether all members subscribe to all topics.
    density
        Share of the topics to which a member subscribes, for mixed subscriptions.
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
        Probability of a further unusual event in a step.
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


def new_topic(rng: random.Random, group: Group, setting: HistorySettings) -> Topic:
    """Generate a topic with a new name."""
    name = new_name(rng, setting.topic_naming, group.topic_table())
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
    rng: random.Random, partitions: int, setting: HistorySettings
) -> tuple[tuple[str | None, ...], ...] | None:
    """Generate racks of the replicas per partition, sometimes none or unknown ones."""
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


def new_member(rng: random.Random, group: Group, setting: HistorySettings) -> Member:
    """Generate a member with a new id."""
    instances = [m.instance_id for m in group.members if m.instance_id is not None]
    static = rng.random() < setting.static
    return Member(
        id=new_name(rng, setting.member_naming, group.member_table()),
        subscription=subscription(rng, group, setting),
        instance_id=new_name(rng, setting.member_naming, instances) if static else None,
        rack=rng.choice(setting.racks) if setting.racks and rng.random() < 0.9 else None,
    )


def subscription(rng: random.Random, group: Group, setting: HistorySettings) -> tuple[str, ...]:
    """Generate a subscription in random order."""
    names = [topic.name for topic in group.topics]
    if setting.equal:
        # Subscriptions can contain deleted topics, which count for equality.
        names = list(group.members[0].subscription) if group.members else names
        return tuple(rng.sample(names, len(names)))
    chosen = [name for name in names if rng.random() < setting.density]
    if not chosen and names:
        chosen = [rng.choice(names)]
    return tuple(rng.sample(chosen, len(chosen)))


def after_assignment(group: Group, lists: Mapping[str, Sequence[Any]]) -> Group:
    return rejoin(group, {member: Partitions.of(map(tuple, tps)) for member, tps in lists.items()})
