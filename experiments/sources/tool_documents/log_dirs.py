"""Sizes of partitions from the output of ``kafka-log-dirs.sh --describe``."""

import re

from kassay.experiments.sources.tool_documents.document_rows import (
    DocumentFields,
    DocumentRows,
    embedded_objects,
)
from kassay.reference.model.errors import InputError

_LOG_DIRS_KEY = re.compile(r'"logDirs"\s*:')
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<number>\d+)")


def is_log_dirs(text: str) -> bool:
    """Return whether a text is output of the tool."""
    return '"brokers"' in text and _LOG_DIRS_KEY.search(text) is not None


def parse_log_dirs(text: str, *, name: str) -> DocumentRows:
    r"""Read the size of every partition, in bytes.

    The size of a partition is the size of its largest replica, because the tool does not show
    the leader. Replicas that are being copied to another directory do not count.

    Examples
    --------
    >>> replica = '{"partition": "t-0", "size": 120, "isFuture": false}'
    >>> brokers = '[{"broker": 1, "logDirs": [{"logDir": "/d", "partitions": [' + replica + "]}]}]"
    >>> parse_log_dirs('Querying\n{"brokers": ' + brokers + "}", name="sizes.txt").sizes
    {('t', 0): 120}
    """
    sizes: dict[tuple[str, int], int] = {}
    for document in embedded_objects(text, name=name, kind="list of log directories"):
        _add_sizes(sizes, document)
    return DocumentRows(sizes=sizes)


def _add_sizes(sizes: dict[tuple[str, int], int], document: DocumentFields) -> None:
    for broker in document.each("brokers"):
        for directory in broker.each("logDirs"):
            for row in directory.each("partitions"):
                name = row.text("partition")
                match = _PARTITION.fullmatch(name)
                if match is None:
                    raise InputError(f"{row.where}.partition: not a partition: {name!r}")
                size = row.integer("size")
                if size < 0:
                    raise InputError(f"{row.where}.size: not a size in bytes: {size}")
                if row.table.get("isFuture") is not True:
                    partition = match["topic"], int(match["number"])
                    sizes[partition] = max(size, sizes.get(partition, 0))
