"""Read JSON values, topics and metrics in the output of other tools.

The tools are REST Proxy (API v3), Burrow, Metricbeat, the exporters kminion, kafka_exporter and
kafka-lag-exporter, the HTTP API of Prometheus, and Kafka's tools about topics, log directories and
reassignments. Burrow's paths are ``/v3/kafka/CLUSTER/consumer/GROUP/lag`` and the same path without
``/lag``.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from kassay.experiments.sources.capture_contents import (
    NO_ROWS,
    DocumentRows,
    FoundText,
    JsonFields,
    merge_rows,
    require_last_page,
)
from kassay.experiments.sources.clean_lines import FORMS, Line, noise_rule
from kassay.experiments.sources.other_tool_descriptions import is_group_json, read_group_json
from kassay.experiments.sources.table_rows import OffsetRow, StateRow
from kassay.reference.documents.files import (
    as_array,
    as_text,
    error_at,
    format_value,
    is_number,
    parse_json,
    read_data_file,
)
from kassay.reference.documents.json_codec import parse_topic_id
from kassay.reference.documents.kind_documents import Kind, wrong_kind_error
from kassay.reference.model.errors import InputError

_CONSUMER_URL = re.compile(r"(/kafka/(?P<cluster>[^/?]+))?/consumer/(?P<group>[^/?]+)")


_SAMPLE = FORMS["metric"]
_LABEL = re.compile(r'\s*([a-zA-Z_]\w*)="((?:[^"\\]|\\["\\n])*)"\s*(?:,|$)')
_ESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
_INTEGER = re.compile(r"[0-9]{1,9}")
_MAX_DIGITS = 19

_METRICS = {
    metric: (content, labels)
    for metric, content, *labels in read_data_file(__package__, "exporter_metrics.txt")
}
"""Kind of content, and names of labels, by metric."""
CLUSTER_LABELS = ("cluster_name", "cluster", "cluster_id", "kafka_cluster")
"""Names of labels that can contain the name of the cluster."""
_MIN_SUFFIX = 8
"""Length above which an unknown metric counts as the end of a known metric's name."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Sample of a Prometheus metric, with checks of the labels and the value."""

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
        """Parse the value as an integer. Return None for NaN."""
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


def read_metric(content: str, *, name: str, line: int) -> DocumentRows | None:
    """Read a line of a Prometheus metrics page, or return None for other lines.

    Comments and unused metrics have no content. Raise InputError if a used metric is truncated.
    """
    if content.startswith(("# HELP ", "# TYPE ", "# EOF")):
        return NO_ROWS
    metric = re.split(r"[{\s]", content, maxsplit=1)[0]
    match = _SAMPLE.fullmatch(content)
    labels = None if match is None else _labels(match["labels"] or "")
    if metric not in _METRICS:
        is_cut = len(metric) > _MIN_SUFFIX and any(each.endswith(metric) for each in _METRICS)
        if is_cut or ("_" not in metric and labels is not None and _metric_with(labels)):
            raise error_at(name, line, "the start of the name of a metric is missing", content)
        is_metric = match is not None and labels is not None and is_number(match["value"])
        return NO_ROWS if is_metric and ("{" in content or "_" in metric) else None
    if match is None or labels is None:
        raise error_at(name, line, "the sample of a metric is not complete", content)
    return _content(_Sample(name, line, content, metric, labels, match["value"]))


def hides_metric(text: str) -> bool:
    """Return whether a text is a sample of a metric that kassay uses."""
    return text.startswith(tuple(f"{name}{{" for name in _METRICS))


def series_of(document: JsonFields, *types: str) -> Iterator[tuple[JsonFields, dict[str, str]]]:
    """Yield the series in a Prometheus response, each with its labels."""
    if document.text("status") != "success":
        raise InputError(f"{document.where}: Prometheus reports: {document.table.get('error')!r}")
    data = document.inner("data")
    if data.text("resultType") not in types:
        raise InputError(f"{data.where}.resultType: must be {' or '.join(types)}; query a metric")
    for series in data.each("result"):
        labels = series.inner("metric")
        yield series, {key: as_text(value, labels.where) for key, value in labels.table.items()}


