"""Lists of partitions in JSON documents: owned and assigned partitions.

A group may have a million partitions, so types are checked per column. Entries are inspected
one by one only if one of them is invalid.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kassay.reference.documents.document_fields import (
    as_array,
    as_integer,
    as_integers,
    format_value,
    has_only,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions
from kassay.reference.model.value_checks import MAX_PARTITIONS


def parse_partitions(value: object, where: str) -> Partitions:
    """Read partitions from ``[["t", 0], ...]`` or the short form ``{"t": [0, ...]}``."""
    if isinstance(value, Partitions):
        return value
    if isinstance(value, Mapping):
        names: list[str] = []
        numbers: list[int] = []
        for topic, entry in value.items():
            of_topic = as_integers(entry, f"{where}[{topic!r}]")
            _check_range(of_topic, f"{where}[{topic!r}]")
            names.extend([topic] * len(of_topic))
            numbers.extend(of_topic)
        return Partitions.from_columns(names, numbers) if names else NO_PARTITIONS
    entries = as_array(value, where, expected="a list of [topic, partition] or an object")
    if not entries:
        return NO_PARTITIONS
    return pack_partitions(entries) or _parse_entries(entries, where)


def pack_partitions(entries: Sequence[Any]) -> Partitions | None:
    """Convert [topic, number] pairs to `Partitions`, which are stored in columns.

    Return None if the list is empty or contains an invalid pair.
    """
    if not has_only(list, entries) or set(map(len, entries)) != {2}:
        return None
    topics, numbers = zip(*entries, strict=True)
    if not has_only(str, topics) or not has_only(int, numbers) or not _in_range(numbers):
        return None
    return Partitions.from_columns(topics, numbers)


def partition_pairs(partitions: Partitions) -> list[tuple[str, int]]:
    """Return the partitions as (topic, number) pairs for a JSON array."""
    topics = map(partitions.topics.__getitem__, partitions.codes.tolist())
    return list(zip(topics, partitions.numbers.tolist(), strict=True))


def _parse_entries(entries: Sequence[Any], where: str) -> Partitions:
    """Read [topic, number] pairs one by one. Raise InputError for an invalid pair."""
    for index, entry in enumerate(entries):
        match entry:
            case [str(), number]:
                as_integer(number, f"{where}[{index}]")
            case _:
                raise InputError(
                    f"{where}[{index}]: expected [topic, partition number], "
                    f"got {format_value(entry)}"
                )
    _check_range([number for _, number in entries], where)
    return Partitions.of(entries)


def _in_range(numbers: Sequence[int]) -> bool:
    return not numbers or 0 <= min(numbers) <= max(numbers) <= MAX_PARTITIONS


def _check_range(numbers: Sequence[int], where: str) -> None:
    if not _in_range(numbers):
        index, bad = next((i, n) for i, n in enumerate(numbers) if not 0 <= n <= MAX_PARTITIONS)
        raise InputError(
            f"{where}[{index}]: partition number must be from 0 to {MAX_PARTITIONS}, got {bad!r}"
        )
