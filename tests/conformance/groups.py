"""Generated groups for the conformance tests, as steps of seeded histories.

In each step, members own the partitions that Kafka's class assigned in the previous step, and
random events change the group.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from kassay.reference.model.group import Group, Member, Topic
from tests.conformance.generated_names import NAMINGS, new_name
from tests.conformance.group_events import UNUSUAL, USUAL
from tests.conformance.history_settings import (
    RACKS,
    HistorySettings,
    after_assignment,
    new_member,
    new_topic,
)

Lists = Mapping[str, Sequence[Sequence[object]]]
"""Partitions per member, as [topic, partition] pairs."""


@dataclass(frozen=True, slots=True)
class _Size:
    """Upper limits of a group's size, and the weight of the size."""

    weight: int
    members: int
    topics: int
    partitions: int


_SIZES = (_Size(560, 4, 4, 5), _Size(336, 10, 8, 12), _Size(100, 25, 15, 30), _Size(4, 60, 40, 60))
_MAX_STEPS = 8
_LIVELOCK_SHARE = 0.004
# A group on which the sticky assignor does not terminate: partition counts of the topics, and
# topics and claimed partitions of the members.
_COUNTS = (5, 3, 5, 2, 6)
_CLAIMS: tuple[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], ...] = (
    ((1, 4), ((4, 0), (4, 1), (4, 3), (4, 5))),
    ((0, 3), ((0, 0), (0, 2), (0, 4))),
    ((2, 4), ((4, 2), (4, 4))),
    ((0, 3), ((0, 1), (0, 3))),
    ((0, 4), ()),
)


def history(assignor: str, seed: int) -> Generator[Group, Lists | None, None]:
    """Yield the groups of one history; `send` the assignment, or None after a failure."""
    rng = random.Random(f"{assignor}/{seed}")
    setting = _setting(rng)
    is_livelock = rng.random() < _LIVELOCK_SHARE
    group = _near_livelock(rng, setting) if is_livelock else _first(rng, setting)
    for step in range(rng.randint(1, _MAX_STEPS)):
        lists = yield replace(group, id=f"{assignor}/{seed}/{step}")
        group = group if lists is None else after_assignment(group, lists)
        group = _after_events(rng, group, setting)


def histories(assignor: str, *, first: int = 0) -> Generator[Group, Lists | None, None]:
    """Yield the groups of all histories without end; see `history`."""
    for seed in count(first):
        yield from history(assignor, seed)


def _setting(rng: random.Random) -> HistorySettings:
    size = rng.choices(_SIZES, [size.weight for size in _SIZES])[0]
    racks = RACKS[: rng.randint(2, len(RACKS))] if rng.random() < 0.3 else ()
    return HistorySettings(
        members=rng.randint(size.members // 4, size.members),
        topics=rng.randint(size.topics // 4, size.topics),
        partitions=rng.randint(size.partitions // 5, size.partitions),
        equal=rng.random() < 0.4,
        density=rng.choice((0.15, 0.3, 0.5, 0.8)),
        racks=racks,
        static=rng.choice((0.0, 0.0, 0.3, 1.0)),
        copartitioned=rng.random() < 0.35,
        topic_ids=rng.random() < 0.5,
        member_naming=rng.choice(tuple(NAMINGS)),
        topic_naming=rng.choice(tuple(NAMINGS)),
        oddity=rng.choice((0.0, 0.0, 0.2, 0.6)),
    )


def _first(rng: random.Random, setting: HistorySettings) -> Group:
    group = Group(topics=(), members=())
    for _ in range(setting.topics):
        topic = new_topic(rng, group, setting)
        group = replace(group, topics=(*group.topics, topic))
    for _ in range(setting.members):
        member = new_member(rng, group, setting)
        group = replace(group, members=(*group.members, member))
    if rng.random() < 0.3:
        group = _with_owned_partitions(rng, group)
    return _unusual_events(rng, group, setting)


def _near_livelock(rng: random.Random, setting: HistorySettings) -> Group:
    """Return the known livelock with other names and sometimes small changes."""
    topics: list[str] = []
    members: list[str] = []
    for _ in _COUNTS:
        topics.append(new_name(rng, setting.topic_naming, topics))
        members.append(new_name(rng, setting.member_naming, members))
    if rng.random() < 0.7:
        topics.sort()
        members.sort()
    group = Group(
        topics=tuple(
            Topic(name=name, partitions=count) for name, count in zip(topics, _COUNTS, strict=True)
        ),
        members=tuple(
            Member(
                id=name,
                subscription=tuple(topics[t] for t in wanted),
                owned=[(topics[t], p) for t, p in claims],
                generation=7 if claims else -1,
            )
            for name, (wanted, claims) in zip(members, _CLAIMS, strict=True)
        ),
    )
    return group if rng.random() < 0.5 else _after_events(rng, group, setting)


def _with_owned_partitions(rng: random.Random, group: Group) -> Group:
    """Let random subscribers own the partitions."""
    owned: dict[int, list[tuple[str, int]]] = {index: [] for index in range(len(group.members))}
    uneven = rng.random() < 0.5
    for topic, subscribers in group.subscribers().items():
        for partition in range(group.topic_table()[topic].partitions):
            if subscribers and rng.random() < 0.85:
                candidates = subscribers[: max(1, len(subscribers) // 2)] if uneven else subscribers
                owned[rng.choice(candidates)].append((topic, partition))
    generation = rng.randint(0, 9)
    members = (
        replace(member, owned=owned[index], generation=generation if owned[index] else -1)
        for index, member in enumerate(group.members)
    )
    return replace(group, members=tuple(members))


def _after_events(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    if not group.members:
        group = replace(group, members=(new_member(rng, group, setting),))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        group = rng.choice(USUAL)(rng, group, setting)
    return _unusual_events(rng, group, setting)


def _unusual_events(rng: random.Random, group: Group, setting: HistorySettings) -> Group:
    while rng.random() < setting.oddity:
        group = rng.choice(UNUSUAL)(rng, group, setting)
    if rng.random() < 0.3:
        group = replace(group, members=tuple(rng.sample(group.members, len(group.members))))
    if rng.random() < 0.2:
        group = replace(group, topics=tuple(rng.sample(group.topics, len(group.topics))))
    return group
