"""Store the table rows, partition counts and partition sizes in the output of tools."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kassay.experiments.sources.clean_lines import FORMS
from kassay.experiments.sources.table_headers import TableKind
from kassay.experiments.sources.table_rows import MemberRow, OffsetRow, ParsedTable, StateRow
from kassay.reference.documents import files
from kassay.reference.model.errors import InputError

_MAX_COUNT = 2**31
Counts = dict[str, int]
"""Partition count by topic."""


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """Table rows, partition counts and partition sizes that a document contains."""

    offsets: Sequence[OffsetRow] = ()
    members: Sequence[MemberRow] = ()
    states: Sequence[StateRow] = ()
    shows_owners: bool = True  # the format can show owners
    partition_counts: Counts = field(default_factory=dict)
    minimum_counts: Counts = field(default_factory=dict)  # lower bounds of partition counts
    # Bytes by broker, topic and partition number.
    replica_sizes: Mapping[tuple[int | None, str, int], int] = field(default_factory=dict)
    # Bytes of the largest replica, because the tool does not show the leader.
    sizes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    topic_ids: Mapping[str, uuid.UUID] = field(default_factory=dict)
    cluster: str | None = None

    def stated_values(self) -> Iterator[tuple[tuple[object, ...], object]]:
        """Yield the words that name a count, an id or a size of a topic, and its value."""
        for topic, count in self.partition_counts.items():
            yield ("number of partitions of topic", topic), count
        for topic, id in self.topic_ids.items():
            yield ("id of topic", topic), id
        for (broker, topic, number), size in self.replica_sizes.items():
            yield ("size on broker", broker, "of topic", topic, "partition", number), size

    def tables(self) -> list[ParsedTable]:
        """Convert the rows to tables like those of ``kafka-consumer-groups.sh``."""
        owners = ("CONSUMER-ID",) if self.shows_owners else ()
        columns = ("TOPIC", "PARTITION", "LAG", *owners)
        tables = (
            (TableKind.OFFSETS, columns, tuple(self.offsets)),
            (TableKind.MEMBERS, ("CONSUMER-ID",), tuple(self.members)),
            (TableKind.STATE, ("STATE",), tuple(self.states)),
        )
        return [
            ParsedTable(kind, columns, rows, 1, cluster=self.cluster)
            for kind, columns, rows in tables
            if rows
        ]


NO_ROWS = DocumentRows()


def add_stated_values(
    known: dict[object, tuple[str, object]], rows: DocumentRows, file: str
) -> None:
    """Add values with their file. Raise InputError if another value is known."""
    for words, value in rows.stated_values():
        first, other = known.setdefault(words, (file, value))
        if other != value:
            raise InputError(
                f"{file}: {' '.join(map(str, words))} is {value}, but {other} in {first}; remove "
                "one of the two"
            )


def _joined_states(rows: Sequence[StateRow]) -> tuple[StateRow, ...]:
    joined: dict[object, StateRow] = {}
    for row in rows:
        known = joined.get(row.group)
        if known is None or (known.state == "-") is (row.state == "-"):
            joined[row.group if known is None else (row.group, row.line)] = row
            continue
        state, number = (known, row) if row.state == "-" else (row, known)
        members = number.members if state.members is None else state.members
        joined[row.group] = replace(state, members=members)
    return tuple(joined.values())


def merge_rows(parts: Sequence[DocumentRows], name: str) -> DocumentRows:
    """Merge the data of several parts of a file, or raise InputError if partition counts differ."""
    counts: dict[str, int] = {}
    minimum: dict[str, int] = {}
    sizes: dict[tuple[str, int], int] = {}
    replicas: dict[tuple[int | None, str, int], int] = {}
    known: dict[object, tuple[str, object]] = {}
    for part in parts:
        add_stated_values(known, part, name)
        counts |= part.partition_counts
        minimum |= {k: max(n, minimum.get(k, 0)) for k, n in part.minimum_counts.items()}
        replicas |= part.replica_sizes
        sizes |= {k: max(n, sizes.get(k, 0)) for k, n in part.sizes.items()}
        for (_, topic, number), size in part.replica_sizes.items():
            sizes[topic, number] = max(size, sizes.get((topic, number), 0))
    return DocumentRows(
        offsets=tuple(row for part in parts for row in part.offsets),
        members=tuple(row for part in parts for row in part.members),
        states=_joined_states([row for part in parts for row in part.states]),
        shows_owners=any(part.shows_owners for part in parts if part.offsets),
        partition_counts=counts,
        minimum_counts={k: n for k, n in minimum.items() if n > counts.get(k, 0)},
        sizes=sizes,
        replica_sizes=replicas,
        topic_ids={k: v for part in parts for k, v in part.topic_ids.items()},
        cluster=next((part.cluster for part in parts if part.cluster), None),
    )


_CONTINUES = FORMS["key of a page"]


def require_last_page(table: Mapping[str, object], where: str) -> None:
    """Raise InputError if a list is split into pages, and a JSON object is not the last page."""
    metadata = table.get("metadata")
    objects = (table, *([metadata] if isinstance(metadata, Mapping) else []))
    for name, value in (item for one in objects for item in one.items()):
        is_set = value is True or value not in (None, "", 0, 1)
        if is_set and _CONTINUES.fullmatch(name.replace("_", "")):
            raise InputError(
                f"{where}: the list continues at {name} {files.format_value(value)}; "
                "request a page with all entries"
            )


@dataclass(frozen=True, slots=True)
class JsonFields:
    """Access the fields of a JSON object, and check their types.

    A missing value, or a value of another type, raises InputError with its position.
    """

    table: Mapping[str, object]
    where: str

    def inner(self, key: str) -> "JsonFields":
        """Return the JSON object at a key."""
        where = f"{self.where}.{key}"
        return JsonFields(files.as_object(self._required(key), where), where)

    def optional_inner(self, key: str) -> "JsonFields | None":
        """Return the JSON object at a key, or None if it is missing or null."""
        return None if self.table.get(key) is None else self.inner(key)

    def each(self, key: str) -> list["JsonFields"]:
        """Return the JSON objects in the array at a key."""
        where = f"{self.where}.{key}"
        return [
            JsonFields(files.as_object(value, f"{where}[{index}]"), f"{where}[{index}]")
            for index, value in enumerate(files.as_array(self._required(key), where))
        ]

    def text(self, key: str) -> str:
        """Return the string at a key. Raise InputError if it is empty."""
        value = files.as_text(self._required(key), f"{self.where}.{key}")
        if not value:
            raise InputError(f"{self.where}.{key}: must not be empty")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return the string at a key, or None if it is missing, null or empty."""
        return files.as_optional_text(self.table.get(key), f"{self.where}.{key}") or None

    def integer(self, key: str) -> int:
        """Return the integer at a key."""
        return files.as_integer(self._required(key), f"{self.where}.{key}")

    def optional_integer(self, key: str) -> int | None:
        """Return the integer at a key, or None if it is missing or null."""
        return files.as_optional_integer(self.table.get(key), f"{self.where}.{key}")

    def count(self, key: str) -> int:
        """Return the integer at a key. Raise InputError unless it is from 0 to 2^31 - 1."""
        value = self.integer(key)
        if not 0 <= value < _MAX_COUNT:
            raise InputError(
                f"{self.where}.{key}: must be from 0 to {_MAX_COUNT - 1}, got "
                f"{files.format_value(value)}"
            )
        return value

    def _required(self, key: str) -> object:
        if key not in self.table:
            raise InputError(f"{self.where}: missing key {key!r}")
        return self.table[key]


@dataclass(frozen=True, slots=True)
class FoundText:
    """Lines that a rule has read, with their content or error.

    ``value`` is a JSON value of an unknown tool. ``is_weak`` means that the lines can also be the
    end of a row. ``group`` is the group of tables below the lines.
    """

    rule: str
    contents: Sequence[DocumentRows] = ()
    error: InputError | None = None
    count: int = 1
    value: object = None
    is_weak: bool = False
    is_noise: bool = False
    group: str | None = None
