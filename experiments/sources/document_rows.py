"""Data from one document of a tool: table rows, partition counts and sizes, and JSON fields."""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kassay.experiments.sources.describe_rows import (
    MemberRow,
    OffsetRow,
    ParsedTable,
    ParsedText,
    StateRow,
    TableKind,
)
from kassay.reference.documents.input_files import (
    as_array,
    as_integer,
    as_object,
    as_optional_integer,
    as_optional_text,
    as_text,
    error_at,
    format_value,
    parse_json,
)
from kassay.reference.model.errors import InputError

_MAX_COUNT = 2**31
Counts = dict[str, int]
"""Partition count by topic."""


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """Table rows, partition counts and sizes that one document of a tool contains.

    Partition counts are by topic.
    """

    offsets: Sequence[OffsetRow] = ()
    members: Sequence[MemberRow] = ()
    states: Sequence[StateRow] = ()
    shows_owners: bool = True  # the format can show owners
    partition_counts: Counts = field(default_factory=dict)
    minimum_counts: Counts = field(default_factory=dict)  # lower bounds of partition counts
    sizes: Mapping[tuple[str, int], int] = field(default_factory=dict)  # bytes per partition
    topic_ids: Mapping[str, uuid.UUID] = field(default_factory=dict)

    def parsed(self) -> ParsedText:
        """Convert the rows to tables, like those that ``kafka-consumer-groups.sh`` prints."""
        owners = ("CONSUMER-ID",) if self.shows_owners else ()
        columns = ("TOPIC", "PARTITION", "LAG", *owners)
        tables = (
            ParsedTable(TableKind.OFFSETS, columns, tuple(self.offsets), 1),
            ParsedTable(TableKind.MEMBERS, ("CONSUMER-ID",), tuple(self.members), 1),
            ParsedTable(TableKind.STATE, ("STATE",), tuple(self.states), 1),
        )
        return ParsedText(tuple(table for table in tables if table.rows), ())


NO_ROWS = DocumentRows()


def merge_counts(left: Counts, right: Mapping[str, int], *, where: str) -> Counts:
    """Merge two dicts of partition counts by topic. Raise InputError if counts differ."""
    merged = dict(left)
    for topic, count in right.items():
        add_count(merged, topic, count, where)
    return merged


def add_count(counts: Counts, topic: str, count: int, where: str) -> None:
    """Add the partition count of a topic. Raise InputError if the topic has another count."""
    if counts.setdefault(topic, count) != count:
        raise InputError(
            f"{where}: topic {topic!r} has {count} partitions here, "
            f"but {counts[topic]} in another part of the input"
        )


@dataclass(frozen=True, slots=True)
class JsonFields:
    """Typed access to the fields of a JSON object.

    A missing value, or one of another type, is an InputError that states its position. The optional
    values are None if they are missing or null.

    Examples
    --------
    >>> JsonFields({"partition": -1}, "lag.json: status").count("partition")
    Traceback (most recent call last):
    kassay...InputError: lag.json: status.partition: must be from 0 to 2147483647, got -1
    """

    table: Mapping[str, object]
    where: str

    def inner(self, key: str) -> "JsonFields":
        """Return the JSON object at a key."""
        where = f"{self.where}.{key}"
        return JsonFields(as_object(self._required(key), where), where)

    def optional_inner(self, key: str) -> "JsonFields | None":
        """Return the JSON object at a key, or None."""
        return None if self.table.get(key) is None else self.inner(key)

    def each(self, key: str) -> list["JsonFields"]:
        """Return the JSON objects in the array at a key."""
        where = f"{self.where}.{key}"
        return [
            JsonFields(as_object(value, f"{where}[{index}]"), f"{where}[{index}]")
            for index, value in enumerate(as_array(self._required(key), where))
        ]

    def text(self, key: str) -> str:
        """Return the string at a key, which must not be empty."""
        value = as_text(self._required(key), f"{self.where}.{key}")
        if not value:
            raise InputError(f"{self.where}.{key}: must not be empty")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return the string at a key, or None, also for an empty string."""
        return as_optional_text(self.table.get(key), f"{self.where}.{key}") or None

    def integer(self, key: str) -> int:
        """Return the integer at a key."""
        return as_integer(self._required(key), f"{self.where}.{key}")

    def optional_integer(self, key: str) -> int | None:
        """Return the integer at a key, or None."""
        return as_optional_integer(self.table.get(key), f"{self.where}.{key}")

    def count(self, key: str) -> int:
        """Return the partition number or partition count at a key, from 0 to 2^31 - 1."""
        value = self.integer(key)
        if not 0 <= value < _MAX_COUNT:
            raise InputError(
                f"{self.where}.{key}: must be from 0 to {_MAX_COUNT - 1}, got {format_value(value)}"
            )
        return value

    def _required(self, key: str) -> object:
        if key not in self.table:
            raise InputError(f"{self.where}: missing key {key!r}")
        return self.table[key]


def embedded_objects(text: str, *, name: str, kind: str) -> Iterator[JsonFields]:
    """Yield the JSON objects in a text, and skip all other text."""
    position = text.find("{")
    while position >= 0:
        line = text.count("\n", 0, position) + 1
        try:
            _, end = json.JSONDecoder().raw_decode(text, position)
        except (ValueError, RecursionError):
            raise error_at(name, line, f"not a complete {kind}", text[position:]) from None
        where = f"{name}:{line}"
        document = parse_json(text[position:end], where=name, first_line=line)
        yield JsonFields(as_object(document, where), where)
        position = text.find("{", end)
