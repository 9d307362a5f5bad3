"""Read logs, and summarise the rebalances of each group: rates, storms, causes, remedies."""

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from kassay.experiments.history import log_messages
from kassay.experiments.history.log_messages import LogEvent, RebalanceCause, client_of
from kassay.experiments.history.log_rebalances import LogRebalance, rebalances_of_log
from kassay.reference.documents.files import STDIN, location, name_of, open_binary, without_gzip
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Protocol

STORM_SIZE = 5
"""Minimum number of rebalances in a storm, a series of frequent rebalances."""
STORM_GAP_MS = 120_000
"""Maximum time in ms from the end of a rebalance to the start of the next one in a storm."""
_SHOWN_STORMS = 5
_SHOWN_CAUSES = 3
_SHOWN_LINES = 3
_MAX_CLIENTS = 5_000
"""Maximum number of counted client ids; above it, ids with one rebalance are dropped."""
_HOUR_MS = 3_600_000
_MIN_COUNT = 2
"""Minimum number of rebalances with one cause for which kassay recommends a change."""
_STUCK = (RebalanceCause.POLL_TIMEOUT, RebalanceCause.REBALANCE_TIMEOUT)
"""Causes of a leave that static membership would only hide, because the client does not poll."""


@dataclass(slots=True, kw_only=True)
class _Rebalances:
    """Number of rebalances of one cause, the clients that caused them, and their log lines."""

    rebalances: int = 0
    rejoins: int = 0
    clients: Counter[str] = field(default_factory=Counter)
    lines: list[LogEvent] = field(default_factory=list)

    def add(self, one: LogRebalance, clients: Iterable[str]) -> None:
        self.rebalances += 1
        self.rejoins += one.cause is RebalanceCause.RESTART
        self.clients.update(clients)
        if len(self.clients) > _MAX_CLIENTS:
            self.clients = Counter({one: n for one, n in self.clients.items() if n > 1})
        if len(self.lines) < _SHOWN_LINES:
            # The line with the reason explains more than the lines around it.
            reason = (one.reason or "").encode()
            shown = [each for each in one.lines if reason and reason in each.text] or one.lines
            self.lines += shown[:1]


@dataclass(slots=True, kw_only=True)
class Storm(_Rebalances):
    """Storm: many rebalances in a short time. Times are in ms since 1970."""

    started: int
    ended: int
    not_stable_ms: int = 0
    causes: Counter[RebalanceCause] = field(default_factory=Counter)

    def record(self) -> dict[str, Any]:
        """Return the storm as JSON."""
        cause, number = self.causes.most_common(1)[0]
        client, of_client = next(iter(self.clients.most_common(1)), (None, 0))
        return {
            "from": time_text(self.started),
            "to": time_text(self.ended),
            "rebalances": self.rebalances,
            "not_stable_seconds": round(self.not_stable_ms / 1000, 3),
            "cause": str(cause),
            "rebalances_with_cause": number,
            "member": client,
            "rebalances_of_member": of_client,
            "lines": _line_records(self.lines),
        }


@dataclass(slots=True)
class Commits:
    """Number of offset commits of a group, and the longest time (ms) between two of them."""

    first: LogEvent
    last: LogEvent
    number: int = 0
    paused: LogEvent | None = None  # last commit before the longest pause
    pause_ms: int = 0

    def add(self, event: LogEvent) -> None:
        """Count a commit, and update the longest time between two commits."""
        self.number += 1
        pause = (event.time or 0) - (self.last.time or 0)
        if pause > self.pause_ms:
            self.paused, self.pause_ms = self.last, pause
        if pause >= 0:
            self.last = event

    def record(self) -> dict[str, Any]:
        """Return the commits as JSON."""
        span = max(_HOUR_MS, (self.last.time or 0) - (self.first.time or 0))
        return {
            "commits": self.number,
            "commits_per_hour": round(self.number * _HOUR_MS / span, 2),
            "from": time_text(self.first.time),
            "to": time_text(self.last.time),
            "longest_pause_seconds": round(self.pause_ms / 1000, 3),
            "pause_from": None if self.paused is None else time_text(self.paused.time),
            "lines": _line_records([self.paused or self.first]),
        }


