"""Read partition counts from the output of ``kafka-topics.sh`` or ``kcat -L -J``."""

import re
import uuid
from collections.abc import Mapping
from typing import NamedTuple

from kassay.experiments.sources.located_error import error_at
from kassay.reference.documents.document_fields import as_array, as_integer, as_object, as_text
from kassay.reference.documents.topic_documents import parse_topic_id
from kassay.reference.model.errors import InputError

_TOPIC = re.compile(
    r"\s*Topic: ?(?P<topic>[a-zA-Z0-9._-]+)\s(?:.*?\bTopicId: ?(?P<id>\S+)\s)?"
    r".*?PartitionCount: ?(?P<count>\d+)\s.*"
)
_COUNT_LABEL = "PartitionCount:"

Counts = dict[str, int]


class DescribedTopics(NamedTuple):
    """Partition counts and topic ids by topic name.

    Kafka releases before 2.8 print no topic ids.
    """

    counts: Counts
    ids: dict[str, uuid.UUID]


def is_topic_description(text: str) -> bool:
    """Return whether a text is the output of ``kafka-topics.sh --describe``."""
    return _COUNT_LABEL in text


def parse_topic_description(text: str, *, name: str) -> DescribedTopics:
    """Read partition counts and topic ids from the output of ``kafka-topics.sh --describe``."""
    counts: Counts = {}
    ids: dict[str, uuid.UUID] = {}
    for line, content in enumerate(text.splitlines(), start=1):
        if _COUNT_LABEL not in content:
            continue
        match = _TOPIC.fullmatch(content)
        if match is None:
            raise error_at(name, line, "not a complete line of kafka-topics.sh --describe", content)
        where = f"{name}:{line}"
        _add(counts, match["topic"], int(match["count"]), where)
        if (id := parse_topic_id(match["id"], where)) is not None:
            ids[match["topic"]] = id
    return DescribedTopics(counts, ids)


def parse_kcat_metadata(value: object, *, name: str) -> Counts:
    """Read partition counts from the output of ``kcat -L -J``."""
    document = as_object(value, name)
    if "topics" not in document:
        raise InputError(f"{name}: missing key 'topics', expected the output of kcat -L -J")
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
        _add(counts, title, len(numbers), where)
    return counts


def merge_counts(left: Counts, right: Mapping[str, int], *, where: str) -> Counts:
    """Merge two dicts of partition counts by topic. Raise InputError if counts differ."""
    merged = dict(left)
    for topic, count in right.items():
        _add(merged, topic, count, where)
    return merged


def _add(counts: Counts, topic: str, count: int, where: str) -> None:
    if counts.setdefault(topic, count) != count:
        raise InputError(
            f"{where}: topic {topic!r} has {count} partitions here, "
            f"but {counts[topic]} in another part of the input"
        )
