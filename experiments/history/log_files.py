"""Read the logs of brokers and clients from files or standard input, in order of time."""

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kassay.experiments.history.log_messages import LogEvent, LogEventKind, read_log
from kassay.experiments.history.log_rebalances import LogRebalance, rebalances_of_log
from kassay.experiments.history.log_summary import GroupLogSummary, time_text
from kassay.reference.documents.input_files import STDIN, name_of, open_binary, without_gzip
from kassay.reference.documents.output_files import location
from kassay.reference.model.errors import InputError

DUMP_SUFFIXES = (".txt", ".log", ".out")
_DUMP = re.compile(
    rb"^Dumping |^[|\s]*(?:baseOffset: \d+ )?offset: \d+ .*?(?:CreateTime|LogAppendTime): "
)
_SEARCHED_LINES = 1000
"""Number of lines in which the start of a dump is searched; log lines may precede it."""
_PARQUET_MAGIC = b"PAR1"
_SECOND_MS = 1000


def is_dump(path: Path) -> bool:
    """Return whether a file contains output of ``kafka-dump-log.sh``, by its first lines."""
    with open_binary(path) as data:
        return any(_DUMP.match(line) for line in islice(data, _SEARCHED_LINES))


def log_files(paths: Sequence[str]) -> list[Path] | None:
    """Return the files to read as logs, or None if the paths contain records of groups.

    Content decides, not names: Parquet files and output of ``kafka-dump-log.sh`` are records, as
    are URIs; all other files are logs. In a directory, the files with the suffix of a text are
    read, and rotated logs such as ``server.log.2024-05-01-10``.

    Raises
    ------
    InputError
        If there are both records and logs.
    """
    logs: list[Path] = []
    records: list[Path] = []
    for name in paths:
        path = location(name)
        if path is None:
            return None
        if path != STDIN and not path.exists():
            raise InputError(f"{path}: no such file or directory")
        for file in _files(path):
            (records if file != STDIN and _has_records(file) else logs).append(file)
    if not logs:
        return None
    if records:
        raise InputError(
            f"{records[0]} contains records and {name_of(logs[0])} contains none; give records of "
            "__consumer_offsets and logs to separate commands"
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


def _has_records(file: Path) -> bool:
    with file.open("rb") as stream:
        if stream.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
            return True
    return is_dump(file)


def summarise_logs(
    files: Sequence[Path], *, on_rebalance: Callable[[LogRebalance], None] | None = None
) -> list[dict[str, Any]]:
    """Summarise the rebalances of all groups in logs: one JSON record per group, sorted by id.

    The files are read in parallel, line by line, in order of the times in them, so that rotated
    logs, several brokers and several clients can come in any order. ``on_rebalance`` receives each
    rebalance.

    Raises
    ------
    InputError
        If no line of the files is a message about a rebalance.
    """
    merged = heapq.merge(*map(events_of_file, files), key=lambda event: event.time or 0)
    found = summarise_events(_without_copies(merged), on_rebalance=on_rebalance)
    check_found(found, files)
    return found


def check_found(summaries: Sequence[object], files: Sequence[Path]) -> None:
    """Raise InputError if logs have no summary."""
    if not summaries:
        raise InputError(
            f"{name_of(files[0])}: the file contains neither a message about a rebalance of a "
            "group nor output of kafka-dump-log.sh --offsets-decoder; captures of "
            "kafka-consumer-groups.sh and group documents show no history, use kassay plan for them"
        )


def summarise_events(
    events: Iterable[LogEvent], *, on_rebalance: Callable[[LogRebalance], None] | None = None
) -> list[dict[str, Any]]:
    """Summarise the messages of groups in order of time: one JSON record per group."""
    summaries: dict[str, GroupLogSummary] = {}

    def summary_of(group: str) -> GroupLogSummary:
        if group not in summaries:
            summaries[group] = GroupLogSummary(group)
        return summaries[group]

    def without_commits() -> Iterator[LogEvent]:
        for event in events:
            if event.kind is LogEventKind.COMMITTED:
                summary_of(event.group).add_commit(event)
            else:
                yield event

    for rebalance in rebalances_of_log(without_commits()):
        summary_of(rebalance.group).add(rebalance)
        if on_rebalance is not None:
            on_rebalance(rebalance)
    return [summaries[group].record() for group in sorted(summaries)]


def events_of_file(file: Path) -> Iterator[LogEvent]:
    """Yield the messages about rebalances in a file, in the order of its lines.

    An event without a time has the time of the one before.
    """
    name, earlier, later = name_of(file), 0, 0
    first: int | None = None
    last: int | None = None
    with open_binary(file) as lines:
        for event in read_log(lines, file=name):
            if event.time is None:
                yield event._replace(time=last)
                continue
            # Partitions of the offsets topic follow each other in any order.
            if last is not None and event.kind is not LogEventKind.COMMITTED:
                earlier, later = earlier + (event.time < last), later + (event.time > last)
            first, last = event.time if first is None else first, event.time
            yield event
    if earlier > later and first is not None and last is not None and first - last >= _SECOND_MS:
        raise InputError(
            f"{name}: the times in the file descend; sort its lines from the first to the last"
        )


def _without_copies(events: Iterable[LogEvent]) -> Iterator[LogEvent]:
    """Drop messages that several files contain, as a log and a copy of a part of it."""
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
