"""Detect which tool wrote a document, and parse the document."""

from collections.abc import Callable
from io import StringIO
from typing import Protocol

from kassay.experiments.sources.tool_documents.document_rows import (
    DocumentRows,
    JsonFields,
    merge_counts,
)
from kassay.experiments.sources.tool_documents.monitoring_tools import (
    read_burrow_consumer,
    read_burrow_lag,
    read_metricbeat_event,
    read_rest_resource,
)
from kassay.experiments.sources.tool_documents.prometheus import is_metrics, parse_metrics
from kassay.experiments.sources.tool_documents.topic_and_log_dir_tools import (
    is_log_dirs,
    is_reassignment,
    is_topic_description,
    parse_kcat_metadata,
    parse_log_dirs,
    parse_reassignment,
    parse_topic_description,
)
from kassay.reference.documents.json_values import as_object, read_json_documents
from kassay.reference.model.errors import InputError


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


def _starts_json(text: str) -> bool:
    return text.lstrip().startswith(("{", "["))


_TOOLS: tuple[tuple[Callable[[str], bool], Parser], ...] = (
    (is_topic_description, parse_topic_description),
    (is_metrics, parse_metrics),
    (is_log_dirs, parse_log_dirs),
    (is_reassignment, parse_reassignment),
    (_starts_json, parse_json_documents),
)
"""Function that recognises the output of a tool, and its parser. The first match counts."""
