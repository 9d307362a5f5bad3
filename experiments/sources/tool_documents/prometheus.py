"""Prometheus text of exporters: kminion, kafka_exporter, kafka-lag-exporter."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from kassay.experiments.sources.describe_output import OffsetRow
from kassay.experiments.sources.errors import located
from kassay.experiments.sources.tool_documents.document_rows import (
    DocumentRows,
    offset_row,
    state_row,
)
from kassay.experiments.sources.topic_metadata import Counts

_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\{(?P<labels>.*)\}\s+(?P<value>\S+)(\s+-?[0-9]+)?\s*"
)
_LABEL = re.compile(r'\s*([a-zA-Z_]\w*)="((?:[^"\\]|\\["\\n])*)"\s*(?:,|$)')
_ESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
_INTEGER = re.compile(r"[0-9]{1,9}")
_MOST_DIGITS = 19

Labels = Mapping[str, str]


class _UnfitError(ValueError):
    """A sample that does not hold what its metric promises."""


@dataclass(slots=True)
class _Seen:
    line: int = 0
    offsets: list[OffsetRow] = field(default_factory=list)
    counts: Counts = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)
    shows_owners: bool = False


def is_metrics(text: str) -> bool:
    """Say whether a text holds a metric that is read here."""
    return any(f"{metric}{{" in text for metric in _METRICS)


def parse_metrics(text: str, *, name: str) -> DocumentRows:
    r"""Read the samples of one scrape; other metrics and text around them are passed over.

    Raises
    ------
    SourceError
        If a sample of a metric that is read here is cut, or its value is no integer.

    Examples
    --------
    >>> text = 'kafka_consumergroup_lag{consumergroup="g",partition="0",topic="t"} 1.5e+01\n'
    >>> parse_metrics(text, name="scrape.txt").offsets[0].lag
    15
    """
    seen = _Seen()
    for line, content in enumerate(text.splitlines(), start=1):
        metric = content.strip().partition("{")[0]
        if metric not in _METRICS or "{" not in content:
            continue
        match = _SAMPLE.fullmatch(content.strip())
        labels = None if match is None else _labels(match["labels"])
        if match is None or labels is None:
            raise located(name, line, "not a whole sample", content)
        seen.line = line
        try:
            _METRICS[metric](seen, labels, match["value"])
        except _UnfitError as error:
            raise located(name, line, str(error), content) from None
    states = [
        state_row(1, group, state=seen.states.get(group, "-"), members=seen.members.get(group))
        for group in dict.fromkeys([*seen.states, *seen.members])
    ]
    return DocumentRows(
        offsets=seen.offsets, states=states, shows_owners=seen.shows_owners, counts=seen.counts
    )


def _labels(text: str) -> Labels | None:
    labels: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _LABEL.match(text, position)
        if match is None or match[1] in labels:
            return None
        labels[match[1]] = re.sub(r'\\["\\n]', lambda part: _ESCAPED[part[0]], match[2])
        position = match.end()
    return labels


def _label(labels: Labels, key: str) -> str:
    value = labels.get(key)
    if not value:
        raise _UnfitError(f"no label {key!r}")
    return value


def _number(labels: Labels, key: str) -> int:
    value = _label(labels, key)
    if not _INTEGER.fullmatch(value):
        raise _UnfitError(f"label {key!r} is no number")
    return int(value)


def _value(text: str) -> int | None:
    """Take an integer, which exporters write as a float (``4.259513e+06``); NaN is unknown."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _UnfitError("the value is no number") from None
    if value.is_nan():
        return None
    if (
        value.is_infinite()
        or value.adjusted() >= _MOST_DIGITS
        or value != value.to_integral_value()
    ):
        raise _UnfitError("the value is no integer")
    return int(value)


def _lag(group: str, topic: str, partition: str) -> "Callable[[_Seen, Labels, str], None]":
    def enter(seen: _Seen, labels: Labels, value: str) -> None:
        place = (_label(labels, topic), _number(labels, partition))
        seen.offsets.append(
            offset_row(
                seen.line,
                _label(labels, group),
                place,
                lag=_value(value),
                consumer_id=labels.get("consumer_id") or None,
                client_id=labels.get("client_id") or None,
            )
        )
        seen.shows_owners |= "consumer_id" in labels

    return enter


def _members(group: str) -> "Callable[[_Seen, Labels, str], None]":
    def enter(seen: _Seen, labels: Labels, value: str) -> None:
        seen.members[_label(labels, group)] = _value(value) or 0

    return enter


def _topic_info(seen: _Seen, labels: Labels, _value_text: str) -> None:
    seen.counts[_label(labels, "topic_name")] = _number(labels, "partition_count")


def _topic_partitions(seen: _Seen, labels: Labels, value: str) -> None:
    count = _value(value)
    if count is None or count < 0:
        raise _UnfitError("not a number of partitions")
    seen.counts[_label(labels, "topic")] = count


def _group_info(seen: _Seen, labels: Labels, _value_text: str) -> None:
    seen.states[_label(labels, "group_id")] = _label(labels, "state")


_METRICS: dict[str, Callable[[_Seen, Labels, str], None]] = {
    "kminion_kafka_consumer_group_topic_partition_lag": _lag(
        "group_id", "topic_name", "partition_id"
    ),
    "kminion_kafka_consumer_group_members": _members("group_id"),
    "kminion_kafka_consumer_group_info": _group_info,
    "kminion_kafka_topic_info": _topic_info,
    "kafka_consumergroup_lag": _lag("consumergroup", "topic", "partition"),
    "kafka_consumergroup_members": _members("consumergroup"),
    "kafka_topic_partitions": _topic_partitions,
    "kafka_consumergroup_group_lag": _lag("group", "topic", "partition"),
}
