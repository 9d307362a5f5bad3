"""Parser of Prometheus metrics from kminion, kafka_exporter and kafka-lag-exporter."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from kassay.experiments.sources.describe_output.typed_rows import OffsetRow, StateRow
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows
from kassay.reference.documents.text_files import error_at
from kassay.reference.model.errors import InputError

_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\{(?P<labels>.*)\}\s+(?P<value>\S+)(\s+-?[0-9]+)?\s*"
)
_LABEL = re.compile(r'\s*([a-zA-Z_]\w*)="((?:[^"\\]|\\["\\n])*)"\s*(?:,|$)')
_ESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
_INTEGER = re.compile(r"[0-9]{1,9}")
_MAX_DIGITS = 19

# Labels of group, topic and partition by metric; the exporters have different names.
_LAGS = {
    "kminion_kafka_consumer_group_topic_partition_lag": ("group_id", "topic_name", "partition_id"),
    "kafka_consumergroup_lag": ("consumergroup", "topic", "partition"),
    "kafka_consumergroup_group_lag": ("group", "topic", "partition"),
}
_MEMBERS = {
    "kminion_kafka_consumer_group_members": "group_id",
    "kafka_consumergroup_members": "consumergroup",
}
_STATE = "kminion_kafka_consumer_group_info"
_TOPIC = "kminion_kafka_topic_info"
_PARTITIONS = "kafka_topic_partitions"
_METRICS = frozenset({*_LAGS, *_MEMBERS, _STATE, _TOPIC, _PARTITIONS})


@dataclass(frozen=True, slots=True)
class _Sample:
    """Sample of a metric. The methods raise InputError with the line of an invalid sample."""

    name: str  # of the file
    line: int
    content: str
    metric: str
    labels: Mapping[str, str]
    text: str

    def error(self, message: str) -> InputError:
        return error_at(self.name, self.line, message, self.content)

    def label(self, key: str) -> str:
        value = self.labels.get(key)
        if not value:
            raise self.error(f"the label {key!r} is missing")
        return value

    def number(self, key: str) -> int:
        value = self.label(key)
        if not _INTEGER.fullmatch(value):
            raise self.error(f"the label {key!r} must be an integer, got {value!r}")
        return int(value)

    def value(self) -> int | None:
        """Parse an integer in float notation, such as ``4.259513e+06``. Return None for NaN."""
        try:
            value = Decimal(self.text)
        except InvalidOperation:
            raise self.error(f"the value must be a number, got {self.text!r}") from None
        if value.is_nan():
            return None
        too_large = value.is_infinite() or value.adjusted() >= _MAX_DIGITS
        if too_large or value != value.to_integral_value():
            raise self.error(f"the value must be an integer, got {self.text!r}")
        return int(value)


def is_metrics(text: str) -> bool:
    """Return whether a text contains a Prometheus metric that this module supports."""
    return any(f"{metric}{{" in text for metric in _METRICS)


def parse_metrics(text: str, *, name: str) -> DocumentRows:
    """Parse the supported metrics of one Prometheus scrape, and ignore all other text."""
    samples = list(_samples(text, name))
    lags = [sample for sample in samples if sample.metric in _LAGS]
    members = {
        sample.label(_MEMBERS[sample.metric]): sample.value() or 0
        for sample in samples
        if sample.metric in _MEMBERS
    }
    states = {
        sample.label("group_id"): (sample.label("state"), sample.labels.get("protocol") or None)
        for sample in samples
        if sample.metric == _STATE
    }
    no_state = ("-", None)
    return DocumentRows(
        offsets=[_offset_row(sample) for sample in lags],
        states=[
            StateRow(1, group, state=state, strategy=strategy, members=members.get(group))
            for group in dict.fromkeys([*states, *members])
            for state, strategy in (states.get(group, no_state),)
        ],
        shows_owners=any("consumer_id" in sample.labels for sample in lags),
        partition_counts=dict(
            _partition_count(sample) for sample in samples if sample.metric in (_TOPIC, _PARTITIONS)
        ),
    )


def _samples(text: str, name: str) -> Iterator[_Sample]:
    for line, content in enumerate(text.splitlines(), start=1):
        metric = content.strip().partition("{")[0]
        if metric not in _METRICS or "{" not in content:
            continue
        match = _SAMPLE.fullmatch(content.strip())
        labels = None if match is None else _labels(match["labels"])
        if match is None or labels is None:
            raise error_at(name, line, "not a complete sample", content)
        yield _Sample(name, line, content, metric, labels, match["value"])


def _labels(text: str) -> dict[str, str] | None:
    labels: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _LABEL.match(text, position)
        if match is None or match[1] in labels:
            return None
        labels[match[1]] = re.sub(r'\\["\\n]', lambda part: _ESCAPED[part[0]], match[2])
        position = match.end()
    return labels


def _offset_row(sample: _Sample) -> OffsetRow:
    group, topic, partition = _LAGS[sample.metric]
    return OffsetRow(
        sample.line,
        sample.label(group),
        sample.label(topic),
        sample.number(partition),
        lag=sample.value(),
        consumer_id=sample.labels.get("consumer_id") or None,
        client_id=sample.labels.get("client_id") or None,
    )


def _partition_count(sample: _Sample) -> tuple[str, int]:
    if sample.metric == _TOPIC:
        return sample.label("topic_name"), sample.number("partition_count")
    count = sample.value()
    if count is None or count < 0:
        raise sample.error(f"the value must be a number of partitions, got {sample.text!r}")
    return sample.label("topic"), count
