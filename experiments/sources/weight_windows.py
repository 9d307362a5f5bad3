"""Weights per window from recorded traffic.

Times are UTC and all windows have one length, so that daylight saving time does not affect them. A
window is known if samples cover 95 % of it. Other weights are assumed from known ones, never 0.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TypeVar

from kassay.experiments.sources.merge_captures import PartitionKey
from kassay.reference.documents.input_files import read_text
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import ASSUMED, MAX_WEIGHT

DAY, WEEK = 86_400, 604_800
_MONDAY = 345_600
"""Second of the first Monday since 1970 began."""
_MAX_WINDOWS = 20_000
"""Two years of hours. More windows are mostly due to a damaged time."""
_MAX_PARTITIONS = 1_000_000
_MAX_UNSEEN = 10
"""Partitions without samples, in addition to as many as have samples."""
_MAX_SECONDS = 10**11
"""Greater times are milliseconds."""
_Row = tuple[str, object, str, object, object, str | None]
"""Position in the file, time, topic, partition, value, and cluster if it is shown."""
_Period = tuple[int, int, Decimal]
"""Begin and end in seconds since 1970, and number of records."""


_Value = TypeVar("_Value")


def _map_rows(
    table: Mapping[str, Sequence[Sequence[_Value]]],
    change: Callable[[Sequence[_Value]], Sequence[_Value]],
) -> dict[str, list[Sequence[_Value]]]:
    return {topic: [change(row) for row in rows] for topic, rows in table.items()}


@dataclass(frozen=True, slots=True)
class RecordedWindows:
    """Weights of partitions per window, in the order of time.

    Parameters
    ----------
    start
        Start of the first window, in seconds since 1970 (UTC).
    seconds
        Length of each window.
    names
        Start of each window as text, in UTC.
    weights
        By topic, one row per partition with one integer per window.
    unknown
        Whether each of the weights is assumed: the mean of the partition at the same time of other
        days or, before its first sample, the mean of the topic in the window.
    notes
        By topic, resets and the conditions under which assumed weights are correct.
    """

    start: int
    seconds: int
    names: tuple[str, ...]
    weights: Mapping[str, Sequence[Sequence[int]]]
    unknown: Mapping[str, Sequence[Sequence[bool]]]
    notes: Mapping[str, tuple[str, ...]]

    def part(self, first: int, last: int) -> "RecordedWindows":
        """Return the windows from index ``first`` to before ``last``."""
        return replace(
            self,
            start=self.start + first * self.seconds,
            names=self.names[first:last],
            weights=_map_rows(self.weights, lambda row: row[first:last]),
            unknown=_map_rows(self.unknown, lambda row: row[first:last]),
        )

    def cycle(self, seconds: int) -> "RecordedWindows":
        """Sum the windows at the same time of the day or week, for the newest whole cycles.

        A sum is unknown if all its windows are. Raise InputError if less than a cycle is recorded.
        """
        count, recorded = seconds // self.seconds, len(self.names)
        if recorded < count:
            raise InputError(f"a cycle has {count} windows, and only {recorded} are recorded")
        used = self.part(recorded % count, recorded)
        first = (_MONDAY % seconds - used.start) // self.seconds % count
        start = used.start + first * self.seconds
        form = "%a %H:%M" if seconds == WEEK else "%H:%M"
        places = [(first + n) % count for n in range(count)]
        return replace(
            used,
            start=start,
            names=tuple(_text(start + n * self.seconds, form) for n in range(count)),
            weights=_map_rows(used.weights, lambda row: [sum(row[at::count]) for at in places]),
            unknown=_map_rows(used.unknown, lambda row: [all(row[at::count]) for at in places]),
        )


def read_weight_windows(path: Path, *, seconds: int = 3_600) -> RecordedWindows:
    """Read recorded traffic as weights per window of ``seconds``, which divide a day.

    Records between two samples are spread evenly over this time. Weights are rounded to integers,
    half to even.

    Raises
    ------
    InputError
        If the file is damaged or contradicts itself, or no window is known.
    """
    samples = _samples(path, _csv_rows(path, read_text(path)))
    known: dict[str, dict[int, dict[int, int]]] = defaultdict(dict)
    steps = Counter(b - a for values in samples.values() for a, b in pairwise(sorted(values)))
    step = max(steps, key=lambda gap: (steps[gap], gap), default=0)
    for (topic, number), values in sorted(samples.items()):
        periods = _periods(f"{topic}-{number}", values, step)
        known[topic][number] = _known_weights(periods, seconds)
    windows = sorted(chain.from_iterable(chain.from_iterable(t.values()) for t in known.values()))
    count = windows[-1] - windows[0] + 1 if windows else 0
    if not 1 <= count <= _MAX_WINDOWS:
        raise InputError(
            f"{path}: {count:,} windows of {seconds} s, with samples {step} s apart; change "
            f"--window for 1 to {_MAX_WINDOWS:,} windows, or check the times"
        )
    span = range(windows[0], windows[-1] + 1)
    names = tuple(_text(window * seconds, "%Y-%m-%d %H:%M") for window in span)
    weights, unknown, notes = {}, {}, {}
    for topic, table in known.items():
        if max(table) >= 2 * len(table) + _MAX_UNSEEN:
            raise InputError(
                f"{path}: {topic}-{max(table)}: only {len(table)} partitions are shown"
            )
        rows = [[table.get(n, {}).get(window) for window in span] for n in range(max(table) + 1)]
        if any(table.values()):  # else as a topic without samples
            weights[topic] = _filled(rows, DAY // seconds)
            unknown[topic] = [[value is None for value in row] for row in rows]
            notes[topic] = tuple(_conditions(topic, rows, names))
    return RecordedWindows(span[0] * seconds, seconds, names, weights, unknown, notes)


def _csv_rows(path: Path, text: str) -> Iterator[_Row]:
    rows = csv.reader(text.splitlines())
    columns = [cell.strip().lower() for cell in next(rows, ())]
    if {*columns} - {"cluster"} != {"time", "topic", "partition", "value"}:
        raise InputError(
            f"{path}:1: the columns must be time, topic, partition, value and optionally cluster, "
            f"got {', '.join(columns)}"
        )
    for cells in rows:
        place = f":{rows.line_num}"
        if len(cells) != len(columns):
            raise InputError(f"{path}{place}: expected {len(columns)} values, got {len(cells)}")
        row = dict(zip(columns, cells, strict=True))
        yield place, row["time"], row["topic"], row["partition"], row["value"], row.get("cluster")


def _samples(path: Path, rows: Iterable[_Row]) -> dict[PartitionKey, dict[int, Decimal]]:
    """Return the value by partition and time. Equal samples are counted once."""
    found: dict[PartitionKey, dict[int, Decimal]] = defaultdict(dict)
    clusters = set[str | None]()
    for place, time, topic, partition, value, cluster in rows:
        try:
            _add_sample(found, time, topic, partition, value)
        except InputError as error:
            raise InputError(f"{path}{place}: {error}") from None
        clusters.add(cluster)
        if len(clusters) > 1:
            names = " and ".join(sorted(map(str, clusters)))
            raise InputError(f"{path}{place}: samples of two clusters, {names}; select one of them")
    return found


def _add_sample(
    found: dict[PartitionKey, dict[int, Decimal]],
    time: object,
    topic: str,
    partition: object,
    text: object,
) -> None:
    moment, value = _time(time), _number(text or "nan", MAX_WEIGHT)
    number = int(_number(partition, _MAX_PARTITIONS))
    known = value if value.is_nan() else found[topic, number].setdefault(moment, value)
    if known != value and not value.is_nan():
        raise InputError(
            f"{topic}-{number} has two values at {_text(moment)} UTC, {known:f} and {value:f}; "
            "remove one of them (times without a zone are UTC)"
        )


@cache
def _time(value: object) -> int:
    """Parse a time as ISO 8601, or as seconds or milliseconds since 1970."""
    try:
        if not isinstance(value, str) or value.replace(".", "").isdigit():
            number = _number(value, 1_000 * _MAX_SECONDS)
            return int(number if number < _MAX_SECONDS else number / 1_000)
        time = datetime.fromisoformat(value)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (InputError, ValueError):
        raise InputError(
            f"the time must be ISO 8601, seconds or milliseconds since 1970, got {value!r}"
        ) from None


def _number(value: object, maximum: int) -> Decimal:
    """Parse a number or NaN. Decimals keep all digits of counts."""
    try:
        number = Decimal(str(value))
        if number.is_nan() or 0 <= number <= maximum:
            return number
    except InvalidOperation:
        pass
    raise InputError(f"expected a number from 0 to {maximum}, got {value!r}")


def _periods(name: str, values: Mapping[int, Decimal], step: int) -> Iterator[_Period]:
    """Yield the periods of a partition in which a number of records came."""
    times = sorted(values)
    for begin, end in pairwise(times):
        if end - begin < step:
            raise InputError(
                f"{name}: the samples at {_text(begin)} and {_text(end)} UTC overlap, because "
                f"samples are {step} s apart"
            )
    for time in times:
        yield time, time + step, values[time]


def _known_weights(periods: Iterable[_Period], seconds: int) -> dict[int, int]:
    """Return the weights of known windows, by the number of the window since 1970."""
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
    return {
        window: round(total * seconds / covered[window])
        for window, total in totals.items()
        if 20 * covered[window] >= 19 * seconds
    }


def _filled(rows: Sequence[Sequence[int | None]], period: int) -> list[list[int]]:
    """Replace unknown weights by means: of the topic before the first sample, else of the row."""
    of_topic = [_mean(column) for column in zip(*rows, strict=True)]
    mean = _mean(of_topic) or 0
    filled = []
    for row in rows:
        usual, first, own = (
            [_mean(row[at::period]) for at in range(period)],
            _first(row),
            _mean(row),
        )
        choices = (
            (value, of_topic[at] if at < first else None, usual[at % period], own, of_topic[at])
            for at, value in enumerate(row)
        )
        filled.append([next((one for one in each if one is not None), mean) for each in choices])
    return filled


def _mean(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(Decimal(sum(known)) / len(known)) if known else None


def _first(row: Sequence[int | None]) -> int:
    """Return the index of the first known window."""
    return next((at for at, value in enumerate(row) if value is not None), len(row))


def _conditions(
    topic: str, rows: Sequence[Sequence[int | None]], names: Sequence[str]
) -> Iterator[str]:
    new = [number for number, row in enumerate(rows) if _first(row)]
    if new:
        more = f" and {len(new) - 1} more" if new[1:] else ""
        mean = f"had the mean weight of {topic} before the first sample"
        yield f"{ASSUMED}{topic}-{new[0]}{more} {mean}"
    gaps = [
        name
        for at, name in enumerate(names)
        if any(row[at] is None and at > _first(row) for row in rows)
    ]
    if gaps:
        yield (
            f"{ASSUMED}the weights of {topic}, unknown in {len(gaps)} of {len(names)} windows "
            f"({gaps[0]} UTC{', …' if gaps[1:] else ''}), are as at the same time of other days"
        )


def _text(time: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return datetime.fromtimestamp(time, UTC).strftime(form)
