"""Fingerprint of a group: a hash of the content that determines its optimum."""

import hashlib
import json
from collections.abc import Iterator

import numpy as np

from kassay.reference.model.group import Group, Member
from kassay.reference.model.topic_partitions import Partitions


def group_fingerprint(group: Group) -> str:
    """Return the fingerprint of a group: ``sha256:`` and 64 hexadecimal digits.

    The fingerprint depends on the topics with their partitions, weights and racks, and on the
    members with their subscription, owned partitions, generation, rack, capacity, host and speed.
    It does not depend on the id, the notes, or the order of topics, members and owned partitions.

    Examples
    --------
    >>> from kassay.reference.model.group import Topic
    >>> first, second = Topic(name="t", partitions=2), Topic(name="u", partitions=1)
    >>> group = Group(topics=(first, second), members=(), id="g")
    >>> group_fingerprint(group) == group_fingerprint(Group(topics=(second, first), members=()))
    True
    >>> group_fingerprint(group) == group_fingerprint(Group(topics=(first,), members=()))
    False
    """
    digest = hashlib.sha256()
    for topic in sorted(group.topics, key=lambda topic: topic.name):
        digest.update(_line("topic", topic.name, topic.partitions, topic.weights, topic.racks))
    lines: dict[tuple[str, ...], bytes] = {}  # many members have the same subscription
    for member in sorted(group.members, key=lambda member: member.id):
        subscription = member.subscription
        if subscription not in lines:
            lines[subscription] = _line("subscription", *sorted(subscription))
        for part in _member_parts(member, lines[subscription]):
            digest.update(part)
    return f"sha256:{digest.hexdigest()}"


def _member_parts(member: Member, subscription: bytes) -> Iterator[bytes]:
    yield _line("member", member.id, member.generation, member.rack, member.capacity)
    if member.client.host is not None or member.speed != 1:
        yield _line("runs", member.client.host, member.speed)
    yield subscription
    yield from _owned_parts(member.owned)


def _owned_parts(owned: Partitions) -> Iterator[bytes]:
    """Yield the bytes to hash for owned partitions: topic names, then sorted partitions."""
    names = sorted(owned.distinct_topics())
    place = {name: index for index, name in enumerate(names)}
    rank = np.array([place.get(name, 0) for name in owned.topics] or [0], dtype=np.int64)
    keys = np.sort((rank[owned.codes] << 32) + owned.numbers)
    keys = keys[np.diff(keys, prepend=keys[:1] - 1) > 0]
    yield _line("owned", len(keys), *names)
    yield keys.astype("<i8").tobytes()


def _line(*fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"
