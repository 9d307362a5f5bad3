"""Parser of REST Proxy API v3 responses: consumer groups, assignments, lags and topics."""

from kassay.experiments.sources.describe_output import MemberRow, OffsetRow, StateRow
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows
from kassay.experiments.sources.tool_documents.json_fields import JsonFields
from kassay.reference.model.errors import InputError


def read_rest_resource(document: JsonFields, *, line: int) -> DocumentRows:
    """Read a REST Proxy response that contains one resource or a list of resources."""
    kind, resources = document.text("kind"), [document]
    if kind.endswith("List"):
        _require_single_page(document)
        kind, resources = kind.removesuffix("List"), document.each("data")
    match kind:
        case "KafkaConsumerGroup":
            return DocumentRows(states=[_state(resource, line) for resource in resources])
        case "KafkaConsumer":
            return DocumentRows(members=[_member(resource, line) for resource in resources])
        case "KafkaConsumerAssignment" | "KafkaConsumerLag":
            return DocumentRows(offsets=[_partition(resource, line) for resource in resources])
        case "KafkaTopic":
            return DocumentRows(
                partition_counts={
                    resource.text("topic_name"): resource.count("partitions_count")
                    for resource in resources
                }
            )
    where = resources[0].where if resources else f"line {line}"
    raise InputError(
        f"{where}: a document of kind {kind!r} contains neither members nor partitions"
    )


def _require_single_page(document: JsonFields) -> None:
    metadata = document.optional_inner("metadata")
    next_page = None if metadata is None else metadata.table.get("next")
    if next_page:
        raise InputError(
            f"{document.where}.metadata.next: the list continues at {next_page!r}; "
            "request a page with all entries"
        )


def _state(resource: JsonFields, line: int) -> StateRow:
    state = resource.optional_text("state") or "Unknown"
    return StateRow(line, resource.text("consumer_group_id"), state)


def _member(resource: JsonFields, line: int) -> MemberRow:
    return MemberRow(
        line,
        resource.text("consumer_group_id"),
        resource.text("consumer_id"),
        instance_id=resource.optional_text("instance_id"),
        client_id=resource.optional_text("client_id"),
    )


def _partition(resource: JsonFields, line: int) -> OffsetRow:
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
