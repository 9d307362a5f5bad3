"""Recognise messages about rebalances, and their causes, in logs.

The texts are those of the following classes, read in the sources of each minor release:

- brokers 0.9 to 3.9: ``kafka.coordinator.group.GroupCoordinator`` (0.9: ``kafka.coordinator``);
- brokers 3.7 to 4.4: ``org.apache.kafka.coordinator.group.GroupMetadataManager``, for classic,
  consumer, share and Streams groups;
- Java clients 1.0 to 4.4: ``AbstractCoordinator``, ``ConsumerCoordinator``,
  ``AbstractHeartbeatRequestManager``, ``AbstractMembershipManager`` (3.7 and 3.8:
  ``MembershipManagerImpl``) in ``org.apache.kafka.clients.consumer.internals``;
- librdkafka 0.11 to 2.16: ``rdkafka_cgrp.c``, with ``debug=cgrp`` or ``debug=all``; without these,
  the log has only session and poll timeouts.

The layout of the lines is free: a message is found by its first words, and its time before them.
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from kassay.reference.documents.files import read_data_file

MAX_LINE = 16_384
"""Maximum number of bytes that kassay reads per line; names and reasons are near its start."""


class LogEventKind(StrEnum):
    """Kind of a log message about a group."""

    # Coordinator.
    PREPARING = "preparing"  # a rebalance of the classic protocol starts
    STABILIZED = "stabilized"  # all members have joined the new generation
    ASSIGNED = "assigned"  # the leader has sent the assignment
    EMPTY = "empty"
    BUMPED = "bumped"  # a new epoch of the consumer protocol
    COMPUTED = "computed"  # the target assignment of an epoch
    ACKNOWLEDGED = "acknowledged"  # the state of a member at an epoch
    # Coordinator and clients.
    JOINED = "joined"
    LEFT = "left"
    EXPIRED = "expired"  # no heartbeat within the session timeout
    TIMED_OUT = "timed out"  # not rejoined, or not revoked, within the rebalance timeout
    REPLACED = "replaced"  # a static member has restarted
    ABANDONED = "abandoned"  # a pending member never joined
    CHANGED = "changed"  # subscription or topics
    # Clients.
    REJOIN = "rejoin"  # the client must join again, with the reason
    JOINING = "joining"
    IN_GENERATION = "in generation"  # the client has joined, and waits for the assignment
    SYNCED = "synced"
    # Records of the offsets topic.
    COMMITTED = "committed"


class LogEvent(NamedTuple):
    """Log message about a group, with its file and line.

    ``time`` is in milliseconds since 1970 or None, ``number`` a generation or epoch, ``size`` the
    number of members. ``client`` is the client whose log contains the message, or None for a
    coordinator. The timeouts are in milliseconds. ``supported`` are the names of assignors.
    """

    kind: LogEventKind
    group: str
    client: str | None = None
    protocol: str | None = None
    member: str | None = None
    instance: str | None = None
    replaced: str | None = None
    number: int | None = None
    size: int | None = None
    reason: str | None = None
    assignor: str | None = None
    session_timeout: int | None = None
    rebalance_timeout: int | None = None
    supported: str | None = None
    time: int | None = None
    file: str = ""
    line: int = 0
    text: bytes = b""

    def line_record(self) -> dict[str, object]:
        """Return the log line with its file and line number as JSON."""
        text = self.text.decode(errors="replace")
        return {"file": self.file, "line": self.line, "text": text}


class _Rule(NamedTuple):
    """Pattern of a log message, with fields of the resulting event."""

    kind: LogEventKind
    pattern: re.Pattern[str]
    fields: dict[str, Any]


_Rules = dict[str, list[_Rule]]


def _rules() -> dict[str, _Rules]:
    sections: dict[str, _Rules] = {}
    for first, *others in read_data_file(__package__, "log_messages.txt"):
        if not others:
            table = sections.setdefault(first.strip("[]"), {})
        else:
            protocol, reason, pattern = others
            values = {"protocol": protocol, "reason": reason}
            fields = {name: value for name, value in values.items() if value != "-"}
            rule = _Rule(LogEventKind(first), re.compile(pattern, re.DOTALL), fields)
            table.setdefault(pattern.partition(" ")[0].replace("\\", ""), []).append(rule)
    return sections


_SECTIONS = _rules()
_CLASSIC = {"protocol": "classic"}

_BROKER, _JAVA, _NATIVE = b"[GroupCoordinator ", b"[Consumer ", b"#consumer-"
_PREFIXES = (_BROKER, _JAVA, _NATIVE)
_GROUP_AND_MEMBER = re.compile(
    # A group id can contain the bracket, but hardly the bracket and a blank.
    r"\[Group(?:Id[ =]| )(?P<group>.*?)\](?= |\[MemberId |$) *"
    r"(?:\[MemberId (?P<member>[^\]]*)\] *)?"
)
_LAYOUT_ENDS = (b" (kafka.", b" (org.apache.kafka.", b" (state.change.logger")
_CLIENT = re.compile(
    r"(?:instanceId=(?P<instance>.*?), )?clientId=(?P<client>.*?), groupId=(?P<group>.*)$"
)
_HANDLE = re.compile(
    rb"([^\s|\[\]]+#consumer-\d+)(?:\||\])? ?(?:\[thrd:[^\]]*\]:? ?)?(?:\S+/(?:\d+|bootstrap): )?"
)


class _Message(NamedTuple):
    text: str
    rules: _Rules
    start: int
    fields: dict[str, Any]


def read_log(lines: Iterable[bytes], *, file: str) -> Iterator[LogEvent]:
    """Yield the messages about rebalances in a log, in the order of its lines.

    The lines can come from several clients and brokers. Lines with other content are skipped. Lines
    in JSON are read if a text in them is a message about rebalances.
    """
    clock = _Clock()
    groups: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=1):
        # The first test decides for most lines. It must be as fast as possible.
        if _BROKER not in line and _JAVA not in line and _NATIVE not in line:
            if _TEXT_RECORD in line or _JSON_RECORD in line:
                position: dict[str, Any] = {"file": file, "line": number}
                yield from (
                    LogEvent(**fields, **position, text=text[:MAX_LINE])
                    for text in _BETWEEN_RECORDS.split(line.rstrip(b"\r\n"))
                    for fields in _events_in_record(text, members)
                )
            continue
        message = _message_of(line[:MAX_LINE])
        if message is None:
            continue
        found = _event_fields(message, groups)
        if found is not None:
            yield LogEvent(
                **found,
                time=clock.read(line, message.start),
                file=file,
                line=number,
                text=line.rstrip(b"\r\n"),
            )


class _GroupRecord(NamedTuple):
    """Record of a generation in the output of ``kafka-console-consumer.sh``.

    ``time`` is in milliseconds since 1970, or None before Kafka 3.8.
    """

    group: str
    number: int
    members: list[str]
    assignor: str | None
    time: int | None


_TEXT_RECORD, _JSON_RECORD = b"::", b'{"key":'
_BETWEEN_RECORDS = re.compile(rb'(?<=\})(?=\{"key":)')
"""Boundary between two JSON records, because some releases print no line ends."""
_COMMIT = re.compile(
    r"\[(?P<group>.*),[^,]*,\d+\]::(?:OffsetAndMetadata\(.*\bcommitTimestamp=|\[OffsetMetadata.*"
    r",CommitTime )(?P<time>\d+)"
)
_RECORD = re.compile(
    r"GroupMetadata\(groupId=(?P<group>.*?), generation=(?P<number>\d+), protocolType=.*?, "
    r"currentState=\w+, members=Map\((?P<members>.*)\)\)"
)
_RECORD_MEMBER = re.compile(r"MemberMetadata\(memberId=(.*?), ")
_RECORD_ASSIGNOR = re.compile(r"supportedProtocols=List\(([\w.-]+)\)")


def _events_in_record(line: bytes, members: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
    text = line.decode(errors="replace").strip()
    try:
        record = _text_record(text) or _json_record(text)
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    if isinstance(record, _GroupRecord):
        yield from _events_of(record, members)
    else:
        yield {"kind": LogEventKind.COMMITTED, **record}


def _text_record(text: str) -> _GroupRecord | dict[str, Any] | None:
    commit, match = _COMMIT.search(text), _RECORD.search(text)
    if commit is not None:
        return {"group": commit["group"], "time": int(commit["time"])}
    if match is None:
        return None
    assignors = set(_RECORD_ASSIGNOR.findall(match["members"]))
    assignor = assignors.pop() if len(assignors) == 1 else None
    members = _RECORD_MEMBER.findall(match["members"])
    return _GroupRecord(match["group"], int(match["number"]), members, assignor, None)


def _json_record(text: str) -> _GroupRecord | dict[str, Any]:
    document = json.loads(text)
    group, value = document["key"]["data"]["group"], document["value"]["data"]
    if "commitTimestamp" in value:
        return {"group": group, "time": int(value["commitTimestamp"])}
    members = [one["memberId"] for one in value["members"]]
    time, assignor = value.get("currentStateTimestamp"), value.get("protocol")
    return _GroupRecord(group, int(value["generation"]), members, assignor, time)


def _events_of(record: _GroupRecord, known: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
    before, known[record.group] = known.get(record.group, []), record.members
    shared = {**_CLASSIC, "group": record.group, "time": record.time}
    for kind, names, others in (
        (LogEventKind.JOINED, record.members, before),
        (LogEventKind.LEFT, before, record.members),
    ):
        yield from (shared | {"kind": kind, "member": one} for one in names if one not in others)
    yield shared | {"kind": LogEventKind.PREPARING, "number": record.number - 1}
    size, end = len(record.members), LogEventKind.ASSIGNED
    if not record.members:
        end = LogEventKind.EMPTY
    for kind in (LogEventKind.STABILIZED, end):
        yield {**shared, "kind": kind, "number": record.number, "size": size} | (
            {} if record.assignor is None else {"assignor": record.assignor}
        )


def _event_fields(message: _Message, groups: dict[str, str]) -> dict[str, Any] | None:
    """Return the fields of the event in a message, or None for unknown messages.

    ``groups`` has the group of each librdkafka client, for messages that contain no group.
    """
    text = message.text
    for rule in message.rules.get(text.partition(" ")[0], ()):
        match = rule.pattern.match(text)
        if match is not None:
            found = {name: value for name, value in match.groupdict().items() if value is not None}
            fields = {**rule.fields, **message.fields, **found, "kind": rule.kind}
            return fields if _complete(fields, groups) else None
    return None


def _complete(fields: dict[str, Any], groups: dict[str, str]) -> bool:
    """Convert numbers, add the group of the client, and return whether the group is known."""
    for name in ("number", "size", "session_timeout", "rebalance_timeout"):
        if name in fields:
            fields[name] = int(fields[name])
    if fields.get("instance") in ("None", "null"):
        del fields["instance"]
    client = fields.get("client")
    if client is not None:
        if "group" in fields:
            groups[client] = fields["group"]
        elif client in groups:
            fields["group"] = groups[client]
    return "group" in fields


def _message_of(line: bytes) -> _Message | None:
    if line.startswith(b"{"):
        line = _text_in_json(line) or line
    start = line.find(_BROKER)
    if start >= 0:
        return _coordinator_message(line, start)
    start = line.find(_JAVA)
    if start >= 0:
        end = line.find(b"] ", start)
        prefix = _CLIENT.search(line[start:end].decode(errors="replace"))
        if prefix is None:
            return None
        fields = {name: value for name, value in prefix.groupdict().items() if value is not None}
        return _Message(_decoded(line[end + 2 :]), _SECTIONS["java client"], start, fields)
    handle = _HANDLE.search(line) if _NATIVE in line else None
    if handle is not None:
        text, client = _decoded(line[handle.end() :]), handle[1].decode(errors="replace")
        return _Message(text, _SECTIONS["librdkafka"], handle.start(), {"client": client})
    return None


def _coordinator_message(line: bytes, start: int) -> _Message | None:
    end = line.find(b"]", start)
    if end < 0:
        return None
    text = _decoded(line[end + 1 :].lstrip(b": "))
    match = _GROUP_AND_MEMBER.match(text)
    if match is None:
        return _Message(text, _SECTIONS["classic coordinator"], start, _CLASSIC)
    fields = {name: value for name, value in match.groupdict().items() if value is not None}
    return _Message(text[match.end() :], _SECTIONS["new coordinator"], start, fields)


def _decoded(text: bytes) -> str:
    """Decode a message, and remove the name of the logger's class at its end."""
    text = text.rstrip()
    if text.endswith(b")"):
        at = text.rfind(b" (")
        if text.startswith(_LAYOUT_ENDS, at):
            text = text[:at]
    return text.decode(errors="replace").rstrip()