def read_series(document: JsonFields, line: int, *, name: str) -> list[DocumentRows]:
    """Read the newest value of each series in a Prometheus response."""
    found = []
    for series, labels in series_of(document, "vector", "matrix"):
        points = [series.table["value"]] if "value" in series.table else series.table.get("values")
        newest = as_array(as_array(points, f"{series.where}.values")[-1:] or [()], series.where)[0]
        point = as_array(newest, series.where)
        if len(point) != 2:
            raise InputError(f"{series.where}: expected [time, value], got {format_value(newest)}")
        title = labels.pop("__name__", None) or _metric_with(labels)
        if title is None:
            raise InputError(f"{series.where}.metric: the name of the metric is missing")
        if title in _METRICS:
            text = format_value(series.table)
            found.append(_content(_Sample(name, line, text, title, labels, str(point[1]))))
    return found


def _metric_with(labels: Mapping[str, str]) -> str | None:
    """Return the name of the lag metric that has the given labels, or None."""
    return next(
        (
            metric
            for metric, (content, keys) in _METRICS.items()
            if content == "lag" and set(keys) <= labels.keys()
        ),
        None,
    )


def _content(sample: _Sample) -> DocumentRows:
    cluster = next((sample.labels[key] for key in CLUSTER_LABELS if sample.labels.get(key)), None)
    content, labels = _METRICS[sample.metric]
    first = sample.label(labels[0])  # the group, or the topic
    if content == "topic":
        count = sample.number(labels[1]) if labels[1:] else sample.value()
        if count is None or count < 0:
            raise sample.error(f"the value must be a number of partitions, got {sample.text!r}")
        return DocumentRows(partition_counts={first: count}, cluster=cluster)
    if content == "lag":
        row = OffsetRow(
            sample.line,
            first,
            sample.label(labels[1]),
            sample.number(labels[2]),
            lag=sample.value(),
            consumer_id=sample.labels.get("consumer_id") or None,
            client_id=sample.labels.get("client_id") or None,
        )
        shows_owners = "consumer_id" in sample.labels
        return DocumentRows(offsets=[row], shows_owners=shows_owners, cluster=cluster)
    if content == "members":
        state = StateRow(sample.line, first, "-", members=sample.value() or 0)
    else:
        strategy = sample.labels.get("protocol") or None
        state = StateRow(sample.line, first, sample.label(labels[1]), strategy=strategy)
    return DocumentRows(states=[state], cluster=cluster)


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


def read_rest_resource(document: JsonFields, line: int) -> DocumentRows:
    """Read a response of the REST Proxy with one resource or a list of resources."""
    kind, resources = document.text("kind"), [document]
    if kind in set(Kind):
        raise wrong_kind_error(kind, document.where)
    if kind.endswith("List"):
        require_last_page(document.table, document.where)
        kind, resources = kind.removesuffix("List"), document.each("data")
    cluster = resources[0].optional_text("cluster_id") if resources else None
    return replace(_rest_rows(kind, resources, document, line), cluster=cluster)


def _rest_rows(
    kind: str, resources: Sequence[JsonFields], document: JsonFields, line: int
) -> DocumentRows:
    if kind == "KafkaConsumerLagSummary":
        return NO_ROWS  # the sums of lags that other answers show
    if kind == "KafkaTopic":
        counts = {one.text("topic_name"): one.count("partitions_count") for one in resources}
        return DocumentRows(partition_counts=counts)
    if kind in _REST_KINDS:
        for one in resources:
            one.text("consumer_group_id")
            for key in _REST_KINDS[kind]:
                one.integer(key) if key == "partition_id" else one.text(key)
        parts = [read_group_json(one.table, one.where, line=line) for one in resources]
        return merge_rows([one for part in parts for one in part], document.where)
    where = resources[0].where if resources else document.where
    expected = ", ".join(_REST_KINDS)
    raise InputError(f"{where}: kind {kind!r} is not supported; expected {expected} or KafkaTopic")


_REST_KINDS = {
    "KafkaConsumerGroup": (),
    "KafkaConsumer": ("consumer_id",),
    "KafkaConsumerAssignment": ("consumer_id", "topic_name", "partition_id"),
    "KafkaConsumerLag": ("topic_name", "partition_id"),
}
"""Required keys of a resource of the REST Proxy, by its kind."""


