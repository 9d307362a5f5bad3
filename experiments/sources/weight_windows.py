"""Compute the weights of partitions per time window from recorded traffic.

Times are in UTC, and all windows have the same length: daylight saving time has no effect.
A weight is known if samples cover 95% of its window. Others are assumed from known ones, never 0.
"""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from kassay.experiments.sources.capture_contents import JsonFields
from kassay.experiments.sources.merge_captures import PartitionKey
from kassay.experiments.sources.tool_documents import CLUSTER_LABELS, series_of
from kassay.reference.documents.files import (
    LocatedDocument,
    as_array,
    as_object,
    open_text,
    read_json_documents,
    read_text,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import ASSUMED, MAX_WEIGHT

DAY, WEEK = 86_400, 604_800
_MONDAY = 345_600
"""Start of the first Monday after 1 January 1970, in seconds since 1970."""
_MAX_WINDOWS = 20_000
"""Maximum number of windows, two years of hours. More mostly mean a damaged time."""
_MIN_RISES = 20
"""Minimum number of rises per fall of values that can be a counter."""
_MAX_UNSEEN = 10
"""Maximum number of partitions without samples per partition with samples."""
_MAX_SECONDS = 10**11
"""Limit of times in seconds since 1970. Greater times are in milliseconds."""
_COUNTERS = ("offset", "offsets", "_total", "_count")
"""Ends of the names of metrics that count up."""
_RECORDED = re.compile(
    r'{\s*"(status|data|time|cluster|end_offsets|key)"\s*:\s*[^\s\[]|\[.*,\d+\]::|(?![{\[])'
)
_COMMIT = re.compile(
    r"\[(?P<group>.*),(?P<topic>[^,]*),(?P<partition>\d+)\]::(OffsetAndMetadata\(offset=|"
    r"\[OffsetMetadata\[)(?P<offset>\d+),.*(\bcommitTimestamp=|,CommitTime )(?P<time>\d+)"
)
"""Record of kafka-console-consumer.sh with a formatter for offsets."""
_Row = tuple[str, object, str, object, object, str | None]
"""Position in the file, time, topic, partition, value, and cluster if the file shows it."""
_Period = tuple[int, int, Decimal]  # begin, end, number of records


class Cycle(StrEnum):
    """Period after which traffic repeats: a day or a week."""

    DAY = "24h"
    WEEK = "168h"

    @property
    def seconds(self) -> int:
        """Return the length of the cycle in seconds."""
        return DAY if self is Cycle.DAY else WEEK


@dataclass(frozen=True, slots=True)
class RecordedWindows:
    """Weights of partitions per time window, in order of time.

    The first window starts at ``start``, in seconds since 1970. Each window lasts ``seconds``; its
    name is its start in UTC. ``weights`` has, by topic, one row per partition with one integer per
    window. ``unknown`` marks assumed weights: the partition's mean weight at the same time of other
    days or, before its first sample, the topic's mean weight. ``resets`` has a note per topic.
    """

    start: int
    seconds: int
    names: tuple[str, ...]
    weights: Mapping[str, Sequence[Sequence[int]]]
    unknown: Mapping[str, Sequence[Sequence[bool]]]
    resets: Mapping[str, str]
    remarks: Sequence[str] = ()
    unfolded: "RecordedWindows | None" = None

    def cycle(self, seconds: int) -> "RecordedWindows":
        """Sum the windows at equal times of the day or of the week.

        A sum is unknown if all its weights are. Raise InputError if the windows cover no cycle.
        """
        count, recorded = seconds // self.seconds, len(self.names)
        if recorded < count:
            text = f"--cycle requires {count} windows, but {recorded} are recorded; remove --cycle"
            raise InputError(text)
        skipped = recorded % count
        first = skipped + ((_MONDAY % seconds - self.start) // self.seconds - skipped) % count
        start = self.start + first * self.seconds
        form = "%a %H:%M" if seconds == WEEK else "%H:%M"
        places = [skipped + (first - skipped + n) % count for n in range(count)]
        return replace(
            self,
            start=start,
            names=tuple(_text(start + n * self.seconds, form) for n in range(count)),
            weights={
                topic: [[sum(row[at::count]) for at in places] for row in rows]
                for topic, rows in self.weights.items()
            },
            unknown={
                topic: [[all(row[at::count]) for at in places] for row in rows]
                for topic, rows in self.unknown.items()
            },
            remarks=[*self.remarks, f"weights are sums of {recorded // count} cycles"],
            unfolded=self,
        )

    def rows(self, topic: str, count: int) -> list[tuple[int, ...]]:
        """Return the weights of a topic's partitions, with mean weights for missing partitions."""
        rows = [*map(tuple, self.weights[topic])]
        mean = tuple(_mean(column) or 0 for column in zip(*rows, strict=True))
        return rows + [mean] * (count - len(rows))

    def notes(self, counts: Mapping[str, int]) -> Iterator[str]:
        """Yield notes on counter resets and on assumed weights."""
        recorded = self.unfolded or self
        yield from (self.resets[topic] for topic in counts if topic in self.resets)
        yield from self.remarks
        new, gaps = list[str](), set[int]()
        for topic, count in counts.items():
            rows = recorded.unknown.get(topic, ())
            starts = [row.index(False) if False in row else len(row) for row in rows]
            starts += [1] * (count - len(rows))
            new += [f"{topic}-{number}" for number, start in enumerate(starts) if start]
            for row, start in zip(rows, starts, strict=False):
                gaps.update(at for at in range(start, len(row)) if row[at])
        if new:
            names = new[0] + (f" and {len(new) - 1} more" if new[1:] else "")
            yield f"{ASSUMED}{names} had the mean weight of the topic before the first sample"
        if gaps:
            yield (
                f"{ASSUMED}the weights that are unknown in {len(gaps)} of {len(recorded.names)} "
                f"windows, such as {recorded.names[min(gaps)]} UTC, are means of known ones"
            )


def is_recording(path: Path) -> bool:
    """Return whether a file contains recorded traffic, and not weights by topic."""
    with open_text(path) as stream:
        start = stream.read(500).lstrip()
    return bool(_RECORDED.match(start))


def parse_window(text: str) -> int:
    """Convert a value of --window such as ``15m``, ``1h`` or ``1d`` to seconds."""
    match = re.fullmatch("([1-9][0-9]{0,3})([mhd])", text)
    seconds = int(match[1]) * {"m": 60, "h": 3_600, "d": DAY}[match[2]] if match else 0
    if not seconds or DAY % seconds:
        raise InputError(f"--window must divide a day, such as 15m, 1h or 1d, got {text!r}")
    return seconds


def read_weight_windows(path: Path, *, seconds: int = 3_600) -> RecordedWindows:
    """Read recorded traffic as weights per time window of ``seconds`` seconds.

    The growth between two samples is spread evenly over this time. Weights are rounded to
    integers, half to even. Raise InputError if the file is damaged or contradicts itself.
    """
    recording = _recording(path, read_text(path))
    samples = _samples(path, recording)
    resets: dict[str, str] = {}
    known: dict[str, dict[int, dict[int, int]]] = defaultdict(dict)
    steps = Counter(b - a for values in samples.values() for a, b in pairwise(sorted(values)))
    step = max(steps, key=lambda gap: (steps[gap], -gap), default=0)
    shift = recording.shift * step
    remarks = [] if recording.are_counters else [*_counter_remarks(samples)]
    if recording.sources == "groups":
        remarks.append("weights are consumed messages, from committed offsets")
    for (topic, number), values in sorted(samples.items()):
        periods = (
            _growth(topic, number, values, resets)
            if recording.are_counters
            else ((time + shift, time + shift + step, value) for time, value in values.items())
        )
        known[topic][number] = _known_weights(f"{path}: {topic}-{number}", periods, seconds)
    windows = sorted(chain.from_iterable(chain.from_iterable(t.values()) for t in known.values()))
    count = windows[-1] - windows[0] + 1 if windows else 0
    if not 1 <= count <= _MAX_WINDOWS:
        raise InputError(
            f"{path}: the number of windows must be from 1 to {_MAX_WINDOWS:,}, got {count:,} "
            f"windows of {seconds} s, with samples {step} s apart; change --window, or check the "
            "times"
        )
    span = range(windows[0], windows[-1] + 1)
    names = tuple(_text(window * seconds, "%Y-%m-%d %H:%M") for window in span)
    weights, unknown = {}, {}
    for topic, table in known.items():
        if max(table) > _MAX_UNSEEN * len(table):
            raise InputError(
                f"{path}: {topic}-{max(table)}: only {len(table)} partitions of the topic have "
                "samples; check the partition number"
            )
        rows = [[table.get(n, {}).get(window) for window in span] for n in range(max(table) + 1)]
        if any(table.values()):  # else as a topic without samples
            weights[topic] = _filled(rows, DAY // seconds)
            unknown[topic] = [[value is None for value in row] for row in rows]
    return RecordedWindows(span[0] * seconds, seconds, names, weights, unknown, resets, remarks)


@dataclass(frozen=True, slots=True)
class _Recording:
    """Samples of traffic in a file.

    ``shift`` is -1 if the times are the ends of periods, else 0. The last entry of a row is the
    cluster or, for commits, the group.
    """

    rows: Iterable[_Row]
    are_counters: bool = False
    shift: int = 0
    sources: str = "clusters"


def _recording(path: Path, text: str) -> _Recording:
    if re.match(r'\s*(\[|{\s*"key")', text):
        return _Recording(_commit_rows(path, text), are_counters=True, sources="groups")
    if not text.lstrip().startswith("{"):
        return _Recording(_csv_rows(path, text))
    documents = [*read_json_documents(text.splitlines(keepends=True), name=str(path))]
    if (error := next((one.error for one in documents if one.error), None)) is not None:
        raise error
    first = documents[0].value
    if isinstance(first, Mapping) and "end_offsets" in first:
        return _Recording(_offset_rows(path, documents), are_counters=True)
    series = [*series_of(JsonFields(as_object(first, str(path)), str(path)), "matrix")]
    are_counters = any(labels.get("__name__", "").endswith(_COUNTERS) for _, labels in series)
    return _Recording(_series_rows(path, series), are_counters, shift=-1)


def _csv_rows(path: Path, text: str) -> Iterator[_Row]:
    rows = csv.reader(text.splitlines())
    header = next(filter(None, rows), [])
    columns = [cell.strip().lower() for cell in header]
    if {*columns} - {"cluster"} != {"time", "topic", "partition", "value"}:
        raise InputError(
            f"{path}:{rows.line_num}: expected weights as JSON, or CSV with columns time, topic, "
            f"partition, value and optionally cluster, got {','.join(header)[:60]!r}"
        )
    for cells in rows:
        place = f":{rows.line_num}"
        if len(cells) != len(columns):
            raise InputError(f"{path}{place}: expected {len(columns)} values, got {len(cells)}")
        row = dict(zip(columns, cells, strict=True))
        yield place, row["time"], row["topic"], row["partition"], row["value"], row.get("cluster")


def _commit_rows(path: Path, text: str) -> Iterable[_Row]:
    """Return the last committed offset of each partition in each second."""
    found: dict[tuple[str, str, str, int], _Row] = {}
    is_json = text.lstrip().startswith("{")
    for place, record in (_json_commits if is_json else _text_commits)(path, text):
        group, topic, number = record["group"], record["topic"], str(record["partition"])
        row = place, record["time"], topic, number, record["offset"], group
        found[group, topic, number, int(record["time"]) // 1_000] = row
    return found.values()


def _text_commits(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for line, record in enumerate(text.splitlines(), 1):
        match = _COMMIT.match(record)
        if match is not None:
            yield f":{line}", match.groupdict()
        elif record.strip() and "]::null" not in record.lower():  # a deleted offset
            raise InputError(f"{path}:{line}: expected a committed offset, got {record[:60]!r}")


def _json_commits(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    # Some releases print no line ends between two records.
    lines = text.replace('}{"key":', '}\n{"key":').splitlines(keepends=True)
    for at, document in enumerate(read_json_documents(lines, name=str(path)), 1):
        if document.error is not None:
            raise document.error
        record: Any = document.value
        try:
            key, value = record["key"]["data"], record["value"]
            if value is not None and "topic" in key:  # else a group, or a deleted offset
                data = value["data"]
                yield f": record {at}", {**key, **data, "time": data["commitTimestamp"]}
        except (KeyError, TypeError):
            raise InputError(
                f"{path}: record {at}: expected a committed offset; remove the record"
            ) from None


def _series_rows(
    path: Path, series: Iterable[tuple[JsonFields, Mapping[str, str]]]
) -> Iterator[_Row]:
    for one, labels in series:
        place = one.where.removeprefix(str(path))
        topic, partition, cluster = (
            next((labels[name] for name in names if name in labels), None)
            for names in (("topic", "topic_name"), ("partition", "partition_id"), CLUSTER_LABELS)
        )
        if topic is None or partition is None:
            raise InputError(
                f"{one.where}: no label {'topic' if topic is None else 'partition'} in the series; "
                "query sum by (topic, partition) (...)"
            )
        for at, sample in enumerate(as_array(one.table.get("values"), f"{one.where}.values")):
            time, value, *_ = (*as_array(sample, f"{one.where}.values[{at}]"), None, None)
            yield f"{place}.values[{at}]", time, topic, partition, value, cluster


def _offset_rows(path: Path, documents: Iterable[LocatedDocument]) -> Iterator[_Row]:
    for document in documents:
        fields = JsonFields(as_object(document.value, document.where), document.where)
        place = document.where.removeprefix(str(path))
        time, cluster = fields.text("time"), fields.optional_text("cluster")
        offsets = fields.inner("end_offsets")
        for topic in offsets.table:
            for number, value in enumerate(as_array(offsets.table[topic], offsets.where)):
                yield place, time, topic, number, value, cluster


def _samples(path: Path, recording: _Recording) -> dict[PartitionKey, dict[int, Decimal]]:
    """Return sampled values by partition and time in seconds."""
    found: dict[PartitionKey, dict[int, Decimal]] = defaultdict(dict)
    clusters = set[str | None]()
    for place, time, topic, number, text, cluster in recording.rows:
        try:
            moment, partition = (_time(time), (topic, int(_number(number, is_whole=True))))
            is_known = str(text).lower() not in ("none", "nan", "")
            value = _number(text) if is_known else None
        except InputError as error:
            raise InputError(f"{path}{place}: {error}") from None
        clusters.add(cluster)
        if len(clusters) > 1:
            first, second = sorted(map(repr, clusters))
            raise InputError(
                f"{path}{place}: the file has samples of two {recording.sources}, {first} and "
                f"{second}; keep one: filter the file, or its query by a label"
            )
        known = None if value is None else found[partition].setdefault(moment, value)
        if known != value:
            raise InputError(
                f"{path}{place}: {topic}-{number} has two values at {_text(moment)} UTC, {known} "
                f"and {value}; keep one, for example with the query max by (topic, partition)"
            )
    return found


@cache
def _time(value: object) -> int:
    """Parse an ISO 8601 time or a Unix time in s or ms. Return seconds since 1970."""
    text = str(value)
    try:
        if text.replace(".", "", 1).isdecimal():
            number = Decimal(text)
            seconds = int(number if number < _MAX_SECONDS else number / 1_000)
            return int(datetime.fromtimestamp(seconds, UTC).timestamp())
        time = datetime.fromisoformat(text)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise InputError(
            f"the time must be ISO 8601, seconds or milliseconds since 1970, got {value!r}"
        ) from None


def _number(value: object, *, is_whole: bool = False) -> Decimal:
    """Parse a number without loss of digits, or raise InputError."""
    try:
        number = Decimal(str(value))
        if 0 <= number <= MAX_WEIGHT and not (is_whole and number % 1):
            return number
    except InvalidOperation:
        pass
    kind = "an integer" if is_whole else "a number"
    raise InputError(f"expected {kind} from 0 to {MAX_WEIGHT}, got {value!r}")


def _growth(
    topic: str, number: int, values: Mapping[int, Decimal], resets: dict[str, str]
) -> Iterator[_Period]:
    """Yield the growth of a counter between samples, and add a note for each reset instead."""
    for begin, end in pairwise(sorted(values)):
        if values[begin] <= values[end]:
            yield begin, end, values[end] - values[begin]
        else:
            resets[topic] = (
                f"the offset of {topic}-{number} was reset from {values[begin]:f} to "
                f"{values[end]:f} at {_text(end)} UTC: the growth is unknown"
            )


def _counter_remarks(samples: Mapping[PartitionKey, Mapping[int, Decimal]]) -> Iterator[str]:
    ordered = ([values[time] for time in sorted(values)] for values in samples.values())
    steps = Counter((b > a) - (b < a) for values in ordered for a, b in pairwise(values))
    if steps[1] > _MIN_RISES * max(1, steps[-1]):
        yield f"{ASSUMED}the values, which almost never fall, are increases and not a counter"


def _known_weights(where: str, periods: Iterable[_Period], seconds: int) -> dict[int, int]:
    """Return the weight of each window that samples cover, by window number."""
    totals: dict[int, Decimal] = defaultdict(Decimal)
    covered = Counter[int]()
    for begin, end, amount in periods:
        if 2 * (end - begin) > 3 * seconds:
            continue  # the windows in which the records came are not known
        first, last = begin // seconds, (end - 1) // seconds
        for window in range(first, last + 1):
            shared = min(end, (window + 1) * seconds) - max(begin, window * seconds)
            totals[window] += amount if first == last else amount * shared / (end - begin)
            covered[window] += shared
            if 20 * covered[window] > 21 * seconds:
                raise InputError(f"{where}: samples overlap at {_text(begin)} UTC; remove one")
    return {
        window: round(total * seconds / covered[window])
        for window, total in totals.items()
        if 20 * covered[window] >= 19 * seconds
    }


def _filled(rows: Sequence[Sequence[int | None]], period: int) -> list[list[int]]:
    """Replace unknown weights by mean weights of the partition or of the topic."""
    of_topic = [_mean(column) for column in zip(*rows, strict=True)]
    mean = _mean(of_topic) or 0
    filled = []
    for row in rows:
        own, usual = _mean(row), [_mean(row[at::period]) for at in range(period)]
        first = next((at for at, value in enumerate(row) if value is not None), len(row))
        choices = (
            (value, of_topic[at] if at < first else None, usual[at % period], own, mean)
            for at, value in enumerate(row)
        )
        filled.append([next(one for one in each if one is not None) for each in choices])
    return filled


def _mean(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(Decimal(sum(known)) / len(known)) if known else None


def append_sample(path: Path, ends: Mapping[PartitionKey, int], *, cluster: str | None) -> None:
    """Append the end offsets and the current time to a file of recorded traffic."""
    offsets: dict[str, list[int | None]] = defaultdict(list)
    for (topic, number), offset in sorted(ends.items()):
        offsets[topic] += [None] * (number - len(offsets[topic])) + [offset]
    time = datetime.now(UTC).isoformat(timespec="seconds")
    sample = {"time": time, "cluster": cluster, "end_offsets": offsets}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(sample, ensure_ascii=False) + "\n")


def _text(time: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return datetime.fromtimestamp(time, UTC).strftime(form)
