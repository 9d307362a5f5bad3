"""Rows of the tables of ``kafka-consumer-groups.sh``, and the rows of one document of any tool.

The header defines the kind of a table. Columns, widths and separators differ between releases.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

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

_LAYOUT_OF_OFFSETS = "TOPIC PARTITION( LEADER-EPOCH)? CURRENT-OFFSET LOG-END-OFFSET LAG"
_NAME = re.compile(r"COORDINATOR \(ID\)|CURRENT OFFSET|LOG END OFFSET|[^\s,]+")
# Release 0.9 writes these names with spaces.
_CURRENT_SPELLING = {"CURRENT OFFSET": "CURRENT-OFFSET", "LOG END OFFSET": "LOG-END-OFFSET"}
_MIN_KNOWN_COLUMNS = 2
_FIRST_COLUMNS = ("GROUP", "TOPIC", "CONSUMER-ID", "COORDINATOR (ID)", "Group")
Cells = dict[str, str]
"""Cell of a row by column."""
# Empty for a dynamic member beside static members, no client id, an empty group.
_MAY_BE_BLANK = frozenset({"GROUP-INSTANCE-ID", "CLIENT-ID", "ASSIGNMENT-STRATEGY"})
# The tool prints several spaces inside this cell.
_MAY_CONTAIN_GAPS = "COORDINATOR (ID)"
_GAP = re.compile(r" {2,}")
_COORDINATOR_GAP = re.compile(r" +(?=\(-?[0-9]+\)( |$))")
_JOINED_ID_AND_HOST = re.compile(
    r"(?P<id>.+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?P<host>/.*)"
)
# Releases 0.10.2 to 1.0 print no space after an id of at least this length.
_JOINED_LENGTH = 50


class TableKind(StrEnum):
    """Kind of a table that ``kafka-consumer-groups.sh`` prints."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"
    OFFSET_CHECKER = "offset-checker"
    RESET = "reset"
    LISTING = "listing"
    DELETION = "deletion"


# All sequences of columns that a release prints. Any other header is cut or unknown.
_LAYOUTS = {
    TableKind.OFFSETS: f"(GROUP )?{_LAYOUT_OF_OFFSETS} (OWNER|CONSUMER-ID( HOST CLIENT-ID)?)",
    TableKind.MEMBERS: (
        r"(GROUP )?CONSUMER-ID( GROUP-INSTANCE-ID)? HOST CLIENT-ID #PARTITIONS( ASSIGNMENT|"
        r" CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT( UPGRADED)?)?"
    ),
    TableKind.STATE: (
        r"(GROUP )?COORDINATOR \(ID\) ASSIGNMENT-STRATEGY STATE"
        r"( GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH)? #MEMBERS"
    ),
    TableKind.OFFSET_CHECKER: "Group Topic Pid Offset logSize Lag Owner",
    TableKind.RESET: "(GROUP )?TOPIC PARTITION NEW-OFFSET",
    TableKind.DELETION: "TOPIC PARTITION STATUS",
    TableKind.LISTING: "GROUP( TYPE)?( PROTOCOL)?( STATE)?",
}
KNOWN_COLUMNS = frozenset(
    name for layout in _LAYOUTS.values() for name in re.findall("#?[A-Za-z-]{3,}", layout)
) | {"COORDINATOR (ID)"}
"""Names of all columns."""


@dataclass(frozen=True, slots=True)
class Header:
    """Header line of a table that ``kafka-consumer-groups.sh`` prints."""

    kind: TableKind
    names: tuple[str, ...]
    starts: tuple[int, ...]  # offsets of the columns in the line
    commas: bool  # separate the columns (release 0.9)
    line: int


