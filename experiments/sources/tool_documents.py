"""Detect which tool wrote a document, and parse the document.

The parsers of Kafka's tools about topics, log directories and reassignments are in this module.
"""

import re
import uuid
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Protocol

from kassay.experiments.sources.document_rows import (
    Counts,
    DocumentRows,
    JsonFields,
    add_count,
    embedded_objects,
    merge_counts,
)
from kassay.experiments.sources.monitoring_tools import (
    is_metrics,
    parse_metrics,
    read_burrow_consumer,
    read_burrow_lag,
    read_metricbeat_event,
    read_rest_resource,
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
from kassay.reference.model.errors import InputError

_TOPIC = re.compile(
    r"\s*Topic: ?(?P<topic>[a-zA-Z0-9._-]+)\s(?:.*?\bTopicId: ?(?P<id>\S+)\s)?"
    r".*?PartitionCount: ?(?P<count>\d+)\s.*"
)
_COUNT_LABEL = "PartitionCount:"


_LOG_DIRS_KEY = re.compile(r'"logDirs"\s*:')
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<number>\d+)")
_GENERATED = "Proposed partition reassignment configuration"
_VERSION_KEY = '"version"'


def is_topic_description(text: str) -> bool:
    """Return whether a text is the output of ``kafka-topics.sh --describe``."""
    return _COUNT_LABEL in text


def parse_topic_description(text: str, *, name: str) -> DocumentRows:
    """Read partition counts and topic ids from the output of ``kafka-topics.sh --describe``.

    Kafka releases before 2.8 print no topic ids.
    """
    counts: Counts = {}
    ids: dict[str, uuid.UUID] = {}
    for line, content in enumerate(text.splitlines(), start=1):
        if _COUNT_LABEL not in content:
            continue
        match = _TOPIC.fullmatch(content)
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


def is_log_dirs(text: str) -> bool:
    """Return whether a text is output of ``kafka-log-dirs.sh --describe``."""
    return '"brokers"' in text and _LOG_DIRS_KEY.search(text) is not None


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


def is_reassignment(text: str) -> bool:
    """Return whether a text contains a partition list of ``kafka-reassign-partitions.sh``."""
    return _VERSION_KEY in text and ('"partitions"' in text or '"topics"' in text)


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
