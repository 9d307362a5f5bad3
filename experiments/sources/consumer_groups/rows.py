"""Typed rows, one type for each kind of table."""

import re
from dataclasses import dataclass

from experiments.sources.consumer_groups.cells import Cells
from experiments.sources.consumer_groups.layout import Kind

Assignment = tuple[tuple[str, tuple[int, ...]], ...]

_MISSING = frozenset({"-", "unknown"})
_INTEGER = re.compile(r"-?\d+")
_TOPIC = r"[a-zA-Z0-9._-]+"
_OLD_PART = re.compile(rf"({_TOPIC})\((\d+(?:,\d+)*)\)")
_NEW_PART = re.compile(rf"({_TOPIC}):(\d+(?:,\d+)*)")
_COORDINATOR = re.compile(r"(?P<node>.*?) *\((?P<id>-?\d+)\)")


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """A partition with its offsets and its consumer, or an idle member without either."""

    line: int
    group: str | None
    topic: str | None
    partition: int | None
    current: int | None
    end: int | None
    lag: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member with the number of its partitions and, where shown, which they are."""

    line: int
    group: str | None
    consumer_id: str
    instance_id: str | None
    host: str | None
    client_id: str | None
    partitions: int
    assignment: Assignment | None = None
    epoch: int | None = None
    target: Assignment | None = None


@dataclass(frozen=True, slots=True)
class StateRow:
    """A group's coordinator, assignor and state."""

    line: int
    group: str | None
    coordinator: str | None
    coordinator_id: int | None
    strategy: str | None
    state: str
    members: int
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetCheckerRow:
    """A row of ``kafka.tools.ConsumerOffsetChecker`` (0.8 to 0.11)."""

    line: int
    group: str
    topic: str
    partition: int
    current: int | None
    end: int | None
    lag: int | None
    owner: str | None


@dataclass(frozen=True, slots=True)
class ListingRow:
    """A row of ``--list --state`` or ``--list --type``."""

    line: int
    group: str
    state: str | None


@dataclass(frozen=True, slots=True)
class ResetRow:
    """A row of ``--reset-offsets``."""

    line: int
    topic: str
    partition: int
    new_offset: int


Row = OffsetRow | MemberRow | StateRow | OffsetCheckerRow | ResetRow | ListingRow

_NUMBERS = {
    Kind.OFFSETS: ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "LEADER-EPOCH"),
    Kind.MEMBERS: ("CURRENT-EPOCH", "TARGET-EPOCH"),
    Kind.STATE: ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"),
    Kind.OFFSET_CHECKER: ("Offset", "logSize", "Lag"),
    Kind.RESET: (),
    Kind.LISTING: (),
}
_COUNTS = {
    Kind.OFFSETS: (),
    Kind.MEMBERS: ("#PARTITIONS",),
    Kind.STATE: ("#MEMBERS",),
    Kind.OFFSET_CHECKER: ("Pid",),
    Kind.RESET: ("PARTITION", "NEW-OFFSET"),
    Kind.LISTING: (),
}


def fits(kind: Kind, cells: Cells) -> bool:
    """Say whether cells hold what their columns promise."""
    numbers = (cells[name] for name in _NUMBERS[kind] if name in cells)
    counts = (cells[name] for name in _COUNTS[kind])
    host = cells.get("HOST", "-")
    return (
        all(value in _MISSING or _INTEGER.fullmatch(value) for value in numbers)
        and all(value.isascii() and value.isdigit() for value in counts)
        and (host == "-" or "/" in host)
        and all(
            read_assignment(cells[name]) is not None
            for name in ("ASSIGNMENT", "CURRENT-ASSIGNMENT", "TARGET-ASSIGNMENT")
            if name in cells
        )
        and cells.get("UPGRADED", "-") in ("true", "false", "-")
        and (kind is not Kind.STATE or bool(_COORDINATOR.fullmatch(cells["COORDINATOR (ID)"])))
    )


def typed(kind: Kind, cells: Cells, *, line: int) -> Row:
    """Build the row of a kind from cells that fit."""
    match kind:
        case Kind.OFFSETS:
            return _offsets(cells, line)
        case Kind.MEMBERS:
            return _members(cells, line)
        case Kind.STATE:
            return _state(cells, line)
        case Kind.OFFSET_CHECKER:
            return OffsetCheckerRow(
                line=line,
                group=cells["Group"],
                topic=cells["Topic"],
                partition=int(cells["Pid"]),
                current=_number(cells["Offset"]),
                end=_number(cells["logSize"]),
                lag=_number(cells["Lag"]),
                owner=_owner(cells.get("Owner")),
            )
        case Kind.LISTING:
            return ListingRow(line, cells["GROUP"], _text(cells.get("STATE")))
        case Kind.RESET:
            return ResetRow(line, cells["TOPIC"], int(cells["PARTITION"]), int(cells["NEW-OFFSET"]))


def read_assignment(text: str) -> Assignment | None:
    """Read ``t1(0,1), t2(3)`` or ``t1:0,1;t2:3``; ``-`` is empty; None if it is neither.

    Examples
    --------
    >>> read_assignment("t1:0,1;t2:3")
    (('t1', (0, 1)), ('t2', (3,)))
    >>> read_assignment("t1:0,1;t2:")
    """
    if text in ("-", ""):
        return ()
    form, separator = (_OLD_PART, ", ") if "(" in text else (_NEW_PART, ";")
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
    shown = cells.get("CURRENT-ASSIGNMENT", cells.get("ASSIGNMENT"))
    target = cells.get("TARGET-ASSIGNMENT")
    return MemberRow(
        line=line,
        group=_text(cells.get("GROUP")),
        consumer_id=cells["CONSUMER-ID"],
        instance_id=_text(cells.get("GROUP-INSTANCE-ID")),
        host=_text(cells["HOST"]),
        client_id=_text(cells["CLIENT-ID"]),
        partitions=int(cells["#PARTITIONS"]),
        assignment=None if shown is None else read_assignment(shown),
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
