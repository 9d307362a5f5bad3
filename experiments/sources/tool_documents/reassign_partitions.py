"""Read partition counts from JSON files or output of ``kafka-reassign-partitions.sh``."""

from kassay.experiments.sources.tool_documents.document_rows import DocumentRows
from kassay.experiments.sources.tool_documents.json_fields import embedded_objects
from kassay.reference.model.errors import InputError

_GENERATED = "Proposed partition reassignment configuration"
_VERSION_KEY = '"version"'


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
                f"{document.where}: lists topics but not their partitions; "
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
                f"{name}: lists {len(numbers[topic])} partitions of topic {topic!r}, but the "
                f"highest partition number is {count - 1}; use the complete output of --generate"
            )
    return DocumentRows(partition_counts=counts)