def read_header(text: str, *, name: str, line: int) -> Header | None:
    """Parse the header line of a table, or return None if the line is not a header."""
    columns = list(_NAME.finditer(text))
    names = tuple(_CURRENT_SPELLING.get(match.group(), match.group()) for match in columns)
    known = [word for word in names if word in KNOWN_COLUMNS]
    if len(known) < _MIN_KNOWN_COLUMNS or names[0] not in _FIRST_COLUMNS:
        return None
    unknown = next((word for word in names if word not in KNOWN_COLUMNS), None)
    if unknown is not None:
        raise error_at(name, line, f"unknown column {unknown!r} in the header of a table", text)
    layout_text = " ".join(names)
    kind = next(
        (kind for kind, layout in _LAYOUTS.items() if re.fullmatch(layout, layout_text)), None
    )
    if kind is None:
        raise error_at(
            name, line, "the header of a table is truncated or has an unknown layout", text
        )
    return Header(kind, names, tuple(match.start() for match in columns), "," in text, line)


def split_row(text: str, header: Header, is_valid: Callable[[Cells], bool]) -> Cells | None:
    """Split a table row into cells, or return None if no split gives valid cells.

    Release 0.9 separates cells by commas. Other rows are split by the first of these methods
    that gives valid cells: at the column offsets of the header; at spaces, if there are as many
    words as columns (fixed widths overflow); at spaces, with a consumer id joined to its host.
    The text includes the spaces at its end.
    """
    if header.commas:
        # Groups and owners may contain commas. The split must be unambiguous.
        valid = [cells for cells in _by_commas(text.strip(), header) if is_valid(cells)]
        return valid[0] if len(valid) == 1 else None
    splits = (
        _by_offsets(text, header),
        _by_words(text, header),
        _by_words_with_joined_host(text, header),
    )
    return next((cells for cells in splits if cells is not None and is_valid(cells)), None)


def _by_commas(text: str, header: Header) -> Iterator[Cells]:
    values = text.split(", ")
    width = len(values) - len(header.names) + 1
    if width < 1:
        return
    for first in range(1, width + 1):
        middle = first + len(header.names) - 2
        parts = [", ".join(values[:first]), *values[first:middle], ", ".join(values[middle:])]
        yield dict(zip(header.names, (part.strip() for part in parts), strict=True))


def _by_offsets(text: str, header: Header) -> Cells | None:
    if "\t" in text or text[: header.starts[0]].strip():
        return None
    values: list[str] = []
    for name, start, stop in zip(
        header.names, header.starts, [*header.starts[1:], len(text)], strict=True
    ):
        if start > 0 and (start > len(text) or text[start - 1] != " "):
            return None
        value = text[start : max(stop, start)]
        if value.startswith(" ") and value.strip():
            return None
        value = value.strip()
        if (not value and name not in _MAY_BE_BLANK) or (
            name != _MAY_CONTAIN_GAPS and _GAP.search(value)
        ):
            return None
        values.append(value)
    return _named(header, values)


def _by_words(text: str, header: Header) -> Cells | None:
    if _MAY_CONTAIN_GAPS in header.names:
        text = _COORDINATOR_GAP.sub("", text)
    return _named(header, text.split())


def _by_words_with_joined_host(text: str, header: Header) -> Cells | None:
    words = text.split()
    if "HOST" not in header.names or len(words) != len(header.names) - 1:
        return None
    for index, word in enumerate(words):
        match = _JOINED_ID_AND_HOST.fullmatch(word)
        if match and len(match["id"]) >= _JOINED_LENGTH:
            return _named(header, [*words[:index], match["id"], match["host"], *words[index + 1 :]])
    return None


def _named(header: Header, values: list[str]) -> Cells | None:
    if len(values) != len(header.names):
        return None
    return dict(zip(header.names, values, strict=True))


Assignment = tuple[tuple[str, tuple[int, ...]], ...]