def read_burrow_lag(document: JsonFields, line: int) -> DocumentRows:
    """Read a response of Burrow about the lag of a consumer group.

    Burrow shows the host of the owner and, in newer releases, the client id, but no member id.
    """
    if document.table.get("error") is not False:
        raise InputError(f"{document.where}: Burrow reported: {document.table.get('message')!r}")
    status = document.inner("status")
    partitions = status.each("partitions")
    total = status.optional_integer("partition_count")
    if total is not None and total != len(partitions):
        raise InputError(
            f"{status.where}.partitions: the list has {len(partitions)} of {total} partitions; "
            "request /lag from Burrow instead of /status"
        )
    group = status.text("group")
    rows = [
        _burrow_row(one, group, one.text("topic"), one.count("partition"), line)
        for one in partitions
    ]
    return _burrow_rows(rows, status.optional_text("cluster"))


def read_burrow_consumer(document: JsonFields, line: int) -> DocumentRows:
    """Read a response of Burrow with the details of a consumer group."""
    url = document.inner("request").text("url")
    match = _CONSUMER_URL.search(url)
    if match is None:
        raise InputError(
            f"{document.where}.request.url: the URL contains no consumer group: {url!r}"
        )
    topics = document.inner("topics")
    rows = [
        _burrow_row(one, match["group"], topic, number, line)
        for topic in topics.table
        for number, one in enumerate(topics.each(topic))
    ]
    return _burrow_rows(rows, match["cluster"])


def _burrow_rows(rows: Sequence[OffsetRow], cluster: str | None) -> DocumentRows:
    # If no partition has an owner, Burrow does not know the members.
    shows_owners = any(row.owner is not None for row in rows)
    return DocumentRows(offsets=rows, shows_owners=shows_owners, cluster=cluster)


def _burrow_row(one: JsonFields, group: str, topic: str, number: int, line: int) -> OffsetRow:
    host, client = one.optional_text("owner"), one.optional_text("client_id")
    end = one.optional_inner("end")
    lags = [one.optional_integer(key) for key in ("current_lag", "current-lag")]
    lags += [] if end is None else [end.optional_integer("lag")]
    return OffsetRow(
        line,
        group,
        topic,
        number,
        current=None if end is None else end.optional_integer("offset"),
        lag=next((lag for lag in lags if lag is not None), None),
        owner=host if client is None else f"{client}_{host or ''}",
        host=host,
        client_id=client,
    )


def read_metricbeat_event(document: JsonFields, line: int) -> DocumentRows:
    """Convert a Metricbeat event about one partition to an offset row."""
    kafka = document.inner("kafka")
    group = kafka.inner("consumergroup")
    error = group.optional_inner("error")
    code = None if error is None else error.optional_integer("code")
    if code:
        raise InputError(
            f"{group.where}.error.code: Kafka returned error code {code}; remove the event"
        )
    client = group.optional_inner("client")
    # Release 8 has topic and partition beside the group.
    topics = kafka if "topic" in kafka.table and "topic" not in group.table else group
    topic = topics.table.get("topic")  # an object since release 7.0
    inner = kafka.table.get("partition")
    moved = "partition" not in group.table and isinstance(inner, dict)
    row = OffsetRow(
        line,
        group.text("id"),
        topics.inner("topic").text("name") if isinstance(topic, dict) else group.text("topic"),
        kafka.inner("partition").count("id") if moved else group.count("partition"),
        consumer_id=None if client is None else client.text("member_id"),
        client_id=None if client is None else client.optional_text("id"),
        current=group.optional_integer("offset"),
        lag=group.optional_integer("consumer_lag"),
    )
    return DocumentRows(offsets=[row])


_TOPIC_LINE = FORMS["topic line"]
_COUNT_LABEL = "PartitionCount:"
_TOPIC_PARTITION = FORMS["topic partition"]
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<number>\d+)")
_GENERATED = "Proposed partition reassignment configuration"
METRIC = "metric"
"""Name of the rule for samples of used metrics."""
_JSON_START = FORMS["start of JSON"]
_BEHIND = re.compile(r"[%)'\]>;]*\s*(\([a-zA-Z][\w.$]+\)|(HTTP\S* ?)?\d{3}|</\w+>)?")
"""Text that can follow a JSON value: the end of a call, a logger's name or a status."""


