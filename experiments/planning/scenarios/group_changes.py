"""Changes of a group for scenarios, and their text form."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kassay.reference.documents.json_codec import load_weights
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.group_annotations import WeightSource
from kassay.solver.sizing.resized_groups import (
    check_sizing_weights,
    new_member,
    resized,
)

Change = Callable[[Group], Group]
"""Function that takes a group and returns a changed copy of it."""


def add_members(
    group: Group, count: int, *, like: str | None = None, allow_lag: bool = False
) -> Group:
    """Add members to a group, or remove its last members if ``count`` is negative.

    New members copy the subscription, rack and capacity of the member ``like``. By default they
    subscribe to every topic that has a subscriber. Raises InputError if the weights are lag,
    unless ``allow_lag`` is true.

    Examples
    --------
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),),
    ...     members=(Member(id="a", subscription=("t",)),),
    ... )
    >>> [member.id for member in add_members(group, 2).members]
    ['a', 'new-1', 'new-2']
    """
    check_sizing_weights(group, allow_lag=allow_lag)
    number = len(group.members) + count
    if number < 0:
        raise InputError(
            f"cannot remove {-count} members from group {group.id!r}, "
            f"which has {len(group.members)} members"
        )
    return resized(group, number, new_member(group, like, None))


def mean_weight(topic: Topic) -> int:
    """Return the mean weight of the partitions of a topic, rounded up."""
    return -(-topic.total_weight // max(1, topic.partitions))


def repartition(group: Group, topic: str, count: int) -> Group:
    """Increase the partition count of a topic.

    New partitions get no racks, and the mean weight of the topic.
    """
    old = _topic(group, topic)
    if count < old.partitions:
        raise InputError(
            f"topic {topic!r} has {old.partitions} partitions; Kafka cannot reduce them to {count}"
        )
    added = count - old.partitions
    weights, racks = old.weights, old.racks
    if weights is not None:
        weights = (*weights, *[mean_weight(old)] * added)
    if racks is not None:
        racks = (*racks, *[() for _ in range(added)])
    new = replace(old, partitions=count, weights=weights, racks=racks)
    return replace(group, topics=tuple(new if one is old else one for one in group.topics))


def reweigh(
    group: Group,
    weights: Mapping[str, Sequence[int]],
) -> Group:
    """Set partition weights from a mapping of topic to a list of integers.

    The list of a topic has one integer per partition.

    Topics that are not in the group are ignored.
    """
    missing = [topic.name for topic in group.topics if topic.name not in weights]
    if missing:
        raise InputError(f"the weight table has no weights for topic {missing[0]!r}")
    topics = (replace(topic, weights=tuple(weights[topic.name])) for topic in group.topics)
    return replace(group, topics=tuple(topics), weight_source=WeightSource.FILE, weight_unit=None)


def _topic(group: Group, name: str) -> Topic:
    topic = group.topic_table().get(name)
    if topic is None:
        raise InputError(f"group {group.id!r} has no topic {name!r}")
    return topic


def find_member(group: Group, name: str) -> Member:
    """Find a member by its id, instance id, client id or host, or by a unique prefix.

    Raises
    ------
    InputError
        If no member, or more than one member, matches the name.
    """
    exact = group.member_table().get(name)
    if exact is not None:
        return exact
    keys = [
        (key, member)
        for member in group.members
        for key in (member.id, member.instance_id, member.client.id, member.client.host)
        if key
    ]
    hosts = [(key, member) for key, member in keys if key.lstrip("/") == name.lstrip("/")]
    found = {m.id: m for _, m in hosts or [pair for pair in keys if pair[0].startswith(name)]}
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise InputError(f"group {group.id!r} has no member {name!r}")
    raise InputError(
        f"group {group.id!r} has {len(found)} members that match {name!r}: "
        f"{', '.join(list(found)[:4])}; give a longer prefix or the member id"
    )


NamedChange = tuple[str, Change]

_RANGE = re.compile(r"(\+?)(\d+)\.\.(\+?)(\d+)(?::(\d+))?")
_NUMBER = re.compile(r"([+-]?)(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioSpec:
    """Changes to a group as text, in the option syntax of ``kassay what-if``."""

    partitions: tuple[str, ...] = ()
    members: str | None = None
    like: str | None = None
    weights: Path | None = None
    allow_lag: bool = False

    def alternatives(self) -> list[Sequence[NamedChange]]:
        """Parse the changes. Return a list of alternatives for each kind of change."""
        kinds: list[Sequence[NamedChange]] = [[_partitions(text)] for text in self.partitions]
        if self.members is not None:
            # The file of weights, which applies next, replaces lag.
            allow_lag = self.allow_lag or self.weights is not None
            add = partial(add_members, like=self.like, allow_lag=allow_lag)
            kinds.append(list(_members(self.members, add)))
        if self.weights is not None:
            table = load_weights(self.weights)
            kinds.append([(f"weights {self.weights.name}", partial(reweigh, weights=table))])
        return kinds


def _partitions(text: str) -> NamedChange:
    topic, separator, count = text.rpartition("=")
    if not separator or not topic or not count.isdecimal():
        raise UsageError(f"--partitions must be TOPIC=COUNT, got {text!r}")
    return f"{topic} {count} partitions", partial(repartition, topic=topic, count=int(count))


def _members(text: str, add: Callable[..., Group]) -> Iterable[NamedChange]:
    for part in text.split(","):
        interval, single = _RANGE.fullmatch(part), _NUMBER.fullmatch(part)
        if interval and interval[1] == interval[3]:
            first, last, step = int(interval[2]), int(interval[4]), int(interval[5] or 1)
            if first > last:
                raise UsageError(
                    "--members: the second number of a range must not be closer to 0 than the "
                    f"first, got {part!r}"
                )
            if not step:
                raise UsageError(f"--members: the step of a range must be above 0, got {part!r}")
            for number in range(first, last + 1, step):
                yield _resized(interval[1], number, add)
        elif single:
            yield _resized(single[1], int(single[2]), add)
        else:
            raise UsageError(
                f"--members must be a number, +N, -N or FIRST..LAST[:STEP], got {part!r}"
            )


def _resized(sign: str, number: int, add: Callable[..., Group]) -> NamedChange:
    if sign:
        count = -number if sign == "-" else number
        return f"members {sign}{number}", partial(add, count=count)
    return f"{number} members", lambda group: add(group, number - len(group.members))
