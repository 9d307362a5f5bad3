"""Typed rows, one type per kind of table."""

import re
from dataclasses import dataclass

from kassay.experiments.sources.describe_output.headers import TableKind
from kassay.experiments.sources.describe_output.row_cells import Cells

Assignment = tuple[tuple[str, tuple[int, ...]], ...]

_MISSING = frozenset({"-", "unknown"})
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_COUNT = re.compile(r"[0-9]{1,10}")
_EPOCH = re.compile(r"-1|-|[0-9]{1,10}")
_EPOCHS = ("CURRENT-EPOCH", "TARGET-EPOCH", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH")
_NUMBER_LIST = r"([0-9]{1,10}(?:,[0-9]{1,10})*)"
_TOPIC_NAME = r"[a-zA-Z0-9._-]{1,249}"
_TOPIC = re.compile(_TOPIC_NAME)
_TOPIC_IN_PARENTHESES = re.compile(rf"({_TOPIC_NAME})\({_NUMBER_LIST}\)")
_TOPIC_WITH_COLON = re.compile(rf"({_TOPIC_NAME}):{_NUMBER_LIST}")
_COORDINATOR = re.compile(r"(?P<node>.*?) *\((?P<id>-?[0-9]{1,10})\)")
_STATE = re.compile(r"[A-Za-z]+|-")


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """A partition with offsets and consumer, or a member without partitions.

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
    """A member with its number of partitions and, if shown, its assignment."""

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


@dataclass(frozen=True, slots=True)
class StateRow:
    """A group's coordinator, assignor and state."""

    line: int
    group: str | None
    state: str
    coordinator: str | None = None
    coordinator_id: int | None = None
    strategy: str | None = None
    members: int | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class ListingRow:
    """A row of ``--list --state`` or ``--list --type``."""

    line: int
    group: str
    state: str | None


@dataclass(frozen=True, slots=True)
class DeletionRow:
    """A row of ``--delete-offsets``."""

    line: int
    topic: str
    partition: int
    status: str


@dataclass(frozen=True, slots=True)
class ResetRow:
    """A row of ``--reset-offsets``."""

    line: int
    topic: str
    partition: int
    new_offset: int | None


TableRow = OffsetRow | MemberRow | StateRow | ResetRow | ListingRow | DeletionRow

_NUMBERS = {
    TableKind.OFFSETS: ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "LEADER-EPOCH"),
    TableKind.OFFSET_CHECKER: ("Offset", "logSize", "Lag"),
    TableKind.RESET: ("NEW-OFFSET",),
}
_COUNTS = {
    TableKind.MEMBERS: ("#PARTITIONS",),
    TableKind.STATE: ("#MEMBERS",),
    TableKind.OFFSET_CHECKER: ("Pid",),
    TableKind.RESET: ("PARTITION",),
    TableKind.DELETION: ("PARTITION",),
}


_CHECKER_COLUMNS = {
    "Group": "GROUP",
    "Topic": "TOPIC",
    "Pid": "PARTITION",
    "Offset": "CURRENT-OFFSET",
    "logSize": "LOG-END-OFFSET",
    "Lag": "LAG",
    "Owner": "OWNER",
}


def matches_columns(kind: TableKind, cells: Cells) -> bool:
    """Return whether cells match the types of their columns."""
    numbers = (cells[name] for name in _NUMBERS.get(kind, ()) if name in cells)
    counts = (cells[name] for name in _COUNTS.get(kind, ()))
    return (
        all(value in _MISSING or _INTEGER.fullmatch(value) for value in numbers)
        and all(_COUNT.fullmatch(value) for value in counts)
        and all(_EPOCH.fullmatch(cells.get(name, "-")) for name in _EPOCHS)
        and _is_valid_partition(cells)
        and _is_valid_consumer(cells)
        and all(
            read_assignment(cells[name]) is not None
            for name in ("ASSIGNMENT", "CURRENT-ASSIGNMENT", "TARGET-ASSIGNMENT")
            if name in cells
        )
        and cells.get("UPGRADED", "-") in ("true", "false", "-")
        and bool(_STATE.fullmatch(cells.get("STATE", "-")))
        and (kind is not TableKind.STATE or bool(_COORDINATOR.fullmatch(cells["COORDINATOR (ID)"])))
    )


def _is_valid_partition(cells: Cells) -> bool:
    topic, number = cells.get("TOPIC", "-"), cells.get("PARTITION", "-")
    if topic == "-" and number == "-":
        return all(cells.get(name, "-") == "-" for name in ("CURRENT-OFFSET", "LAG"))
    return bool(_TOPIC.fullmatch(topic)) and bool(_COUNT.fullmatch(number))


