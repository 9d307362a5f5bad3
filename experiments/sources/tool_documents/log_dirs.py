"""Sizes of partitions, from what ``kafka-log-dirs.sh --describe`` prints."""

import json
import re

from kassay.experiments.sources.errors import SourceError, located
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows, Fields
from kassay.reference.documents.document_fields import as_object
from kassay.reference.documents.json_text import parse_json

_MARK = re.compile(r'"logDirs"\s*:')
_NAME = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<number>\d+)")


def is_log_dirs(text: str) -> bool:
    """Say whether a text is what the tool prints."""
    return '"brokers"' in text and _MARK.search(text) is not None


def parse_log_dirs(text: str, *, name: str) -> DocumentRows:
    r"""Read the size of every partition, in bytes, off the document in a text.

    The tool does not say who leads. Replicas differ by what a follower has yet to fetch or a
    broker yet to delete, so the largest stands for the partition. A replica that is being
    copied to another directory does not count, and one in a directory that failed is not
    shown.

    Raises
    ------
    SourceError
        If the document is cut or damaged, or a size is negative.

    Examples
    --------
    >>> def broker(number, size):
    ...     row = {"partition": "t-0", "size": size, "offsetLag": 0, "isFuture": False}
    ...     return {
    ...         "broker": number,
    ...         "logDirs": [{"logDir": "/d", "error": None, "partitions": [row]}],
    ...     }
    >>> document = json.dumps({"version": 1, "brokers": [broker(1, 90), broker(2, 120)]})
    >>> parse_log_dirs("Querying brokers\n" + document, name="sizes.txt").sizes
    {('t', 0): 120}
    """
    sizes: dict[tuple[str, int], int] = {}
    position, end = text.find("{"), 0
    while position >= 0:
        line = text.count("\n", 0, position) + 1
        try:
            _, end = json.JSONDecoder().raw_decode(text, position)
        except (ValueError, RecursionError):
            problem = "not a whole list of log directories"
            raise located(name, line, problem, text[position:]) from None
        where = f"{name}:{line}"
        document = parse_json(text[position:end], where=name, first_line=line)
        _enter(sizes, Fields(as_object(document, where), where))
        position = text.find("{", end)
    return DocumentRows(sizes=sizes)


def _enter(sizes: dict[tuple[str, int], int], document: Fields) -> None:
    for broker in document.each("brokers"):
        for directory in broker.each("logDirs"):
            for row in directory.each("partitions"):
                title = row.text("partition")
                match = _NAME.fullmatch(title)
                if match is None:
                    raise SourceError(f"{row.where}.partition: not a partition: {title!r}")
                size = row.integer("size")
                if size < 0:
                    raise SourceError(f"{row.where}.size: not a size in bytes: {size}")
                if row.table.get("isFuture") is not True:
                    place = match["topic"], int(match["number"])
                    sizes[place] = max(size, sizes.get(place, 0))