def read_tool_line(line: Line, *, name: str) -> FoundText | None:
    """Read a line about a topic or about a metric, or return None for other lines."""
    content = line.text.strip()
    if match := _TOPIC_PARTITION.fullmatch(content):
        counts = {match["topic"]: int(match["number"]) + 1}
        return FoundText("kafka-topics.sh: partition", [DocumentRows(minimum_counts=counts)])
    rule = "kafka-topics.sh: topic" if _COUNT_LABEL in content else METRIC
    try:
        if _COUNT_LABEL in content:
            return FoundText(rule, [_topic(content, line, name)])
        metric = read_metric(content, name=name, line=line.number)
    except InputError as error:
        return FoundText(rule, error=error)
    if metric is NO_ROWS:
        is_weak = "{" not in content and not content.startswith("#")
        return FoundText("metric that is not used", is_weak=is_weak, is_noise=True)
    return None if metric is None else FoundText(rule, [metric])


def _topic(content: str, line: Line, name: str) -> DocumentRows:
    match = _TOPIC_LINE.fullmatch(content)
    if match is None:
        message = "not a complete line of kafka-topics.sh --describe"
        raise error_at(name, line.number, message, content)
    id = parse_topic_id(match["id"], f"{name}:{line.number}")
    counts = {match["topic"]: int(match["count"])}
    return DocumentRows(
        partition_counts=counts, topic_ids={} if id is None else {match["topic"]: id}
    )


def read_json_value(lines: Sequence[Line], at: int, *, name: str) -> FoundText | None:
    """Read the JSON value that starts in a line, or return None.

    An incomplete value ends before the next line in which a value can start.
    """
    number, start = lines[at].number, lines[at].text.lstrip()
    if _PRINTED_START.match("".join(line.text for line in lines[at : at + 3])):
        # Python or JavaScript has printed the value, on several lines if the first one has no end.
        is_open = start.endswith(("{", "[", ","))
        text = "\n".join(line.text for line in lines[at : at + (_MAX_PRINTED if is_open else 1)])
        texts = _PRINTED.sub(_as_json, text).split("\n")
        lines, at, start = [Line(number, text) for text in texts], 0, texts[0].lstrip()
    if not _JSON_START.match(start):
        return None
    try:
        value, end = json.JSONDecoder().raw_decode(start)
        text = start
    except (ValueError, RecursionError):
        text = "\n".join([start, *(line.text for line in lines[at + 1 :])])
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            end = 0
    parts = [text[:end], *_values_behind(text, end)]
    end = sum(map(len, parts))
    count = text.count("\n", 0, end) + 1
    # A shell prints its prompt, or the sign of a missing line end, behind the last value.
    rest = text[end:].partition("\n")[0].strip(",; \t\r")
    if not end or (rest and not (_BEHIND.fullmatch(rest) or noise_rule(rest) == "prompt")):
        count = max(count, _incomplete(lines, at))
        text = "\n".join([start, *(line.text for line in lines[at + 1 : at + count])])
        end = len(text)
    try:
        joined = text[:end] if len(parts) == 1 else f"[{','.join(parts)}]"
        value = parse_json(joined, where=name, first_line=number)
    except InputError as error:
        return FoundText("JSON", error=error, count=count)
    is_complete = at > 0 and _GENERATED in lines[at - 1].text
    try:
        contents, rule = _read_value(value, number, name=name, is_complete=is_complete)
    except UnknownFormatError as error:
        if isinstance(value, dict) and not (_LOG_KEYS.isdisjoint(value) or has_data(value)):
            return FoundText("JSON of a log", count=count, value=value, is_noise=True)
        return FoundText("JSON", error=error, count=count, value=value)
    except (InputError, RecursionError) as error:
        invalid = (
            error if isinstance(error, InputError) else InputError(f"{name}:{number}: {error}")
        )
        return FoundText("JSON", error=invalid, count=count, value=value)
    return FoundText(rule, contents, count=count)


def _as_json(match: re.Match[str]) -> str:
    if match["text"] is None:
        return _WRITTEN.get(match[0], f'"{match[0]}"' if match["key"] else match[0])
    text = match["text"].replace("\\'", "'").replace('"', '\\"')
    return f'"{text}"'


_PRINTED_START, _PRINTED = FORMS["start of a printed value"], FORMS["part of a printed value"]
_WRITTEN = dict.fromkeys(("None", "nil", "undefined"), "null")
_WRITTEN |= {"True": "true", "False": "false", "=>": ":", ",": ""}
_MAX_PRINTED = 5_000
"""Maximum number of lines of a value as Python or JavaScript prints it."""


def _values_behind(text: str, end: int) -> Iterator[str]:
    while end and text[end : end + 1] in ("{", "["):
        try:
            _, stop = json.JSONDecoder().raw_decode(text, end)
        except (ValueError, RecursionError):
            return
        yield text[end:stop]
        end = stop