def _is_valid_consumer(cells: Cells) -> bool:
    consumer, host = cells.get("CONSUMER-ID", "-"), cells.get("HOST", "-")
    if "HOST" in cells and (consumer == "-") is not (host == "-"):
        return False
    return host == "-" or ("/" in host and " " not in host)


def build_row(kind: TableKind, cells: Cells, *, line: int) -> TableRow:
    """Build a row from cells that match their columns."""
    match kind:
        case TableKind.OFFSETS | TableKind.OFFSET_CHECKER:
            return _offsets({_CHECKER_COLUMNS.get(k, k): v for k, v in cells.items()}, line)
        case TableKind.MEMBERS:
            return _members(cells, line)
        case TableKind.STATE:
            return _state(cells, line)
        case TableKind.RESET:
            offset = _number(cells["NEW-OFFSET"])
            return ResetRow(line, cells["TOPIC"], int(cells["PARTITION"]), offset)
        case TableKind.LISTING:
            return ListingRow(line, cells["GROUP"], _text(cells.get("STATE")))
        case TableKind.DELETION:
            return DeletionRow(line, cells["TOPIC"], int(cells["PARTITION"]), cells["STATUS"])


def read_assignment(text: str) -> Assignment | None:
    """Parse ``t1(0,1), t2(3)`` or ``t1:0,1;t2:3`` or ``-`` (empty); None if it is invalid.

    Examples
    --------
    >>> read_assignment("t1:0,1;t2:3")
    (('t1', (0, 1)), ('t2', (3,)))
    >>> read_assignment("t1:0,1;t2:")
    """
    if text in ("-", ""):
        return ()
    form, separator = (_TOPIC_IN_PARENTHESES, ", ") if "(" in text else (_TOPIC_WITH_COLON, ";")
    parts = [form.fullmatch(part) for part in text.split(separator)]
    if any(part is None for part in parts):
        return None
    return tuple(
        (part.group(1), tuple(int(number) for number in part.group(2).split(",")))
        for part in parts
        if part is not None
    )


def _offsets(cells: Cells, line: int) -> OffsetRow:
    return OffsetRow(
        line=line,
        group=_text(cells.get("GROUP")),
        topic=_text(cells["TOPIC"]),
        partition=_number(cells["PARTITION"]),
        current=_number(cells["CURRENT-OFFSET"]),
        end=_number(cells["LOG-END-OFFSET"]),
        lag=_number(cells["LAG"]),
        consumer_id=_text(cells.get("CONSUMER-ID")),
        host=_text(cells.get("HOST")),
        client_id=_text(cells.get("CLIENT-ID")),
        owner=_owner(cells.get("OWNER")),
    )


def _members(cells: Cells, line: int) -> MemberRow:
    current = cells.get("CURRENT-ASSIGNMENT", cells.get("ASSIGNMENT"))
    target = cells.get("TARGET-ASSIGNMENT")
    return MemberRow(
        line=line,
        group=_text(cells.get("GROUP")),
        consumer_id=cells["CONSUMER-ID"],
        instance_id=_text(cells.get("GROUP-INSTANCE-ID")),
        host=_text(cells["HOST"]),
        client_id=_text(cells["CLIENT-ID"]),
        partitions=int(cells["#PARTITIONS"]),
        assignment=None if current is None else read_assignment(current),
        epoch=_number(cells.get("CURRENT-EPOCH", "-")),
        target=None if target is None else read_assignment(target),
    )


def _state(cells: Cells, line: int) -> StateRow:
    match = _COORDINATOR.fullmatch(cells["COORDINATOR (ID)"])
    return StateRow(
        line=line,
        group=_text(cells.get("GROUP")),
        coordinator=None if match is None else match["node"],
        coordinator_id=None if match is None else int(match["id"]),
        strategy=_text(cells["ASSIGNMENT-STRATEGY"]),
        state=cells["STATE"],
        members=int(cells["#MEMBERS"]),
        epoch=_number(cells.get("GROUP-EPOCH", "-")),
    )


def _text(value: str | None) -> str | None:
    return None if value is None or value in ("-", "") else value


def _number(value: str) -> int | None:
    return None if value in _MISSING else int(value)


def _owner(value: str | None) -> str | None:
    return None if value in (None, "none", "-", "unknown", "") else value
