"""Digests of results and of groups, which are equal on all machines."""

import hashlib
from collections.abc import Iterable
from dataclasses import fields
from typing import Any
from zlib import crc32

from kassay.experiments.comparison.comparison_result import ComparisonRow
from kassay.experiments.study.evaluate_event_stream import HINDSIGHT
from kassay.experiments.study.tables import CaseRecord, FrontDistanceRow, MeasureRow, RebalanceRow
from kassay.reference.model.group import Group, Topic

_Place = tuple[str, int]  # topic and number of a partition
_ROUNDS = 3
_LARGEST = 100_000  # subscriptions, claims and partitions; larger groups have no hash


def renaming_hash(group: Group) -> int | None:
    """Return a hash that is equal for groups that differ only in names and order.

    Names and order are those of members, topics and partitions. Members and topics get colours,
    which are refined by the colours of their neighbours. Groups with different hashes differ;
    groups with equal hashes are nearly always equal. None for large groups.

    Examples
    --------
    >>> from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
    >>> group = NAMED_GROUPS["A"].group
    >>> turned = Group(topics=group.topics[::-1], members=group.members[::-1])
    >>> renaming_hash(group) == renaming_hash(turned)
    True
    """
    claims = sum(len(member.subscription) + len(member.owned) for member in group.members)
    if sum(topic.partitions for topic in group.topics) + claims > _LARGEST:
        return None
    consumers: dict[str, list[int]] = {topic.name: [] for topic in group.topics}
    claimants: dict[_Place, list[int]] = {}
    for index, member in enumerate(group.members):
        for name in member.subscription:
            consumers.setdefault(name, []).append(index)
        for name, number in member.owned:
            claimants.setdefault((name, number), []).append(index)
    fixed = {
        (topic.name, number): _fixed_colour(topic, number)
        for topic in group.topics
        for number in range(topic.partitions)
    }
    places = fixed.keys() | claimants.keys()
    of_member = [
        hash((member.generation + 2, member.speed, _rack_colour(member.rack)))
        for member in group.members
    ]
    of_topic: dict[str, int] = {}
    for _ in range(_ROUNDS):
        of_partition = {
            place: hash((fixed.get(place, 0), *_sorted(of_member, claimants.get(place, ()))))
            for place in places
        }
        parts: dict[str, list[int]] = {name: [] for name in consumers}
        for (name, _), colour in of_partition.items():
            parts.setdefault(name, []).append(colour)
        of_topic = {
            name: hash((tuple(sorted(own)), _sorted(of_member, consumers.get(name, ()))))
            for name, own in parts.items()
        }
        of_member = [
            hash(
                (
                    colour,
                    _sorted(of_topic, member.subscription),
                    _sorted(of_partition, member.owned),
                )
            )
            for colour, member in zip(of_member, group.members, strict=True)
        ]
    return hash((tuple(sorted(of_member)), tuple(sorted(of_topic.values()))))


def _fixed_colour(topic: Topic, number: int) -> int:
    racks = () if topic.racks is None else topic.racks[number]
    return hash((topic.weight(number), *sorted(map(_rack_colour, racks))))


def _rack_colour(rack: str | None) -> int:
    return crc32((rack or "").encode())


def _sorted(colours: Any, keys: Iterable[Any]) -> tuple[int, ...]:
    """Return the colours of some neighbours in an order that does not depend on names."""
    return tuple(sorted(colours[key] for key in keys))


GROUP_FIELDS = ("family", "seed", "start", "renaming_hash")
RESULT_FIELDS = {
    table: tuple(field.name for field in fields(row) if field.name not in ("case", "detail"))
    for table, row in (
        ("comparisons", ComparisonRow),
        ("rebalances", RebalanceRow),
        ("front_distances", FrontDistanceRow),
        ("measures", MeasureRow),
    )
}
"""Fields of the results in a digest, by table."""


def case_digest(record: CaseRecord) -> str:
    """Return the SHA-256 of the sorted result rows of a case."""
    rows = (
        _text(row, names)
        for table, names in RESULT_FIELDS.items()
        for row in getattr(record, table)
        if row.assignor != HINDSIGHT
    )
    return sha256_of_lines([_text(record.group, GROUP_FIELDS), *sorted(rows)])


def family_digest(digests: Iterable[str]) -> str:
    """Return the SHA-256 of the sorted digests of the cases of a family."""
    return sha256_of_lines(sorted(digests))


def _text(row: object, names: Iterable[str]) -> str:
    """Write a row like Spark: values separated by tabs, and nothing for None."""
    values = (getattr(row, name) for name in names)
    return "\t".join(
        "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        for value in values
    )


def sha256_of_lines(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines, without a line break after the last line."""
    digest, separator = hashlib.sha256(), ""
    for line in lines:
        digest.update(f"{separator}{line}".encode())
        separator = "\n"
    return digest.hexdigest()
