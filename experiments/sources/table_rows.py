"""Parse the rows of tables from Kafka's tools, other tools and CSV files."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kassay.experiments.sources.clean_lines import FORMS
from kassay.experiments.sources.table_headers import Header, TableKind, csv_cells
from kassay.reference.documents.files import read_data_file

_BLANK_IN_RPK = (
    *("CONSUMER-ID", "GROUP-INSTANCE-ID", "CLIENT-ID", "HOST", "ERROR"),
    *("SUBSCRIBED-TOPICS", "ASSIGNMENT", "TARGET-ASSIGNMENT"),
)
"""Columns of rpk and kcl that are blank if a partition or member has no assignment."""
_KCL_MEMBERS = ("CONSUMER-ID", "CLIENT-ID")
"""First columns of kcl's members table."""
Cells = dict[str, str]
"""Cells of a row by column name."""
# Empty for a dynamic member beside static members, no client id, an empty group.
_MAY_BE_BLANK = frozenset({"GROUP-INSTANCE-ID", "CLIENT-ID", "ASSIGNMENT-STRATEGY", "ASSIGNMENT"})
# The tool prints several spaces inside this cell.
_MAY_CONTAIN_GAPS = "COORDINATOR (ID)"
_GAP = re.compile(r" {2,}")
_NULL = re.compile(r"\s*|[<(\[]?(null|none|nan|n/a|nil)[>)\]]?|\\N", re.IGNORECASE)
"""Text for a missing value in an export of a database or data frame."""
# Blank cells that a row without columns of fixed width can lack.
_BLANK_IN_WORDS = frozenset({"GROUP-INSTANCE-ID", "ASSIGNMENT-STRATEGY", "ASSIGNMENT"})
_ASSIGNMENT_GAP = re.compile(r"(?<=\d)\), +(?=[\w.(-])")
_COORDINATOR_GAP = re.compile(r" +(?=\(-?[0-9]+\)( |$))")
_JOINED_ID_AND_HOST = FORMS["joined id and host"]
# Releases 0.10.2 to 1.0 print no space after an id of at least this length.
_JOINED_LENGTH = 50


def split_row(text: str, header: Header) -> Cells | None:
    """Split a table row into cells, or return None if no method gives valid cells.

    Rows without delimiter are split by the first method that gives valid cells. Methods are: at the
    column offsets of the header; at spaces, if there are as many words as columns; at spaces, with
    a consumer id joined to its host, or with one blank cell.
    """
    if header.delimiter == "," and not header.is_csv:
        # Groups and owners may contain commas. The split must be unambiguous.
        valid = [cells for cells in _by_commas(text.strip(), header) if _is_valid(cells)]
        return valid[0] if len(valid) == 1 else None
    methods: Sequence[Callable[[str, Header], Cells | None]] = _BY_BLANKS
    if header.delimiter:
        methods = (_by_delimiter,) if header.is_csv else (_by_delimiter, _by_words)
    splits = (method(text, header) for method in methods)
    return next((cells for cells in splits if cells is not None and _is_valid(cells)), None)


def _by_delimiter(text: str, header: Header) -> Cells | None:
    """Split a row at the delimiter of its table, and convert blank cells to a dash."""
    values = list(csv_cells(text, header.delimiter) or ())
    if header.is_csv:
        if not "".join(values[len(header.names) :]).strip():
            values = values[: len(header.names)]  # without columns that have no name
        values = ["" if _NULL.fullmatch(value.strip()) else value for value in values]
    return _named(header, [value.strip() or "-" for value in values])


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
    is_rpk = header.names[-1] in ("HOST", "ERROR") or header.names[:2] == _KCL_MEMBERS
    may_be_blank = _BLANK_IN_RPK if is_rpk else _MAY_BE_BLANK
    if is_rpk:
        text = text.ljust(header.starts[-1] + 1)
    for name, start, stop in zip(
        header.names, header.starts, [*header.starts[1:], len(text)], strict=True
    ):
        if start > 0 and (start > len(text) or text[start - 1] != " "):
            return None
        value = text[start : max(stop, start)]
        if value.startswith(" ") and value.strip():
            return None
        value = value.strip()
        if is_rpk and name in _BLANK_IN_RPK:
            value = value or "-"
            if name == "CONSUMER-ID" and " " in value:
                return None
        if (not value and name not in may_be_blank) or (
            name != _MAY_CONTAIN_GAPS and _GAP.search(value)
        ):
            return None
        values.append(value)
    return _named(header, values)


def _by_words(text: str, header: Header) -> Cells | None:
    if header.kind is TableKind.STREAMS:  # its last cell has spaces
        words = text.split(maxsplit=len(header.names) - 1)
        return _named(header, [*words, ""][: len(header.names)])
    return _named(header, _words(text, header))


