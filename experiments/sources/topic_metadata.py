"""How many partitions topics have, from what ``kafka-topics.sh`` or ``kcat -L -J`` prints."""

import re
from collections.abc import Mapping

from kassay.experiments.sources.errors import SourceError, located
from kassay.reference.documents.document_fields import as_array, as_integer, as_object, as_text

_TOPIC = re.compile(
    r"\s*Topic: ?(?P<topic>[a-zA-Z0-9._-]+)\s.*?PartitionCount: ?(?P<count>\d+)\s.*"
)
_MENTIONS = "PartitionCount:"

Counts = dict[str, int]


def is_topic_description(text: str) -> bool:
    """Say whether a text is what ``kafka-topics.sh --describe`` prints."""
    return _MENTIONS in text


def parse_topic_description(text: str, *, name: str) -> Counts:
    r"""Read partition counts off ``kafka-topics.sh --describe``.

    Raises
    ------
    SourceError
        If a topic's line is cut, or two lines differ about one topic.

    Examples
    --------
    >>> text = "Topic: t\tTopicId: x\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: \n"
    >>> parse_topic_description(text, name="topics.txt")
    {'t': 3}
    """
    counts: Counts = {}
    for line, content in enumerate(text.splitlines(), start=1):
        if _MENTIONS not in content:
            continue
        match = _TOPIC.fullmatch(content)
        if match is None:
            raise located(name, line, "not a whole line of kafka-topics.sh --describe", content)
        _enter(counts, match["topic"], int(match["count"]), f"{name}:{line}")
    return counts


def parse_kcat_metadata(value: object, *, name: str) -> Counts:
    """Read partition counts off the document that ``kcat -L -J`` prints.

    Raises
    ------
    SourceError
        If it is not such a document.

    Examples
    --------
    >>> document = {"topics": [{"topic": "t", "partitions": [{"partition": 0}]}]}
    >>> parse_kcat_metadata(document, name="metadata.json")
    {'t': 1}
    """
    document = as_object(value, name)
    if "topics" not in document:
        raise SourceError(f"{name}: missing key 'topics', is it what kcat -L -J prints?")
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
            raise SourceError(f"{where}: partitions are not numbered from 0: {sorted(numbers)}")
        _enter(counts, title, len(numbers), where)
    return counts


def merge_counts(left: Counts, right: Mapping[str, int], *, where: str) -> Counts:
    """Put two tables together.

    Raises
    ------
    SourceError
        If they differ about a topic.
    """
    merged = dict(left)
    for topic, count in right.items():
        _enter(merged, topic, count, where)
    return merged


def _enter(counts: Counts, topic: str, count: int, where: str) -> None:
    if counts.setdefault(topic, count) != count:
        raise SourceError(
            f"{where}: topic {topic!r} has {count} partitions here, {counts[topic]} elsewhere"
        )
