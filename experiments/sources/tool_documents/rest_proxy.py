"""REST Proxy API v3: consumer groups, consumers, assignments, lags and topics."""

from collections.abc import Callable

from kassay.experiments.sources.describe_output import MemberRow, OffsetRow, StateRow
from kassay.experiments.sources.tool_documents.document_rows import (
    DocumentFields,
    DocumentRows,
)
from kassay.reference.model.errors import InputError


def read_rest_resource(document: DocumentFields, *, line: int) -> DocumentRows:
    """Read a resource or a list of resources."""
    kind = document.text("kind")
    if not kind.endswith("List"):
        return _read([document], kind, line)
    _require_single_page(document)
    return _read(document.each("data"), kind.removesuffix("List"), line)


def _read(resources: list[DocumentFields], kind: str, line: int) -> DocumentRows:
    reader = _READERS.get(kind)
    if reader is None:
        where = resources[0].where if resources else f"line {line}"
        raise InputError(f"{where}: kind {kind!r} has no members or partitions")
    return reader(resources, line)


def _require_single_page(document: DocumentFields) -> None:
    metadata = document.optional_inner("metadata")
    next_page = None if metadata is None else metadata.table.get("next")
    if next_page:
        raise InputError(
            f"{document.where}.metadata.next: the list continues at {next_page!r}; "
            "request a page with all entries"
        )


def _groups(resources: list[DocumentFields], line: int) -> DocumentRows:
    rows = [
        StateRow(
            line,
            resource.text("consumer_group_id"),
            resource.optional_text("state") or "Unknown",
        )
        for resource in resources
    ]
    return DocumentRows(states=rows)


def _consumers(resources: list[DocumentFields], line: int) -> DocumentRows:
    return DocumentRows(members=[_member(resource, line) for resource in resources])


def _member(resource: DocumentFields, line: int) -> MemberRow:
    return MemberRow(
        line=line,
        group=resource.text("consumer_group_id"),
        consumer_id=resource.text("consumer_id"),
        instance_id=resource.optional_text("instance_id"),
        client_id=resource.optional_text("client_id"),
    )


def _partitions(resources: list[DocumentFields], line: int) -> DocumentRows:
    return DocumentRows(offsets=[_partition(resource, line) for resource in resources])


def _partition(resource: DocumentFields, line: int) -> OffsetRow:
    lag = resource.table.get("lag")
    return OffsetRow(
        line,
        resource.text("consumer_group_id"),
        resource.text("topic_name"),
        resource.count("partition_id"),
        consumer_id=resource.optional_text("consumer_id"),
        client_id=resource.optional_text("client_id"),
        current=resource.optional_integer("current_offset"),
        end=resource.optional_integer("log_end_offset"),
        # A link, in a list of assignments.
        lag=None if isinstance(lag, dict) else resource.optional_integer("lag"),
    )


def _topics(resources: list[DocumentFields], _line: int) -> DocumentRows:
    return DocumentRows(
        partition_counts={r.text("topic_name"): r.count("partitions_count") for r in resources}
    )


_READERS: dict[str, Callable[[list[DocumentFields], int], DocumentRows]] = {
    "KafkaConsumerGroup": _groups,
    "KafkaConsumer": _consumers,
    "KafkaConsumerAssignment": _partitions,
    "KafkaConsumerLag": _partitions,
    "KafkaTopic": _topics,
}
