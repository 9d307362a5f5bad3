"""Read partition sizes from the output of ``kafka-log-dirs.sh --describe``."""

import re

from kassay.experiments.sources.tool_documents.document_rows import DocumentRows
from kassay.experiments.sources.tool_documents.json_fields import embedded_objects
from kassay.reference.model.errors import InputError

_LOG_DIRS_KEY = re.compile(r'"logDirs"\s*:')
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<number>\d+)")


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