def _incomplete(lines: Sequence[Line], at: int) -> int:
    """Return the number of lines of an incomplete JSON value."""
    for count, line in enumerate(lines[at + 1 :], start=1):
        if line.text.startswith(("{", "[")) or not line.text.strip():
            return count
    return len(lines) - at


def _read_value(
    value: object, line: int, *, name: str, is_complete: bool
) -> tuple[list[DocumentRows], str]:
    """Read the data in a JSON value, and return its rows and the name of the tool."""
    where = f"{name}:{line}"
    if is_group_json(value):
        return read_group_json(value, where, line=line), "description of groups"
    if isinstance(value, list):
        parts = [_read_value(each, line, name=name, is_complete=is_complete) for each in value]
        return [one for part, _ in parts for one in part], parts[0][1] if parts else "JSON: []"
    if not isinstance(value, dict):
        raise UnknownFormatError(f"{where}: expected an object, got {format_value(value)}")
    document = JsonFields(value, where)
    table = document.table
    data = table.get("data")
    is_series = isinstance(data, dict) and data.get("resultType") not in (None, "streams")
    if isinstance(table.get("status"), str) and (is_series or "errorType" in table):
        return read_series(document, line, name=name), "Prometheus"
    if "version" in table and ("partitions" in table or "topics" in table):
        return [_reassignment(document, is_complete=is_complete)], "kafka-reassign-partitions.sh"
    kafka = table.get("kafka")
    is_other = "kafka" in table and not (isinstance(kafka, dict) and "consumergroup" in kafka)
    for needed, read, rule in _DOCUMENTS:
        is_needed = needed <= table.keys() and not (is_other and "kafka" in needed)
        if is_needed and table.get("kind") not in _KUBERNETES:
            return [read(document, line)], rule
    if (found := _read_envelope(document, line, name=name, is_complete=is_complete)) is not None:
        return found
    keys = ", ".join(map(repr, list(table)[:5]))
    raise UnknownFormatError(
        f"{where}: not the JSON output of a supported tool; its first keys: {keys}"
    )


_KUBERNETES = ("List", "ConfigMap", "ConfigMapList")


def _read_envelope(
    document: JsonFields, line: int, *, name: str, is_complete: bool
) -> tuple[list[DocumentRows], str] | None:
    """Read the JSON values inside an object such as ``{"data": [...], "headers": {...}}``.

    Return None if no value has a known form, or if a value of an unknown form may contain data.
    """
    found, values = [], list(document.table.values())
    for inner in values:
        if not isinstance(inner, dict | list) or not inner:
            continue
        try:
            found.append(_read_value(inner, line, name=name, is_complete=is_complete))
        except (UnknownFormatError, RecursionError):
            if has_data(inner):
                return None
    if not found or any(isinstance(one, str) and "\n" in one for one in values):
        return None
    for one in (document.table, *(one for one in values if isinstance(one, dict))):
        require_last_page(one, document.where)
    return [one for contents, _ in found for one in contents], found[0][1]


_NAMES_IN_GROUPS = FORMS["names in groups"]
_DATA_NAMES = re.compile("(?i)partition|connector|member|consumer|assign|offset|^lag|topic|task")


def has_data(value: object) -> bool:
    """Return whether a JSON value has a key such as members, partitions or lags."""
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, dict) and any(map(_DATA_NAMES.search, map(str, one))):
            return True
        rest += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return False


_LOG_KEYS = frozenset({"time", "timestamp", "@timestamp", "ts", "level", "msg", "message"})


def hides_json(text: str) -> bool:
    """Return whether a line contains a JSON object about groups after other text."""
    start = text.find('{"')
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start) if start > 0 else (None, 0)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and any(map(_NAMES_IN_GROUPS.search, value))


