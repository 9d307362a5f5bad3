"""Detect which tool wrote a document, and parse the document.

The tools are REST Proxy (API v3), Burrow, Metricbeat, the Prometheus exporters kminion,
kafka_exporter and kafka-lag-exporter, and Kafka's tools about topics, log directories and
reassignments. Burrow's paths are ``/v3/kafka/CLUSTER/consumer/GROUP/lag`` and the same path without
``/lag``.
"""

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from io import StringIO
from typing import Any, Protocol

from kassay.experiments.sources.table_rows import (
    Counts,
    DocumentRows,
    JsonFields,
    MemberRow,
    OffsetRow,
    StateRow,
    add_count,
    embedded_objects,
    merge_counts,
)
from kassay.reference.documents.input_files import (
    as_array,
    as_integer,
    as_object,
    as_text,
    error_at,
    read_json_documents,
)
from kassay.reference.documents.json_codec import parse_topic_id
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


_TOPIC_LINE = re.compile(
    r"\s*Topic: ?(?P<topic>[a-zA-Z0-9._-]+)\s(?:.*?\bTopicId: ?(?P<id>\S+)\s)?"
    r".*?PartitionCount: ?(?P<count>\d+)\s.*"
)
_COUNT_LABEL = "PartitionCount:"


_LOG_DIRS_KEY = re.compile(r'"logDirs"\s*:')
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<number>\d+)")
_GENERATED = "Proposed partition reassignment configuration"


def parse_topic_description(text: str, *, name: str) -> DocumentRows:
    """Read partition counts and topic ids from the output of ``kafka-topics.sh --describe``.

    Kafka releases before 2.8 print no topic ids.
    """
    counts: Counts = {}
    ids: dict[str, uuid.UUID] = {}
    for line, content in enumerate(text.splitlines(), start=1):
        if _COUNT_LABEL not in content:
            continue
        match = _TOPIC_LINE.fullmatch(content)
        if match is None:
            raise error_at(name, line, "not a complete line of kafka-topics.sh --describe", content)
        where = f"{name}:{line}"
        add_count(counts, match["topic"], int(match["count"]), where)
        if (id := parse_topic_id(match["id"], where)) is not None:
            ids[match["topic"]] = id
    return DocumentRows(partition_counts=counts, topic_ids=ids)


def parse_kcat_metadata(document: Mapping[str, object], *, name: str) -> DocumentRows:
    """Read partition counts from the output of ``kcat -L -J``, which has the key ``topics``."""
    counts: Counts = {}
    for index, entry in enumerate(as_array(document["topics"], f"{name}: topics")):
        where = f"{name}: topics[{index}]"
        topic = as_object(entry, where)
        title = as_text(topic.get("topic"), f"{where}.topic")
        partitions = as_array(topic.get("partitions"), f"{where}.partitions")
        numbers = [
            as_integer(as_object(p, where).get("partition"), f"{where}.partitions[{i}].partition")
            for i, p in enumerate(partitions)
        ]
        if sorted(numbers) != list(range(len(numbers))):
            raise InputError(
                f"{where}: partition numbers must be 0, 1, 2 and so on without gaps, "
                f"got {sorted(numbers)}"
            )
        add_count(counts, title, len(numbers), where)
    return DocumentRows(partition_counts=counts)


def parse_log_dirs(text: str, *, name: str) -> DocumentRows:
    """Read the size of every partition, in bytes, from the output of ``kafka-log-dirs.sh``.

    The size of a partition is the size of its largest replica, because the tool does not show
    the leader. Replicas that are being copied to another directory do not count.
    """
    sizes: dict[tuple[str, int], int] = {}
    for document in embedded_objects(text, name=name, kind="list of log directories"):
        directories = [
            each for broker in document.each("brokers") for each in broker.each("logDirs")
        ]
        for row in (row for directory in directories for row in directory.each("partitions")):
            partition = row.text("partition")
            match = _PARTITION.fullmatch(partition)
            if match is None:
                raise InputError(f"{row.where}.partition: must be TOPIC-NUMBER, got {partition!r}")
            size = row.integer("size")
            if size < 0:
                raise InputError(f"{row.where}.size: must be at least 0, got {size}")
            if row.table.get("isFuture") is not True:
                key = match["topic"], int(match["number"])
                sizes[key] = max(size, sizes.get(key, 0))
    return DocumentRows(sizes=sizes)


