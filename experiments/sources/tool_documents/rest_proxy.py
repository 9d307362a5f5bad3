"""Lists of the REST Proxy API v3: consumer groups, consumers, assignments, lags, topics."""

from collections.abc import Callable

from kassay.experiments.sources.describe_output import MemberRow, OffsetRow
from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.tool_documents.document_rows import (
    DocumentRows,
    Fields,
    offset_row,
    state_row,
)
from kassay.reference.documents.document_fields import as_object


def read_resource(document: Fields, *, line: int) -> DocumentRows:
    """Read one resource or list, by its ``kind``.

    Raises
    ------
    SourceError
        If the kind is not one of those above, the list goes on on another page, or a
        field is missing.
    """
    kind = document.text("kind")
    if not kind.endswith("List"):
        return _read([document], kind, line)
    _require_whole(document)
    return _read(document.each("data"), kind.removesuffix("List"), line)


def _read(resources: list[Fields], kind: str, line: int) -> DocumentRows:
    reader = _READERS.get(kind)
    if reader is None:
        where = resources[0].where if resources else f"line {line}"
        raise SourceError(f"{where}: nothing about members or partitions in kind {kind!r}")
    return reader(resources, line)


def _require_whole(document: Fields) -> None:
    metadata = document.table.get("metadata")
    if metadata is None:
        return
    following = as_object(metadata, f"{document.where}.metadata").get("next")
    if following:
        raise SourceError(
            f"{document.where}.metadata.next: the list goes on at {following!r}; "
            "ask for a page that holds all"
        )


def _groups(resources: list[Fields], line: int) -> DocumentRows:
    rows = [
        state_row(
            line,
            resource.text("consumer_group_id"),
            state=resource.optional_text("state") or "Unknown",
            members=None,
        )
        for resource in resources
    ]
    return DocumentRows(states=rows)


def _consumers(resources: list[Fields], line: int) -> DocumentRows:
    return DocumentRows(members=[_member(resource, line) for resource in resources])


def _member(resource: Fields, line: int) -> MemberRow:
    return MemberRow(
        line=line,
        group=resource.text("consumer_group_id"),
        consumer_id=resource.text("consumer_id"),
        instance_id=resource.optional_text("instance_id"),
        host=None,
        client_id=resource.optional_text("client_id"),
        partitions=None,
    )


def _partitions(resources: list[Fields], line: int) -> DocumentRows:
    return DocumentRows(offsets=[_partition(resource, line) for resource in resources])


def _partition(resource: Fields, line: int) -> OffsetRow:
    lag = resource.table.get("lag")
    return offset_row(
        line,
        resource.text("consumer_group_id"),
        (resource.text("topic_name"), resource.count("partition_id")),
        consumer_id=resource.optional_text("consumer_id"),
        client_id=resource.optional_text("client_id"),
        current=resource.optional_integer("current_offset"),
        end=resource.optional_integer("log_end_offset"),
        # In a list of assignments, this key holds a link.
        lag=None if isinstance(lag, dict) else resource.optional_integer("lag"),
    )


def _topics(resources: list[Fields], _line: int) -> DocumentRows:
    return DocumentRows(
        counts={r.text("topic_name"): r.count("partitions_count") for r in resources}
    )


_READERS: dict[str, Callable[[list[Fields], int], DocumentRows]] = {
    "KafkaConsumerGroup": _groups,
    "KafkaConsumer": _consumers,
    "KafkaConsumerAssignment": _partitions,
    "KafkaConsumerLag": _partitions,
    "KafkaTopic": _topics,
}