class GroupLogSummary:
    """Summary of a group, built from its rebalances and commits one by one."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._rebalances = 0
        self._hours: Counter[int] = Counter()
        self._causes: dict[RebalanceCause, _Rebalances] = {}
        self._preventable: dict[RebalanceCause, _Rebalances] = {}
        self._storm: Storm | None = None
        self._storms: list[Storm] = []
        self._num_storms = 0
        self._first: int | None = None
        self._last: int | None = None
        self._not_stable_ms = 0
        self._covered_until = 0
        self._absences: dict[RebalanceCause, int] = {}
        self._members: int | None = None
        self._protocols: Counter[Protocol] = Counter()
        self._assignors: Counter[str] = Counter()
        self._settings: dict[str, LogEvent] = {}
        self._commits: Commits | None = None

    def add_commit(self, event: LogEvent) -> None:
        """Add an offset commit."""
        self._commits = self._commits or Commits(event, event)
        self._commits.add(event)

    def add(self, one: LogRebalance) -> None:
        """Add a rebalance to the counts, the storms and the causes."""
        self._rebalances += 1
        self._protocols[one.protocol] += 1
        if one.members is not None:
            self._members = one.members
        if one.assignor:
            self._assignors[one.assignor] += 1
        if one.settings is not None and len(self._settings) < _MAX_CLIENTS:
            self._settings[client_of(one.settings.member or "")] = one.settings
        for each, ms in one.absences.items():
            self._absences[each] = max(ms, self._absences.get(each, 0))
        clients, cause = _clients(one), one.leave_cause or one.cause
        self._causes.setdefault(cause, _Rebalances()).add(one, clients)
        if one.leave_cause not in _STUCK:
            self._preventable.setdefault(one.cause, _Rebalances()).add(one, clients)
        if one.timed_out and one.cause is not RebalanceCause.POLL_TIMEOUT:
            count = self._preventable.setdefault(RebalanceCause.POLL_TIMEOUT, _Rebalances())
            count.add(one, map(client_of, one.timed_out))
        if one.started is not None:
            self._add_time(one, one.started)

    def _add_time(self, one: LogRebalance, started: int) -> None:
        ended = started if one.ended is None else max(started, one.ended)
        self._first = started if self._first is None else min(self._first, started)
        self._last = ended if self._last is None else max(self._last, ended)
        self._hours[started // _HOUR_MS] += 1
        self._not_stable_ms += max(0, ended - max(started, self._covered_until))
        self._covered_until = max(self._covered_until, ended)
        storm = self._storm
        if storm is None or started - storm.ended > STORM_GAP_MS:
            self._end_storm()
            self._storm = storm = Storm(started=started, ended=ended)
        storm.add(one, _clients(one))
        storm.not_stable_ms += one.not_stable_ms
        storm.causes[one.leave_cause or one.cause] += 1
        storm.ended = max(storm.ended, ended)

    @property
    def _protocol(self) -> Protocol | None:
        return next((one for one, _ in self._protocols.most_common(1)), None)

    def _end_storm(self) -> None:
        storm, self._storm = self._storm, None
        if storm is not None and storm.rebalances >= STORM_SIZE:
            self._num_storms += 1
            longest = sorted((*self._storms, storm), key=lambda one: (-one.rebalances, one.started))
            self._storms = longest[:_SHOWN_STORMS]

    def record(self) -> dict[str, Any]:
        """Return the summary as JSON, when all rebalances were added."""
        self._end_storm()
        causes = sorted(self._causes.items(), key=lambda item: -item[1].rebalances)
        hours = [
            {"from": time_text(hour * _HOUR_MS), "rebalances": count}
            for hour, count in sorted(self._hours.items())
        ]
        seconds = None if self._first is None or self._last is None else self._last - self._first
        return {
            "id": self._group,
            "protocol": None if self._protocol is None else str(self._protocol),
            "from": time_text(self._first),
            "to": time_text(self._last),
            "members": self._members,
            "rebalances": self._rebalances,
            # A shorter time counts as one hour, so that two rebalances are no high rate.
            "rebalances_per_hour": None
            if seconds is None
            else round(self._rebalances / max(1.0, seconds / _HOUR_MS), 2),
            "busiest_hour": max(hours, key=itemgetter("rebalances"), default=None),
            "not_stable_seconds": round(self._not_stable_ms / 1000, 3),
            "storms": self._num_storms,
            "longest_storms": [storm.record() for storm in self._storms],
            "causes": [
                {
                    "cause": str(cause),
                    "rebalances": count.rebalances,
                    "text": f"{count.rebalances} of {self._rebalances} rebalances: "
                    f"{_TEXTS[cause]}{_rejoins(count)}{_most(count)}.",
                    "members": dict(count.clients.most_common(_SHOWN_LINES)),
                    "lines": _line_records(count.lines),
                }
                for cause, count in causes[:_SHOWN_CAUSES]
            ],
            "changes": list(self._changes()),
            "hours": hours,
            "commits": None if self._commits is None else self._commits.record(),
        }

    # ---- Changes that help ----------------------------------------------------

    def _changes(self) -> Iterator[dict[str, Any]]:
        is_consumer = self._protocol is Protocol.CONSUMER
        counts = {
            cause: one for cause, one in self._preventable.items() if one.rebalances >= _MIN_COUNT
        }
        counts.pop(RebalanceCause.COOPERATIVE, None)
        values: dict[str, object] = {
            "session_timeout": f"{'consumer.' if is_consumer else ''}session.timeout.ms",
            "place": " of the group" if is_consumer else "",
            "timeout": "the session timeout" if is_consumer else "session.timeout.ms",
            "assignor": f" ({self._assignors.most_common(1)[0][0]})" if self._assignors else "",
            "rebalances": self._rebalances,
        }
        others = {
            client: [name for name in one.supported.split(", ") if _COOPERATIVE not in name]
            for client, one in self._settings.items()
            if one.supported and _COOPERATIVE in one.supported
        }
        is_cooperative = (
            RebalanceCause.COOPERATIVE in self._causes
            or any(_COOPERATIVE in name for name in self._assignors)
            or [] in others.values()
        )
        if not (is_consumer or is_cooperative) and self._rebalances >= STORM_SIZE:
            count = max(self._causes.values(), key=lambda one: one.rebalances)
            if others:
                client = next(iter(others))
                values |= {"others": " and ".join(others[client]), "supporter": client}
                count = _Rebalances(lines=[self._settings[client]])
            counts[RebalanceCause.COOPERATIVE] = count
        for cause, text in _CHANGES:
            known = values | (self._evidence(cause, counts[cause]) if cause in counts else {})
            # The first sentence with known values applies.
            if cause in counts and known.keys() >= set(_NAME.findall(text)):
                yield {
                    "setting": _SETTINGS[cause].format(**known),
                    "text": text.format(**known),
                    "lines": _line_records(counts.pop(cause).lines[:1]),
                }

    def _evidence(self, cause: RebalanceCause, count: _Rebalances) -> dict[str, object]:
        """Return the values of a sentence about a change, without unknown values."""
        values: dict[str, object] = {"times": _times(count.rebalances), "most": _most(count)}
        clients = (client for client, _ in count.clients.most_common())
        owner = next((one for one in (*clients, *self._settings) if one in self._settings), None)
        absence, longest, timeout = self._absences.get(cause), 0, None
        known: dict[str, int] = {}
        if owner is not None:
            is_poll, settings = cause is RebalanceCause.POLL_TIMEOUT, self._settings[owner]
            timeout = settings.rebalance_timeout if is_poll else settings.session_timeout
            values |= {"owner": owner} | ({"current": timeout} if timeout else {})
        if cause is RebalanceCause.RESTART:
            absence = self._absences.get(RebalanceCause.SESSION_TIMEOUT)
            longest = max(ms for each, ms in self._absences.items() if each not in _STUCK)
            known["longest"] = longest
        if absence is not None and absence + (timeout or longest) >= longest:
            known["absence"] = absence if timeout else max(absence, longest)
            # A member that is removed has already been silent for its timeout.
            known |= {"total": absence + timeout} if timeout else {}
        return values | {name: -(-ms // 1000) for name, ms in known.items()}


_COOPERATIVE = "cooperative"
_NAME = re.compile(r"\{(\w+)\}")
_TEXTS = dict(log_messages.entries_of_causes("text"))
_SETTINGS = dict(log_messages.entries_of_causes("setting"))
_CHANGES = log_messages.entries_of_causes("change")
"""Per cause: the sentence about it, the setting to change, and sentences about the change."""


def _rejoins(count: _Rebalances) -> str:
    times = _times(count.rejoins).lower()
    return f", or joined again after this ({times})" if count.rejoins else ""


def _most(count: _Rebalances) -> str:
    if not count.clients:
        return ""
    client, number = count.clients.most_common(1)[0]
    if number == 1:
        return f", such as {client}"
    return f", most often {client} ({_times(number).lower()})"


def _times(number: int) -> str:
    return "Once" if number == 1 else f"{number} times"


def _clients(one: LogRebalance) -> Iterable[str]:
    if one.member is not None:
        return (client_of(one.member),)
    changed = one.expired or one.timed_out or one.left or one.joined
    return tuple(dict.fromkeys(map(client_of, changed)))


def _line_records(lines: Sequence[LogEvent]) -> list[dict[str, object]]:
    return [one.line_record() for one in lines[:_SHOWN_LINES]]


def time_text(ms: int | None) -> str | None:
    """Format a time in ms since 1970 as text without a time zone."""
    if ms is None:
        return None
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}"


DUMP_SUFFIXES = (".txt", ".log", ".out")
_DUMP = re.compile(
    rb"^Dumping |^[|\s]*(?:baseOffset: \d+ )?offset: \d+ .*?(?:CreateTime|LogAppendTime): "
)
_SEARCHED_LINES = 1000
"""Number of lines in which a dump must start, because log lines can precede it."""
_PARQUET_MAGIC = b"PAR1"
_SECOND_MS = 1000


def is_dump(path: Path) -> bool:
    """Return whether the first lines of a file contain output of ``kafka-dump-log.sh``."""
    with open_binary(path) as data:
        return any(_DUMP.match(line) for line in islice(data, _SEARCHED_LINES))


def log_files(paths: Sequence[str]) -> list[Path] | None:
    """Return the log files at paths, or None if the paths contain records of groups.

    The content decides, not the name: Parquet files and output of ``kafka-dump-log.sh`` are
    records, other files are logs. URIs are records. In a directory, only files with the suffix of
    a text and rotated logs such as ``server.log.2024-05-01-10`` are read. Raise InputError if the
    paths contain records and also logs.
    """
    logs: list[Path] = []
    records: list[Path] = []
    for name in paths:
        path = location(name)
        if path is None:
            return None
        if path != STDIN and not path.exists():
            raise InputError(f"{path}: no such file or directory; correct the path")
        for file in _files(path):
            has_records = file != STDIN and (is_parquet(file) or is_dump(file))
            (records if has_records else logs).append(file)
    if not logs:
        return None
    if records:
        raise InputError(
            f"{records[0]} contains records of __consumer_offsets, but {name_of(logs[0])} is a "
            "log; give records and logs to separate commands"
        )
    return logs


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = [file for file in sorted(path.rglob("*")) if file.is_file()]
    if any(file.suffix == ".parquet" for file in found):
        return []
    return [
        file for file in found if without_gzip(file).suffix in DUMP_SUFFIXES or ".log." in file.name
    ]


def is_parquet(path: Path) -> bool:
    """Return whether a file starts as a Parquet file."""
    with path.open("rb") as stream:
        return stream.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC


def summarise_logs(
    files: Sequence[Path], *, on_rebalance: Callable[[LogRebalance], None] | None = None
) -> list[dict[str, Any]]:
    """Summarise the rebalances in logs as one JSON record per group, sorted by id.

    The lines of all files are merged in order of their times. Rotated logs, and logs of several
    brokers and clients, can be given in any order. ``on_rebalance`` is called with each rebalance.
    Raise InputError if no line of the files is a message about a rebalance.
    """
    merged = heapq.merge(*map(events_of_file, files), key=lambda event: event.time or 0)
    found = summarise_events(_without_copies(merged), on_rebalance=on_rebalance)
    check_found(found, files)
    return found


def check_found(summaries: Sequence[object], files: Sequence[Path]) -> None:
    """Raise InputError if logs contain no message about a group."""
    if not summaries:
        raise InputError(
            f"{name_of(files[0])}: the file contains neither a message about a rebalance of a "
            "group nor output of kafka-dump-log.sh --offsets-decoder; captures of "
            "kafka-consumer-groups.sh and group documents show no history, use kassay plan for them"
        )


def summarise_events(
    events: Iterable[LogEvent], *, on_rebalance: Callable[[LogRebalance], None] | None = None
) -> list[dict[str, Any]]:
    """Summarise log messages in order of time, as one JSON record per group."""
    summaries: dict[str, GroupLogSummary] = {}

    def summary_of(group: str) -> GroupLogSummary:
        if group not in summaries:
            summaries[group] = GroupLogSummary(group)
        return summaries[group]

    def without_commits() -> Iterator[LogEvent]:
        for event in events:
            if event.kind is log_messages.LogEventKind.COMMITTED:
                summary_of(event.group).add_commit(event)
            else:
                yield event

    for rebalance in rebalances_of_log(without_commits()):
        summary_of(rebalance.group).add(rebalance)
        if on_rebalance is not None:
            on_rebalance(rebalance)
    return [summaries[group].record() for group in sorted(summaries)]


def events_of_file(file: Path) -> Iterator[LogEvent]:
    """Yield the messages about groups in a log file, in order of time.

    A message without a time gets the time of the previous message.
    """
    name, earlier, later = name_of(file), 0, 0
    first: int | None = None
    last: int | None = None
    with open_binary(file) as lines:
        for event in log_messages.read_log(lines, file=name):
            if event.time is None:
                yield event._replace(time=last)
                continue
            # Partitions of the offsets topic follow each other in any order.
            if last is not None and event.kind is not log_messages.LogEventKind.COMMITTED:
                earlier, later = earlier + (event.time < last), later + (event.time > last)
            first, last = event.time if first is None else first, event.time
            yield event
    if earlier > later and first is not None and last is not None and first - last >= _SECOND_MS:
        raise InputError(
            f"{name}: the times in the file descend; sort the lines so that the oldest is first"
        )


def _without_copies(events: Iterable[LogEvent]) -> Iterator[LogEvent]:
    time: int | None = None
    files: dict[bytes, str] = {}
    for event in events:
        if event.time != time:
            time, files = event.time, {}
        if time is None or files.setdefault(event.text, event.file) == event.file:
            yield event


def rebalance_record(one: LogRebalance) -> dict[str, Any]:
    """Return a rebalance as JSON."""
    return {
        "id": one.group,
        "protocol": str(one.protocol),
        "generation": one.number,
        "from": time_text(one.started),
        "to": time_text(one.ended),
        "cause": str(one.cause),
        "reason": one.reason,
        "member": one.member,
        "members": one.members,
        "assignor": one.assignor,
        "joined": one.joined,
        "left": one.left,
        "session_timeout": one.expired,
        "poll_or_rebalance_timeout": one.timed_out,
        "static_restart": one.replaced,
        "lines": [each.line_record() for each in one.lines],
    }
