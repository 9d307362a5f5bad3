"""Parsers of monitoring tools: REST Proxy (API v3), Burrow, Metricbeat and Prometheus metrics.

Burrow's paths are ``/v3/kafka/CLUSTER/consumer/GROUP/lag`` and the same path without ``/lag``. The
metrics are those of kminion, kafka_exporter and kafka-lag-exporter.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from kassay.experiments.sources.describe_rows import MemberRow, OffsetRow, StateRow
from kassay.experiments.sources.document_rows import DocumentRows, JsonFields
from kassay.reference.documents.input_files import error_at
from kassay.reference.documents.kind_documents import Kind, wrong_kind_error
from kassay.reference.model.errors import InputError

_CONSUMER_URL = re.compile(r"/consumer/(?P<group>[^/?]+)")


def read_rest_resource(document: JsonFields, *, line: int) -> DocumentRows:
    """Read a REST Proxy response that contains one resource or a list of resources."""
    kind, resources = document.text("kind"), [document]
    if kind in set(Kind):
        raise wrong_kind_error(kind, document.where)
    if kind.endswith("List"):
        _require_single_page(document)
        kind, resources = kind.removesuffix("List"), document.each("data")
    match kind:
        case "KafkaConsumerGroup":
            return DocumentRows(states=[_state(resource, line) for resource in resources])
        case "KafkaConsumer":
            return DocumentRows(members=[_member(resource, line) for resource in resources])
        case "KafkaConsumerAssignment" | "KafkaConsumerLag":
            return DocumentRows(offsets=[_partition(resource, line) for resource in resources])
        case "KafkaTopic":
            return DocumentRows(
                partition_counts={
                    resource.text("topic_name"): resource.count("partitions_count")
                    for resource in resources
                }
            )
    where = resources[0].where if resources else f"line {line}"
    raise InputError(
        f"{where}: kind {kind!r} is not supported; expected KafkaConsumerGroup, KafkaConsumer, "
        "KafkaConsumerAssignment, KafkaConsumerLag or KafkaTopic"
    )


def _require_single_page(document: JsonFields) -> None:
    metadata = document.optional_inner("metadata")
    next_page = None if metadata is None else metadata.table.get("next")
    if next_page:
        raise InputError(
            f"{document.where}.metadata.next: the list continues at {next_page!r}; "
            "request a page with all entries"
        )


def _state(resource: JsonFields, line: int) -> StateRow:
    state = resource.optional_text("state") or "Unknown"
    return StateRow(line, resource.text("consumer_group_id"), state)


def _member(resource: JsonFields, line: int) -> MemberRow:
    return MemberRow(
        line,
        resource.text("consumer_group_id"),
        resource.text("consumer_id"),
        instance_id=resource.optional_text("instance_id"),
        client_id=resource.optional_text("client_id"),
    )


def _partition(resource: JsonFields, line: int) -> OffsetRow:
    lag = resource.table.get("lag")
    return OffsetRow(
        line,
        resource.text("consumer_group_id"),
        resource.text("topic_name"),
        resource.count("partition_id"),
        consumer_id=resource.optional_text("consumer_id"),
        client_id=resource.optional_text("client_id"),
        current=resource.optional_integer("current_offset"),
        end=resource.optional_integer("log_end_offset"),
        # A link, in a list of assignments.
        lag=None if isinstance(lag, dict) else resource.optional_integer("lag"),
    )


def read_burrow_lag(document: JsonFields, *, line: int) -> DocumentRows:
    """Read Burrow's response about the lag of a consumer group.

    Burrow shows the owner's host and, in newer releases, its client id. It has no member ids.
    """
    if document.table.get("error") is not False:
        raise InputError(f"{document.where}: Burrow reported: {document.table.get('message')!r}")
    status = document.inner("status")
    partitions = status.each("partitions")
    total = status.optional_integer("partition_count")
    if total is not None and total != len(partitions):
        raise InputError(
            f"{status.where}.partitions: lists {len(partitions)} of {total} partitions, "
            "request /lag instead of /status from Burrow"
        )
    group = status.text("group")
    return _document([_row(partition, group, line) for partition in partitions])


def read_burrow_consumer(document: JsonFields, *, line: int) -> DocumentRows:
    """Read Burrow's response with the details of a consumer group: partitions per topic."""
    url = document.inner("request").text("url")
    match = _CONSUMER_URL.search(url)
    if match is None:
        raise InputError(
            f"{document.where}.request.url: the URL contains no consumer group: {url!r}"
        )
    topics = document.inner("topics")
    return _document(
        [
            OffsetRow(
                line,
                match["group"],
                topic,
                number,
                lag=partition.optional_integer("current-lag"),
                **_owner(partition),
            )
            for topic in topics.table
            for number, partition in enumerate(topics.each(topic))
        ]
    )


def _document(rows: list[OffsetRow]) -> DocumentRows:
    """Build a `DocumentRows` from offset rows, and state whether any row shows an owner.

    If no partition has an owner, Burrow does not know the members.
    """
    return DocumentRows(offsets=rows, shows_owners=any(row.owner is not None for row in rows))


def _owner(partition: JsonFields) -> dict[str, Any]:
    host, client = partition.optional_text("owner"), partition.optional_text("client_id")
    owner = host if client is None else f"{client}_{host or ''}"
    return {"owner": owner, "host": host, "client_id": client}


def _row(partition: JsonFields, group: str, line: int) -> OffsetRow:
    end = partition.optional_inner("end")
    lag = partition.optional_integer("current_lag")
    return OffsetRow(
        line,
        group,
        partition.text("topic"),
        partition.count("partition"),
        current=None if end is None else end.optional_integer("offset"),
        lag=lag if lag is not None or end is None else end.optional_integer("lag"),
        **_owner(partition),
    )


def read_metricbeat_event(event: JsonFields, *, line: int) -> DocumentRows:
    """Convert one Metricbeat event, which describes one partition, to an offset row."""
    group = event.inner("kafka").inner("consumergroup")
    error = group.optional_inner("error")
    code = None if error is None else error.optional_integer("code")
    if code:
        raise InputError(f"{group.where}.error.code: Kafka returned error code {code}")
    client = group.optional_inner("client")
    topic = group.table.get("topic")  # an object since release 7.0
    row = OffsetRow(
        line,
        group.text("id"),
        group.inner("topic").text("name") if isinstance(topic, dict) else group.text("topic"),
        group.count("partition"),
        consumer_id=None if client is None else client.optional_text("member_id"),
        client_id=None if client is None else client.optional_text("id"),
        current=group.optional_integer("offset"),
        lag=group.optional_integer("consumer_lag"),
    )
    return DocumentRows(offsets=[row])


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
