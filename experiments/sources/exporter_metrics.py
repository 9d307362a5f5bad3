"""Read the metrics of groups and topics that Prometheus exporters write.

The exporters are kminion, kafka_exporter and kafka-lag-exporter.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from kassay.experiments.sources.document_rows import NO_ROWS, DocumentRows, JsonFields
from kassay.experiments.sources.table_rows import OffsetRow, StateRow
from kassay.experiments.sources.text_lines import FORMS
from kassay.reference.documents.input_files import (
    as_array,
    as_text,
    error_at,
    format_value,
    read_data_file,
)
from kassay.reference.documents.output_files import is_number
from kassay.reference.model.errors import InputError

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
    """Sample of a metric. Its methods raise InputError if a label or the value is invalid."""

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
        """Parse the value, such as ``4.259513e+06``, as an integer. Return None for NaN."""
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
    """Read a line of a Prometheus scrape. Return None for other lines.

    Comments and unused metrics have no content. Raise InputError for a used metric that is cut.
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
    """Return whether a text, for example behind a comment sign, is a sample of a used metric."""
    return text.startswith(tuple(f"{name}{{" for name in _METRICS))


def series_of(document: JsonFields, *types: str) -> Iterator[tuple[JsonFields, dict[str, str]]]:
    """Yield each series with its labels from an answer of Prometheus, or raise InputError."""
    if document.text("status") != "success":
        raise InputError(f"{document.where}: Prometheus reports: {document.table.get('error')!r}")
    data = document.inner("data")
    if data.text("resultType") not in types:
        raise InputError(f"{data.where}.resultType: must be {' or '.join(types)}; query a metric")
    for series in data.each("result"):
        labels = series.inner("metric")
        yield series, {key: as_text(value, labels.where) for key, value in labels.table.items()}


def read_series(document: JsonFields, line: int, *, name: str) -> list[DocumentRows]:
    """Read the newest value of each series from an answer of Prometheus's HTTP API."""
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
    """Return the metric of lag with these labels, or None. Sums of metrics have no name."""
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