def _words(text: str, header: Header) -> list[str]:
    """Split a row into words. An assignment or coordinator is one word."""
    if _MAY_CONTAIN_GAPS in header.names:
        text = _COORDINATOR_GAP.sub("", text)
    return [word.replace("\0", " ") for word in _ASSIGNMENT_GAP.sub("),\0", text).split()]


def _by_words_with_blank(text: str, header: Header) -> Cells | None:
    """Split a row with one blank cell into words, or return None if it is ambiguous."""
    words = _words(text, header)
    if len(words) != len(header.names) - 1:
        return None
    found = []
    for column in _BLANK_IN_WORDS.intersection(header.names):
        at = header.names.index(column)
        cells = dict(zip(header.names, [*words[:at], "", *words[at:]], strict=True))
        if column == "ASSIGNMENT-STRATEGY" and cells["STATE"] in _NEEDS_ASSIGNOR:
            continue  # rather a cell that is lost
        if _is_valid(cells) and cells.get("HOST", "/").startswith("/"):
            found.append(cells)
    return found[0] if len(found) == 1 else None


def _by_words_with_joined_host(text: str, header: Header) -> Cells | None:
    words = text.split()
    if "HOST" not in header.names or len(words) != len(header.names) - 1:
        return None
    for index, word in enumerate(words):
        match = _JOINED_ID_AND_HOST.fullmatch(word)
        if match and len(match["id"]) >= _JOINED_LENGTH:
            return _named(header, [*words[:index], match["id"], match["host"], *words[index + 1 :]])
    return None


_BY_BLANKS = (_by_offsets, _by_words, _by_words_with_joined_host, _by_words_with_blank)


def _named(header: Header, values: list[str]) -> Cells | None:
    if len(values) != len(header.names):
        return None
    return dict(zip(header.names, values, strict=True))


Assignment = tuple[tuple[str, tuple[int, ...]], ...]

