"""Parsers of the output of Kafka's tools about topics, log directories and reassignments."""

import re
import uuid
from collections.abc import Mapping

from kassay.experiments.sources.tool_documents.document_rows import (
    Counts,
    DocumentRows,
    add_count,
    embedded_objects,
)
from kassay.reference.documents.json_values import as_array, as_integer, as_object, as_text
from kassay.reference.documents.text_files import error_at
from kassay.reference.documents.topic_and_member_documents import parse_topic_id
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
