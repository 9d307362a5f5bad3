"""Parser of Prometheus metrics from kminion, kafka_exporter and kafka-lag-exporter."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from kassay.experiments.sources.describe_output import OffsetRow, StateRow
from kassay.experiments.sources.tool_documents.document_rows import Counts, DocumentRows
from kassay.reference.documents.text_files import error_at

_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\{(?P<labels>.*)\}\s+(?P<value>\S+)(\s+-?[0-9]+)?\s*"
)
_LABEL = re.compile(r'\s*([a-zA-Z_]\w*)="((?:[^"\\]|\\["\\n])*)"\s*(?:,|$)')
_ESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
_INTEGER = re.compile(r"[0-9]{1,9}")
_MAX_DIGITS = 19

Labels = Mapping[str, str]


class _InvalidSampleError(ValueError):
    """Error: the labels or the value of a Prometheus sample are invalid for its metric."""


@dataclass(slots=True)
class _Scrape:
    """Data from the Prometheus samples read so far.

    ``line`` is the number of the current line.
    """

    line: int = 0
    offsets: list[OffsetRow] = field(default_factory=list)
    partition_counts: Counts = field(default_factory=dict)
    states: dict[str, Labels] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)
    shows_owners: bool = False


def is_metrics(text: str) -> bool:
    """Return whether a text contains a Prometheus metric that this module supports."""
    return any(f"{metric}{{" in text for metric in _METRICS)


def parse_metrics(text: str, *, name: str) -> DocumentRows:
    """Parse the supported metrics of one Prometheus scrape, and ignore all other text."""
    scrape = _Scrape()
    for line, content in enumerate(text.splitlines(), start=1):
        metric = content.strip().partition("{")[0]
        if metric not in _METRICS or "{" not in content:
            continue
        match = _SAMPLE.fullmatch(content.strip())
        labels = None if match is None else _labels(match["labels"])
        if match is None or labels is None:
            raise error_at(name, line, "not a complete sample", content)
        scrape.line = line
        try:
            add, names = _METRICS[metric]
            add(scrape, labels, match["value"], *names)
        except _InvalidSampleError as error:
            raise error_at(name, line, str(error), content) from None
    states = [
        StateRow(
            1,
            group,
            state=scrape.states.get(group, {}).get("state", "-"),
            strategy=scrape.states.get(group, {}).get("protocol") or None,
            members=scrape.members.get(group),
        )
        for group in dict.fromkeys([*scrape.states, *scrape.members])
    ]
    return DocumentRows(
        offsets=scrape.offsets,
        states=states,
        shows_owners=scrape.shows_owners,
        partition_counts=scrape.partition_counts,
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
        raise _InvalidSampleError(f"the label {key!r} is missing")
    return value


def _number(labels: Labels, key: str) -> int:
    value = _label(labels, key)
    if not _INTEGER.fullmatch(value):
        raise _InvalidSampleError(f"the label {key!r} must be an integer, got {value!r}")
    return int(value)


def _value(text: str) -> int | None:
    """Parse an integer in float notation, such as ``4.259513e+06``. Return None for NaN."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _InvalidSampleError(f"the value must be a number, got {text!r}") from None
    if value.is_nan():
        return None
    if value.is_infinite() or value.adjusted() >= _MAX_DIGITS or value != value.to_integral_value():
        raise _InvalidSampleError(f"the value must be an integer, got {text!r}")
    return int(value)


def _add_lag(scrape: _Scrape, labels: Labels, value: str, *names: str) -> None:
    group, topic, partition = names
    topic_name, number = _label(labels, topic), _number(labels, partition)
    row = OffsetRow(
        scrape.line,
        _label(labels, group),
        topic_name,
        number,
        lag=_value(value),
        consumer_id=labels.get("consumer_id") or None,
        client_id=labels.get("client_id") or None,
    )
    scrape.offsets.append(row)
    scrape.shows_owners |= "consumer_id" in labels


def _add_members(scrape: _Scrape, labels: Labels, value: str, group: str) -> None:
    scrape.members[_label(labels, group)] = _value(value) or 0


def _add_topic(scrape: _Scrape, labels: Labels, _text: str) -> None:
    scrape.partition_counts[_label(labels, "topic_name")] = _number(labels, "partition_count")


def _add_partition_count(scrape: _Scrape, labels: Labels, value: str) -> None:
    count = _value(value)
    if count is None or count < 0:
        raise _InvalidSampleError(f"the value must be a number of partitions, got {value!r}")
    scrape.partition_counts[_label(labels, "topic")] = count


def _add_state(scrape: _Scrape, labels: Labels, _text: str) -> None:
    _label(labels, "state")
    scrape.states[_label(labels, "group_id")] = labels


# Function per metric, and the labels that differ between the exporters.
_METRICS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "kminion_kafka_consumer_group_topic_partition_lag": (
        _add_lag,
        ("group_id", "topic_name", "partition_id"),
    ),
    "kminion_kafka_consumer_group_members": (_add_members, ("group_id",)),
    "kminion_kafka_consumer_group_info": (_add_state, ()),
    "kminion_kafka_topic_info": (_add_topic, ()),
    "kafka_consumergroup_lag": (_add_lag, ("consumergroup", "topic", "partition")),
    "kafka_consumergroup_members": (_add_members, ("consumergroup",)),
    "kafka_topic_partitions": (_add_partition_count, ()),
    "kafka_consumergroup_group_lag": (_add_lag, ("group", "topic", "partition")),
}