_RANDOM = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_NEEDS_ASSIGNOR = ("Stable", "Reconciling", "Assigning", "-")
_SHORTENED = ("..", "*", ">", "~")
_DITTO = ('"', "''", '""', "\u3003")
_MISSING = frozenset({"-", "unknown"})
_COUNT = re.compile(r"[0-9]{1,10}")
_CUT_ID = re.compile(r"-[0-9a-f]{8}-([0-9a-f]{4}-){1,3}[0-9a-f]{0,11}$")
"""End of an id with a cut random part."""
_ADDRESS = re.compile(r"/\d+\.\d+\.\d+\.\d+")
# Redpanda prints no slash.
_HOST = re.compile(r"(?!.*[0-9a-f]{8}-[0-9a-f]{4}-)(\S*/\S*|(?=\S*[a-zA-Z.:])[\w.:%\[\]-]+)")
_NUMBER_LIST = r"([0-9]{1,10}(?:,[0-9]{1,10})*)"
_TOPIC_NAME = r"[a-zA-Z0-9._-]{1,249}"
UNIQUE_ID = re.compile(r"(.*-)?[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}|[\w/+-]{22}(==)?")
"""Id of a member with a random part."""
TOPIC = re.compile(_TOPIC_NAME)
"""Valid name of a topic."""
_TOPIC_IN_PARENTHESES = re.compile(rf"({_TOPIC_NAME})\({_NUMBER_LIST}\)")
_TOPIC_WITH_COLON = re.compile(rf"({_TOPIC_NAME}):{_NUMBER_LIST}")
# Releases 3.8 and 3.9 print the partition numbers of each topic without the topic.
_WITHOUT_TOPICS = re.compile(rf"\({_NUMBER_LIST}\)(, ?\({_NUMBER_LIST}\))*")
_COLUMNS = read_data_file(__package__, "table_columns.txt")
_PATTERNS = {column: re.compile(rest[0]) for column, _, _, *rest in _COLUMNS if rest}


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """Row of the offsets table, about a partition or a member without partitions.

    It can also be a row of ``kafka.tools.ConsumerOffsetChecker`` (0.8 to 0.11).
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
    """Row of the members table, with partition count and assignment if shown."""

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
    subscription: tuple[str, ...] | None = None  # if the source shows it


@dataclass(frozen=True, slots=True)
class StateRow:
    """Row of the state table, with the assignor and the state of a group."""

    line: int
    group: str | None
    state: str
    strategy: str | None = None
    members: int | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class OtherRow:
    """Row of a table without data about members, such as the output of ``--list``."""

    line: int
    cells: tuple[str, ...]


TableRow = OffsetRow | MemberRow | StateRow | OtherRow


def _is_valid(cells: Cells) -> bool:
    assignments = (
        value
        for name, value in cells.items()
        if name.endswith("ASSIGNMENT")
        and not (name == "ASSIGNMENT" and _WITHOUT_TOPICS.fullmatch(value))
    )
    if cells.get("ASSIGNMENT") == "" and cells.get("#PARTITIONS", "0") != "0":
        return False
    instance = cells.get("GROUP-INSTANCE-ID", "")
    if _RANDOM.search(instance) and not cells["CONSUMER-ID"].startswith(instance):
        return False  # rather the consumer id
    if "PROCESS" in cells and ":[" in cells["MEMBER"] + cells["PROCESS"] + cells["CLIENT-ID"]:
        return False  # the end of a row
    is_shortened = cells.get("HOST", "").endswith(_SHORTENED)
    if is_shortened or any(one.endswith("\u2026") or one in _DITTO for one in cells.values()):
        return False
    last, value = next(reversed(cells.items()))
    is_id = last in ("CLIENT-ID", "OWNER", "Owner") and not cells.get("CONSUMER-ID", "").startswith(
        value
    )
    if is_id and re.search(r"\s[^\w\s]", value):
        return False  # text behind the row
    return (
        all(pattern.fullmatch(cells[name]) for name, pattern in _PATTERNS.items() if name in cells)
        and _is_valid_partition(cells)
        and _is_valid_consumer(cells)
        and all(read_assignment(value) is not None for value in assignments)
    )


def _is_valid_partition(cells: Cells) -> bool:
    if "PARTITION" not in cells:
        return bool(TOPIC.fullmatch(cells.get("TOPIC", "-")))
    if cells["TOPIC"] == cells["PARTITION"] == "-":
        return cells.get("CURRENT-OFFSET", "-") == cells.get("LAG", "-") == "-"
    if cells["TOPIC"] == "-":
        return False
    return bool(TOPIC.fullmatch(cells["TOPIC"]) and _COUNT.fullmatch(cells["PARTITION"]))


def _is_valid_consumer(cells: Cells) -> bool:
    consumer, host = cells.get("CONSUMER-ID", "-"), cells.get("HOST", "-")
    if "HOST" in cells and (consumer == "-") is not (host == "-"):
        return False
    if _ADDRESS.fullmatch(consumer) or _CUT_ID.search(consumer):
        return False
    if cells.get("CLIENT-ID") == "" and "GROUP-INSTANCE-ID" not in cells and consumer[0] != "-":
        return False  # the id of a member starts with its client id
    return host == "-" or bool(_HOST.fullmatch(host))


def build_row(kind: TableKind, cells: Cells, *, line: int) -> TableRow:
    """Convert the valid cells of a table row to a typed row."""
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
        if "#PARTITIONS" not in cells and "ASSIGNMENT" in cells:
            values["partitions"] = sum(len(numbers) for _, numbers in values["assignment"])
            _add_instance(values)
    return row_type(**{name: values[name] for name in row_type.__slots__ if name in values})


def _add_instance(values: dict[str, Any]) -> None:
    """Split a host as kcl prints it, such as ``10.0.0.1 (instance=a,rack=r)``, into its parts."""
    match = re.fullmatch(r"(?P<host>.*?) \(instance=(?P<id>[^,)]+).*\)", values["host"] or "")
    if match is not None:
        values["host"], values["instance_id"] = match["host"], match["id"]


def read_assignment(text: str) -> Assignment | None:
    """Parse an assignment such as ``t1(0,1), t2(3)``, ``t1:0,1;t2:3`` or ``-`` (empty).

    Return None if the text is not a valid assignment.
    """
    if text in ("-", ""):
        return ()
    form, separator = (_TOPIC_IN_PARENTHESES, ", ") if "(" in text else (_TOPIC_WITH_COLON, "[; ]")
    topics: list[tuple[str, tuple[int, ...]]] = []
    for part in re.split(separator, text):
        match = form.fullmatch(part)
        if match is None:
            return None
        topics.append((match[1], tuple(map(int, match[2].split(",")))))
    return tuple(topics)


def read_without_topics(text: str) -> tuple[tuple[int, ...], ...] | None:
    """Parse partition numbers without topics, such as ``(0,1), (4,5)``.

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
_READERS: Mapping[str, Callable[[str], object]] = {
    "text": _text,
    "texts": lambda value: tuple(value.split(",")) if _text(value) else None,
    "number": _number,
    "owner": _owner,
    "assignment": read_assignment,
    "word": str,
}
FIELDS = {
    column: (field, _READERS[reader]) for column, field, reader, *_ in _COLUMNS if field != "-"
}
"""Field of a typed row, and reader of its value, per column."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Message of ``kafka-consumer-groups.sh``, for example about a rebalancing group.

    The kind is ``empty``, ``rebalancing``, ``missing`` or ``error``.
    """

    line: int
    kind: str
    group: str | None
    text: str


@dataclass(frozen=True, slots=True)
class ParsedTable:
    """Table of a capture with typed rows, and with its group id if it has one."""

    kind: TableKind
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    line: int
    group: str | None = None
    cluster: str | None = None
    file: str = ""
    states_rebalances: bool = False  # the tool warns if the group is rebalancing