def _text_in_json(line: bytes) -> bytes | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    values = document.values() if isinstance(document, dict) else ()
    texts = (value.encode(errors="replace") for value in values if isinstance(value, str))
    return next((text for text in texts if any(prefix in text for prefix in _PREFIXES)), None)


_DATE = re.compile(
    rb"(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)"
    rb"(?: ?(Z|[+-]\d\d:?\d\d)(?!\d))?"
)
_EPOCH = re.compile(rb"\|(\d{10})\.(\d{3})\|")
_JSON_EPOCH = re.compile(rb'"[\w@]*(?:time\w*|ts)": ?"?(\d{13})\b')
_CLOCK = re.compile(rb"(?<![\d:])\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")
_START = datetime.fromtimestamp(0, UTC)
_SEARCHED_PREFIX = 300
"""Maximum number of bytes before a message that can contain its time."""
_DAY_MS = 86_400_000


class _Clock:
    """Parser of the times of log lines. Times without a date increase across midnight."""

    def __init__(self) -> None:
        self._minutes: dict[bytes, int] = {}
        self._day = 0
        self._last = 0

    def read(self, line: bytes, start: int) -> int | None:
        """Return the time of a log line in ms since 1970, or None if the line has no time."""
        # Kafka's own layout, "[2024-05-01 12:00:00,250]": one lookup per line.
        known = self._minutes.get(line[:18])
        if known is not None and line[20:21] == b"," and line[24:25] == b"]":
            second, fraction = line[18:20], line[21:24]
            if second.isdigit() and fraction.isdigit():
                return known + int(second) * 1000 + int(fraction)
        # The fields of JSON are in any order.
        is_json = line.startswith(b"{")
        prefix = line[:MAX_LINE] if is_json else line[: min(start, _SEARCHED_PREFIX)]
        match = _DATE.search(prefix)
        if match is not None:
            ms = _ms_since_1970(match[1], match[2] or b"Z")
            if ms is not None and match.span() == (1, 24):
                self._minutes[line[:18]] = ms - ms % 60_000
            return ms
        match = _EPOCH.search(prefix) or (_JSON_EPOCH.search(prefix) if is_json else None)
        if match is not None:
            return int(b"".join(match.groups()))
        match = _CLOCK.search(prefix)
        ms = None if match is None else _ms_since_1970(b"1970-01-01T" + match[0], b"Z")
        if ms is None:
            return None
        if ms < self._last - _DAY_MS // 2:
            self._day += 1
        self._last = ms
        return self._day * _DAY_MS + ms


