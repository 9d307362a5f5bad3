"""Parsers of responses of REST Proxy (API v3) and Burrow, and of Metricbeat's events.

Burrow's paths are ``/v3/kafka/CLUSTER/consumer/GROUP/lag`` and the same path without ``/lag``.
"""

import re
from typing import Any

from kassay.experiments.sources.describe_output.typed_rows import MemberRow, OffsetRow, StateRow
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows, JsonFields
from kassay.reference.documents.kind_documents import Kind, wrong_kind_error
from kassay.reference.model.errors import InputError

_CONSUMER_URL = re.compile(r"/consumer/(?P<group>[^/?]+)")


def read_rest_resource(document: JsonFields, *, line: int) -> DocumentRows:
    """Read a REST Proxy response that contains one resource or a list of resources."""
    kind, resources = document.text("kind"), [document]
    if kind in set(Kind):
        raise wrong_kind_error(kind, document.where)
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
        f"{where}: kind {kind!r} is not supported; expected KafkaConsumerGroup, KafkaConsumer, "
        "KafkaConsumerAssignment, KafkaConsumerLag or KafkaTopic"
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


def read_burrow_lag(document: JsonFields, *, line: int) -> DocumentRows:
    """Read Burrow's response about the lag of a consumer group.

    Burrow shows the owner's host and, in newer releases, its client id. It has no member ids.
    """
    if document.table.get("error") is not False:
        raise InputError(f"{document.where}: Burrow reported: {document.table.get('message')!r}")
    status = document.inner("status")
    partitions = status.each("partitions")
    total = status.optional_integer("partition_count")
    if total is not None and total != len(partitions):
        raise InputError(
            f"{status.where}.partitions: lists {len(partitions)} of {total} partitions, "
            "request /lag instead of /status from Burrow"
        )
    group = status.text("group")
    return _document([_row(partition, group, line) for partition in partitions])


def read_burrow_consumer(document: JsonFields, *, line: int) -> DocumentRows:
    """Read Burrow's response with the details of a consumer group: partitions per topic."""
    url = document.inner("request").text("url")
    match = _CONSUMER_URL.search(url)
    if match is None:
        raise InputError(
            f"{document.where}.request.url: the URL contains no consumer group: {url!r}"
        )
    topics = document.inner("topics")
    return _document(
        [
            OffsetRow(
                line,
                match["group"],
                topic,
                number,
                lag=partition.optional_integer("current-lag"),
                **_owner(partition),
            )
            for topic in topics.table
            for number, partition in enumerate(topics.each(topic))
        ]
    )


def _document(rows: list[OffsetRow]) -> DocumentRows:
    """Build a `DocumentRows` from offset rows, and state whether any row shows an owner.

    If no partition has an owner, Burrow does not know the members.
    """
    return DocumentRows(offsets=rows, shows_owners=any(row.owner is not None for row in rows))


def _owner(partition: JsonFields) -> dict[str, Any]:
    host, client = partition.optional_text("owner"), partition.optional_text("client_id")
    owner = host if client is None else f"{client}_{host or ''}"
    return {"owner": owner, "host": host, "client_id": client}


def _row(partition: JsonFields, group: str, line: int) -> OffsetRow:
    end = partition.optional_inner("end")
    lag = partition.optional_integer("current_lag")
    return OffsetRow(
        line,
        group,
        partition.text("topic"),
        partition.count("partition"),
        current=None if end is None else end.optional_integer("offset"),
        lag=lag if lag is not None or end is None else end.optional_integer("lag"),
        **_owner(partition),
    )


def read_metricbeat_event(event: JsonFields, *, line: int) -> DocumentRows:
    """Convert one Metricbeat event, which describes one partition, to an offset row."""
    group = event.inner("kafka").inner("consumergroup")
    error = group.optional_inner("error")
    code = None if error is None else error.optional_integer("code")
    if code:
        raise InputError(f"{group.where}.error.code: Kafka returned error code {code}")
    client = group.optional_inner("client")
    topic = group.table.get("topic")  # an object since release 7.0
    row = OffsetRow(
        line,
        group.text("id"),
        group.inner("topic").text("name") if isinstance(topic, dict) else group.text("topic"),
        group.count("partition"),
        consumer_id=None if client is None else client.optional_text("member_id"),
        client_id=None if client is None else client.optional_text("id"),
        current=group.optional_integer("offset"),
        lag=group.optional_integer("consumer_lag"),
    )
    return DocumentRows(offsets=[row])
