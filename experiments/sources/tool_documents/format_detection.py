"""Detect which tool wrote a document, and parse the document."""

from io import StringIO

from kassay.experiments.sources.tool_documents.document_rows import DocumentRows, merge_counts
from kassay.experiments.sources.tool_documents.json_fields import JsonFields
from kassay.experiments.sources.tool_documents.kafka_tools import (
    is_log_dirs,
    is_reassignment,
    parse_kcat_metadata,
    parse_log_dirs,
    parse_reassignment,
)
from kassay.experiments.sources.tool_documents.monitoring_tools import (
    read_burrow_consumer,
    read_burrow_lag,
    read_metricbeat_event,
    read_rest_resource,
)
from kassay.experiments.sources.tool_documents.prometheus import is_metrics, parse_metrics
from kassay.reference.documents.document_fields import as_object
from kassay.reference.documents.json_text import read_json_documents
from kassay.reference.model.errors import InputError


class UnknownFormatError(InputError):
    """Error: no supported tool writes JSON documents of this form."""


def read_tool_document(text: str, *, name: str) -> DocumentRows | None:
    """Parse the output of a supported tool. Return None if the text has another format."""
    if is_metrics(text):
        return parse_metrics(text, name=name)
    if is_log_dirs(text):
        return parse_log_dirs(text, name=name)
    if is_reassignment(text):
        return parse_reassignment(text, name=name)
    if text.lstrip()[:1] not in ("{", "["):
        return None
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
        return DocumentRows(partition_counts=parse_kcat_metadata(table, name=name))
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