def parse_reassignment(text: str, *, name: str) -> DocumentRows:
    """Read partition counts from the partition lists of ``kafka-reassign-partitions.sh``.

    ``--generate`` lists all partitions of its topics. Other lists have only the partitions to
    move, so they give minimum counts.
    """
    numbers: dict[str, set[int]] = {}
    for document in embedded_objects(text, name=name, kind="list of partitions"):
        if "partitions" not in document.table:
            raise InputError(
                f"{document.where}: the document lists topics but not their partitions; "
                "use the output of --generate"
            )
        for row in document.each("partitions"):
            numbers.setdefault(row.text("topic"), set()).add(row.count("partition"))
    counts = {topic: max(listed) + 1 for topic, listed in numbers.items()}
    if _GENERATED not in text:
        return DocumentRows(minimum_counts=counts)
    for topic, count in counts.items():
        if len(numbers[topic]) != count:
            raise InputError(
                f"{name}: the text lists {len(numbers[topic])} partitions of topic {topic!r}, but "
                f"the highest partition number is {count - 1}; use the complete output of "
                "--generate"
            )
    return DocumentRows(partition_counts=counts)


class UnknownFormatError(InputError):
    """Error: no supported tool writes JSON documents of this form."""


class Parser(Protocol):
    """Function that parses the output of a tool."""

    def __call__(self, text: str, *, name: str) -> DocumentRows:
        """Parse a text. ``name`` is the name of the file in errors."""


def recognise_tool(text: str) -> Parser | None:
    """Return the parser of the tool that wrote a text, or None if the tool is another one.

    None includes ``kafka-consumer-groups.sh``.
    """
    return next((parse for is_output, parse in _TOOLS if is_output(text)), None)


def parse_json_documents(text: str, *, name: str) -> DocumentRows:
    """Parse the JSON documents of one or several tools."""
    parts: list[DocumentRows] = []
    for document in read_json_documents(StringIO(text), name=name):
        if document.error is not None:
            raise document.error
        line = int(document.where.rpartition(":")[2])
        parts.append(_read_document(document.value, line, name=name))
    return _merge(parts, name)


def _read_document(value: object, line: int, *, name: str) -> DocumentRows:
    where = f"{name}:{line}"
    if isinstance(value, list):
        return _merge([_read_document(each, line, name=name) for each in value], name)
    document = JsonFields(as_object(value, where), where)
    table = document.table
    if "kind" in table:
        return read_rest_resource(document, line=line)
    if "status" in table and "error" in table:
        return read_burrow_lag(document, line=line)
    if "topics" in table and "error" in table and "request" in table:
        return read_burrow_consumer(document, line=line)
    if isinstance(table.get("kafka"), dict) and "consumergroup" in document.inner("kafka").table:
        return read_metricbeat_event(document, line=line)
    if "topics" in table and "brokers" in table:
        return parse_kcat_metadata(table, name=name)
    keys = ", ".join(map(repr, list(table)[:5]))
    raise UnknownFormatError(
        f"{where}: not the JSON output of a supported tool; its first keys: {keys}"
    )


def _merge(parts: list[DocumentRows], name: str) -> DocumentRows:
    counts: dict[str, int] = {}
    for part in parts:
        counts = merge_counts(counts, part.partition_counts, where=name)
    return DocumentRows(
        offsets=tuple(row for part in parts for row in part.offsets),
        members=tuple(row for part in parts for row in part.members),
        states=tuple(row for part in parts for row in part.states),
        shows_owners=any(part.shows_owners for part in parts),
        partition_counts=counts,
    )


_TOOLS: tuple[tuple[Callable[[str], bool], Parser], ...] = (
    (lambda text: _COUNT_LABEL in text, parse_topic_description),
    (lambda text: any(f"{metric}{{" in text for metric in _METRICS), parse_metrics),
    (lambda text: '"brokers"' in text and bool(_LOG_DIRS_KEY.search(text)), parse_log_dirs),
    (
        lambda text: '"version"' in text and ('"partitions"' in text or '"topics"' in text),
        parse_reassignment,
    ),
    (lambda text: text.lstrip().startswith(("{", "[")), parse_json_documents),
)
"""Test whether a text is the output of a tool, and its parser. The first match counts."""
