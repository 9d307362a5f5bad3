"""Fresh groups for the conformance harness, each a step in a seeded history.

A history starts with some group and goes on from what the real class made of it: what it
assigned is what the members own in the next step, after something has happened to them.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from kassay.reference.model.group import Group, Member, Topic
from tests.conformance.events import ODD, USUAL
from tests.conformance.names import NAMINGS, fresh_name
from tests.conformance.setting import RACKS, Setting, new_member, new_topic, settled

Lists = Mapping[str, Sequence[Sequence[object]]]
"""Each member's partitions, as [topic, partition] pairs."""


@dataclass(frozen=True, slots=True)
class _Size:
    """Upper limits of a group, and how often groups of that size come."""

    weight: int
    members: int
    topics: int
    partitions: int


_SIZES = (
    _Size(560, 4, 4, 5),
    _Size(336, 10, 8, 12),
    _Size(100, 25, 15, 30),
    _Size(4, 60, 40, 60),
)
_MAX_STEPS = 8
_LIVELOCKS = 0.004
# A group on which the sticky assignor never returns: partitions of each topic; for each
# member the topics it subscribes to and the partitions it claims.
_COUNTS = (5, 3, 5, 2, 6)
_CLAIMS: tuple[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], ...] = (
    ((1, 4), ((4, 0), (4, 1), (4, 3), (4, 5))),
    ((0, 3), ((0, 0), (0, 2), (0, 4))),
    ((2, 4), ((4, 2), (4, 4))),
    ((0, 3), ((0, 1), (0, 3))),
    ((0, 4), ()),
)


def history(assignor: str, seed: int) -> Generator[Group, Lists | None, None]:
    """Yield the groups of one history; send each one's assignment back to get the next.

    Parameters
    ----------
    assignor
        Name of the assignor under test; each has histories of its own.
    seed
        Number of the history.

    Yields
    ------
    Group
        A group; `send` what the real class assigned, or None where it failed.
    """
    rng = random.Random(f"{assignor}/{seed}")
    setting = _setting(rng)
    endless = rng.random() < _LIVELOCKS
    group = _near_livelock(rng, setting) if endless else _first(rng, setting)
    for step in range(rng.randint(1, _MAX_STEPS)):
        lists = yield replace(group, id=f"{assignor}/{seed}/{step}")
        group = group if lists is None else settled(group, lists)
        group = _after_events(rng, group, setting)


def histories(assignor: str, *, first: int = 0) -> Generator[Group, Lists | None, None]:
    """Yield the groups of one history after the other, without end; see `history`."""
    for seed in count(first):
        yield from history(assignor, seed)


def _setting(rng: random.Random) -> Setting:
    size = rng.choices(_SIZES, [size.weight for size in _SIZES])[0]
    racks = RACKS[: rng.randint(2, len(RACKS))] if rng.random() < 0.3 else ()
    return Setting(
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


def _first(rng: random.Random, setting: Setting) -> Group:
    group = Group(topics=(), members=())
    for _ in range(setting.topics):
        topic = new_topic(rng, group, setting)
        group = replace(group, topics=(*group.topics, topic))
    for _ in range(setting.members):
        member = new_member(rng, group, setting)
        group = replace(group, members=(*group.members, member))
    if rng.random() < 0.3:
        group = _with_some_past(rng, group)
    return _odd_events(rng, group, setting)


def _near_livelock(rng: random.Random, setting: Setting) -> Group:
    """Rename the known livelock, which may end it, and change it a little or not at all."""
    topics: list[str] = []
    members: list[str] = []
    for _ in _COUNTS:
        topics.append(fresh_name(rng, setting.topic_naming, topics))
        members.append(fresh_name(rng, setting.member_naming, members))
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


def _with_some_past(rng: random.Random, group: Group) -> Group:
    """Deal partitions to random subscribers, as no assignor would have left them."""
    owned: dict[int, list[tuple[str, int]]] = {index: [] for index in range(len(group.members))}
    favourites = rng.random() < 0.5
    for topic, subscribers in group.subscribers().items():
        for partition in range(group.topic_table()[topic].partitions):
            if subscribers and rng.random() < 0.85:
                few = subscribers[: max(1, len(subscribers) // 2)] if favourites else subscribers
                owned[rng.choice(few)].append((topic, partition))
    generation = rng.randint(0, 9)
    members = (
        replace(member, owned=owned[index], generation=generation if owned[index] else -1)
        for index, member in enumerate(group.members)
    )
    return replace(group, members=tuple(members))


def _after_events(rng: random.Random, group: Group, setting: Setting) -> Group:
    if not group.members:
        group = replace(group, members=(new_member(rng, group, setting),))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        group = rng.choice(USUAL)(rng, group, setting)
    return _odd_events(rng, group, setting)


def _odd_events(rng: random.Random, group: Group, setting: Setting) -> Group:
    while rng.random() < setting.oddity:
        group = rng.choice(ODD)(rng, group, setting)
    if rng.random() < 0.3:
        group = replace(group, members=tuple(rng.sample(group.members, len(group.members))))
    if rng.random() < 0.2:
        group = replace(group, topics=tuple(rng.sample(group.topics, len(group.topics))))
    return group