_MISSING = frozenset({"-", "unknown"})
_COUNT = re.compile(r"[0-9]{1,10}")
_NUMBER_LIST = r"([0-9]{1,10}(?:,[0-9]{1,10})*)"
_TOPIC_NAME = r"[a-zA-Z0-9._-]{1,249}"
_TOPIC = re.compile(_TOPIC_NAME)
_TOPIC_IN_PARENTHESES = re.compile(rf"({_TOPIC_NAME})\({_NUMBER_LIST}\)")
_TOPIC_WITH_COLON = re.compile(rf"({_TOPIC_NAME}):{_NUMBER_LIST}")
# Releases 3.8 and 3.9 print the partition numbers of each topic without the topic.
_WITHOUT_TOPICS = re.compile(rf"\({_NUMBER_LIST}\)(, ?\({_NUMBER_LIST}\))*")
_OFFSET_COLUMNS = ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "LEADER-EPOCH", "NEW-OFFSET")
_CHECKER_OFFSETS = ("Offset", "logSize", "Lag")
_EPOCH_COLUMNS = ("CURRENT-EPOCH", "TARGET-EPOCH", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH")
_PATTERNS = {
    **dict.fromkeys((*_OFFSET_COLUMNS, *_CHECKER_OFFSETS), re.compile("-?[0-9]{1,19}|-|unknown")),
    **dict.fromkeys(("#PARTITIONS", "#MEMBERS", "Pid"), _COUNT),
    **dict.fromkeys(_EPOCH_COLUMNS, re.compile("-1|-|[0-9]{1,10}")),
    "UPGRADED": re.compile("true|false|-"),
    "STATE": re.compile("[A-Za-z]+|-"),
    "COORDINATOR (ID)": re.compile(r".*?\(-?[0-9]{1,10}\)"),
}


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """Row of the offsets table: a partition and its consumer, or a member without partitions.

    Also a row of ``kafka.tools.ConsumerOffsetChecker`` (0.8 to 0.11).
    """

    line: int
    group: str | None
    topic: str | None
    partition: int | None
    current: int | None = None
    end: int | None = None
    lag: int | None = None
    consumer_id: str | None = None
    host: str | None = None
    client_id: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class MemberRow:
    """Row of the members table: a member, its partition count and, if shown, its assignment."""

    line: int
    group: str | None
    consumer_id: str
    instance_id: str | None = None
    host: str | None = None
    client_id: str | None = None
    partitions: int | None = None
    assignment: Assignment | None = None
    epoch: int | None = None
    target: Assignment | None = None
    # Partition numbers per topic without the topics, as releases 3.8 and 3.9 print them.
    unnamed: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class StateRow:
    """Row of the state table: assignor and state of a group."""

    line: int
    group: str | None
    state: str
    strategy: str | None = None
    members: int | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class OtherRow:
    """Row in the output of ``--list``, ``--delete-offsets`` or ``--reset-offsets``: no members."""

    line: int
    cells: tuple[str, ...]


TableRow = OffsetRow | MemberRow | StateRow | OtherRow


def matches_columns(cells: Cells) -> bool:
    """Return whether the cells of a table row have valid values for their columns."""
    assignments = (
        value
        for name, value in cells.items()
        if name.endswith("ASSIGNMENT")
        and not (name == "ASSIGNMENT" and _WITHOUT_TOPICS.fullmatch(value))
    )
    return (
        all(pattern.fullmatch(cells[name]) for name, pattern in _PATTERNS.items() if name in cells)
        and _is_valid_partition(cells)
        and _is_valid_consumer(cells)
        and all(read_assignment(value) is not None for value in assignments)
    )


def _is_valid_partition(cells: Cells) -> bool:
    if "PARTITION" not in cells:
        return True
    if cells["TOPIC"] == cells["PARTITION"] == "-":
        return cells.get("CURRENT-OFFSET", "-") == cells.get("LAG", "-") == "-"
    return bool(_TOPIC.fullmatch(cells["TOPIC"]) and _COUNT.fullmatch(cells["PARTITION"]))


def _is_valid_consumer(cells: Cells) -> bool:
    consumer, host = cells.get("CONSUMER-ID", "-"), cells.get("HOST", "-")
    if "HOST" in cells and (consumer == "-") is not (host == "-"):
        return False
    return host == "-" or ("/" in host and " " not in host)


def build_row(kind: TableKind, cells: Cells, *, line: int) -> TableRow:
    """Build a typed row from the valid cells of a table row."""
    row_type = _ROW_TYPES.get(kind)
    if row_type is None:
        return OtherRow(line, tuple(cells.values()))
    values: dict[str, Any] = {"line": line, "group": None}
    for column, (name, read) in FIELDS.items():
        if column in cells:
            values[name] = read(cells[column])
    if kind is TableKind.MEMBERS:
        values["consumer_id"] = cells["CONSUMER-ID"]
        values["unnamed"] = read_without_topics(cells.get("ASSIGNMENT", ""))
    return row_type(**{name: values[name] for name in row_type.__slots__ if name in values})


def read_assignment(text: str) -> Assignment | None:
    """Parse an assignment such as ``t1(0,1), t2(3)``, ``t1:0,1;t2:3`` or ``-`` (empty).

    Return None if the text is not a valid assignment.

    Examples
    --------
    >>> read_assignment("t1:0,1;t2:3")
    (('t1', (0, 1)), ('t2', (3,)))
    >>> read_assignment("t1:0,1;t2:")
    """
    if text in ("-", ""):
        return ()
    form, separator = (_TOPIC_IN_PARENTHESES, ", ") if "(" in text else (_TOPIC_WITH_COLON, ";")
    topics: list[tuple[str, tuple[int, ...]]] = []
    for part in text.split(separator):
        match = form.fullmatch(part)
        if match is None:
            return None
        topics.append((match[1], tuple(map(int, match[2].split(",")))))
    return tuple(topics)


def read_without_topics(text: str) -> tuple[tuple[int, ...], ...] | None:
    """Parse partition numbers that are shown without topics, such as ``(0,1), (4,5)``.

    Return None if the text has another form.
    """
    if not _WITHOUT_TOPICS.fullmatch(text):
        return None
    return tuple(tuple(map(int, numbers.split(","))) for numbers in re.findall(_NUMBER_LIST, text))


def _text(value: str) -> str | None:
    return None if value in ("-", "") else value


def _number(value: str) -> int | None:
    return None if value in _MISSING else int(value)


def _owner(value: str) -> str | None:
    return None if value in ("none", "-", "unknown", "") else value


_ROW_TYPES: Mapping[TableKind, type[OffsetRow | MemberRow | StateRow]] = {
    TableKind.OFFSETS: OffsetRow,
    TableKind.OFFSET_CHECKER: OffsetRow,
    TableKind.MEMBERS: MemberRow,
    TableKind.STATE: StateRow,
}
FIELDS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "GROUP": ("group", _text),
    "TOPIC": ("topic", _text),
    "PARTITION": ("partition", _number),
    "CURRENT-OFFSET": ("current", _number),
    "LOG-END-OFFSET": ("end", _number),
    "LAG": ("lag", _number),
    "OWNER": ("owner", _owner),
    "CONSUMER-ID": ("consumer_id", _text),
    "GROUP-INSTANCE-ID": ("instance_id", _text),
    "HOST": ("host", _text),
    "CLIENT-ID": ("client_id", _text),
    "#PARTITIONS": ("partitions", _number),
    "ASSIGNMENT": ("assignment", read_assignment),
    "CURRENT-ASSIGNMENT": ("assignment", read_assignment),
    "TARGET-ASSIGNMENT": ("target", read_assignment),
    "CURRENT-EPOCH": ("epoch", _number),
    "GROUP-EPOCH": ("epoch", _number),
    "ASSIGNMENT-STRATEGY": ("strategy", _text),
    "STATE": ("state", str),
    "#MEMBERS": ("members", _number),
    "Group": ("group", _text),
    "Topic": ("topic", _text),
    "Pid": ("partition", _number),
    "Offset": ("current", _number),
    "logSize": ("end", _number),
    "Lag": ("lag", _number),
    "Owner": ("owner", _owner),
}
"""Field and parser per column. The last seven columns are those of the offset checker."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Message of ``kafka-consumer-groups.sh``, for example that a group is rebalancing.

    The kind is ``empty``, ``rebalancing``, ``missing`` or ``error``.
    """

    line: int
    kind: str
    group: str | None
    text: str


@dataclass(frozen=True, slots=True)
class ParsedTable:
    """Table in the output of ``kafka-consumer-groups.sh``, with typed rows."""

    kind: TableKind
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ParsedText:
    """Tables and messages in one output of ``kafka-consumer-groups.sh``."""

    tables: tuple[ParsedTable, ...]
    notices: tuple[Notice, ...]


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