def _ms_since_1970(moment: bytes, zone: bytes) -> int | None:
    try:
        time = datetime.fromisoformat((moment.replace(b"/", b"-") + zone).decode())
    except ValueError:
        return None
    return (time - _START) // timedelta(milliseconds=1)


class RebalanceCause(StrEnum):
    """Cause of a rebalance according to a log."""

    JOIN = "join"
    RESTART = "restart"
    LEAVE = "leave"
    SESSION_TIMEOUT = "session timeout"
    POLL_TIMEOUT = "poll timeout"
    REBALANCE_TIMEOUT = "rebalance timeout"
    METADATA = "metadata"
    SUBSCRIPTION = "subscription"
    COOPERATIVE = "cooperative"
    STATIC_MEMBER = "static member"
    PROTOCOL = "protocol"
    COORDINATOR = "coordinator"
    OTHER_MEMBER = "other member"
    UNKNOWN = "unknown"


def entries_of_causes(kind: str) -> list[tuple[RebalanceCause, str]]:
    """Read the entries of one kind, such as patterns, from ``log_causes.txt``, by cause."""
    entries = read_data_file(__package__, "log_causes.txt")
    return [(RebalanceCause(cause), text) for each, cause, text in entries if each == kind]


_CAUSES = [(cause, re.compile(text, re.IGNORECASE)) for cause, text in entries_of_causes("pattern")]
_RANDOM_PART = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def cause_of(reason: str | None) -> RebalanceCause:
    """Return the cause of a rebalance from the reason in a message, or UNKNOWN."""
    # Without the random parts of member ids, a log has few reasons.
    return _cause_of_text(_RANDOM_PART.sub("", reason)) if reason else RebalanceCause.UNKNOWN


@lru_cache(maxsize=4096)
def _cause_of_text(reason: str) -> RebalanceCause:
    return next(
        (cause for cause, pattern in _CAUSES if pattern.search(reason)), RebalanceCause.UNKNOWN
    )


@lru_cache(maxsize=4096)
def client_of(member: str) -> str:
    """Return the client id or group instance id at the start of a member id.

    A member id without a client id, as in the consumer protocol, is returned unchanged.
    """
    return _RANDOM_PART.sub("", member) or member
