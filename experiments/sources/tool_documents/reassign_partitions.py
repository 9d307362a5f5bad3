"""Partition lists of ``kafka-reassign-partitions.sh``, alone or within what it prints."""

import json

from kassay.experiments.sources.errors import SourceError, located
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows, Fields
from kassay.reference.documents.document_fields import as_object
from kassay.reference.documents.json_text import parse_json

_GENERATED = "Proposed partition reassignment configuration"
_VERSION_KEY = '"version"'


def is_reassignment(text: str) -> bool:
    """Say whether a text holds a list that the tool reads or prints."""
    return _VERSION_KEY in text and ('"partitions"' in text or '"topics"' in text)


def parse_reassignment(text: str, *, name: str) -> DocumentRows:
    r"""Read partition counts off the lists in a text.

    Only ``--generate`` lists every partition of its topics; other lists have those that are
    to move, so that a topic may have more.

    Raises
    ------
    SourceError
        If a list is damaged, or names topics without their partitions.

    Examples
    --------
    >>> rows = '[{"topic": "t", "partition": 0, "replicas": [1]}]'
    >>> found = parse_reassignment('{"version": 1, "partitions": ' + rows + "}", name="r.json")
    >>> found.counts, found.at_least
    ({}, {'t': 1})
    """
    numbers: dict[str, set[int]] = {}
    for line, document in _documents(text, name):
        fields = Fields(as_object(document, f"{name}:{line}"), f"{name}:{line}")
        if "partitions" not in fields.table:
            raise SourceError(f"{name}:{line}: lists topics but not their partitions")
        for row in fields.each("partitions"):
            numbers.setdefault(row.text("topic"), set()).add(row.count("partition"))
    highest = {topic: max(seen) + 1 for topic, seen in numbers.items()}
    gap = next((topic for topic, seen in numbers.items() if len(seen) != highest[topic]), None)
    if _GENERATED not in text:
        return DocumentRows(at_least=highest)
    if gap is not None:
        raise SourceError(
            f"{name}: lists {len(numbers[gap])} partitions of topic {gap!r}, the highest is "
            f"{highest[gap] - 1}: some are missing"
        )
    return DocumentRows(counts=highest)


def _documents(text: str, name: str) -> list[tuple[int, object]]:
    found: list[tuple[int, object]] = []
    position = text.find("{")
    while position >= 0:
        line = text.count("\n", 0, position) + 1
        try:
            _, end = json.JSONDecoder().raw_decode(text, position)
        except (ValueError, RecursionError):
            raise located(name, line, "not a whole list of partitions", text[position:]) from None
        found.append((line, parse_json(text[position:end], where=name, first_line=line)))
        position = text.find("{", end)
    return found