def texts_in_json(values: Sequence[object]) -> list[str]:
    """Join the strings at the same key of several JSON values, such as log messages.

    A key is a path without list indexes, except in records such as [time, line].
    """
    found: dict[str, list[str]] = {}
    rest: list[tuple[Any, str, bool]] = [(one, "", len(values) > 1) for one in reversed(values)]
    while rest:
        value, place, in_list = rest.pop()
        if isinstance(value, str):
            found.setdefault(place, []).append(value)
        elif isinstance(value, dict):
            if value.keys() in _NAMED_VALUES:
                value = {str(next(iter(value.values()))): value["value"]}
            rest += [(one, f"{place}.{key}", False) for key, one in reversed(value.items())]
        elif isinstance(value, list):
            is_record = in_list and not any(isinstance(one, dict | list) for one in value)
            is_record &= len(value) == 2 or not all(isinstance(one, str) for one in value)
            keys = range(len(value)) if is_record else "*" * len(value)
            items = [(one, f"{place}.{key}", True) for key, one in zip(keys, value, strict=True)]
            rest += reversed(items)
    texts = ("".join(f"{one.rstrip()}\n" for one in lines) for lines in found.values())
    return list(dict.fromkeys(text for text in texts if _MAY_BE_CAPTURE.search(text)))


_MAY_BE_CAPTURE = re.compile(r"\S\s+\S|\{|,|;")
_NAMED_VALUES = ({"field", "value"}, {"name", "value"}, {"key", "value"})


def _kcat_metadata(document: JsonFields, _line: int) -> DocumentRows:
    """Read partition counts from the output of ``kcat -L -J``."""
    found = []
    for topic in document.each("topics"):
        numbers = sorted(partition.integer("partition") for partition in topic.each("partitions"))
        if numbers != list(range(len(numbers))):
            raise InputError(
                f"{topic.where}: partition numbers must be 0, 1, 2 and so on without gaps, "
                f"got {numbers}"
            )
        found.append(DocumentRows(partition_counts={topic.text("topic"): len(numbers)}))
    return merge_rows(found, document.where)


def _log_dirs(document: JsonFields, _line: int) -> DocumentRows:
    """Read the size of each replica in bytes from ``kafka-log-dirs.sh``.

    Replicas that are being copied to another directory do not count.
    """
    sizes: dict[tuple[int | None, str, int], int] = {}
    rows = (
        (broker.optional_integer("broker"), row)
        for broker in document.each("brokers")
        for directory in broker.each("logDirs")
        for row in directory.each("partitions")
    )
    for broker, row in rows:
        partition = row.text("partition")
        match = _PARTITION.fullmatch(partition)
        if match is None:
            raise InputError(f"{row.where}.partition: must be TOPIC-NUMBER, got {partition!r}")
        size = row.integer("size")
        if size < 0:
            raise InputError(f"{row.where}.size: must be at least 0, got {size}")
        if row.table.get("isFuture") is not True:
            key = broker, match["topic"], int(match["number"])
            sizes[key] = max(size, sizes.get(key, 0))
    return DocumentRows(replica_sizes=sizes)


def _reassignment(document: JsonFields, *, is_complete: bool) -> DocumentRows:
    """Read partition counts from ``kafka-reassign-partitions.sh``.

    The output of ``--generate`` lists all partitions of its topics. Other lists have only the
    partitions to move, so they give minimum counts.
    """
    if "partitions" not in document.table:
        raise InputError(
            f"{document.where}: the document lists topics but not their partitions; "
            "use the output of --generate"
        )
    numbers: dict[str, set[int]] = {}
    for row in document.each("partitions"):
        numbers.setdefault(row.text("topic"), set()).add(row.count("partition"))
    counts = {topic: max(listed) + 1 for topic, listed in numbers.items()}
    if not is_complete:
        return DocumentRows(minimum_counts=counts)
    for topic, count in counts.items():
        if len(numbers[topic]) != count:
            raise InputError(
                f"{document.where}: the text lists {len(numbers[topic])} partitions of topic "
                f"{topic!r}, but the highest partition number is {count - 1}; use the complete "
                "output of --generate"
            )
    return DocumentRows(partition_counts=counts)


_DOCUMENTS: tuple[tuple[frozenset[str], Callable[[JsonFields, int], DocumentRows], str], ...] = (
    (frozenset({"kind"}), read_rest_resource, "REST Proxy"),
    (frozenset({"status", "error"}), read_burrow_lag, "Burrow: lag"),
    (frozenset({"topics", "error", "request"}), read_burrow_consumer, "Burrow: consumer"),
    (frozenset({"kafka"}), read_metricbeat_event, "Metricbeat"),
    (frozenset({"topics", "brokers"}), _kcat_metadata, "kcat -L -J"),
    (frozenset({"brokers"}), _log_dirs, "kafka-log-dirs.sh"),
)
"""Required keys of a tool's JSON object, its reader, and the name of the tool."""


class UnknownFormatError(InputError):
    """Error for a JSON value that no supported tool writes."""
