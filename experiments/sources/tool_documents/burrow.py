"""Parser of Burrow's HTTP responses about a consumer group.

The paths are ``/v3/kafka/CLUSTER/consumer/GROUP/lag`` and the same path without ``/lag``.
"""

import re
from dataclasses import replace

from kassay.experiments.sources.describe_output import OffsetRow
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows
from kassay.experiments.sources.tool_documents.json_fields import JsonFields
from kassay.reference.model.errors import InputError

_CONSUMER_URL = re.compile(r"/consumer/(?P<group>[^/?]+)")


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
            _detail_row(partition, OffsetRow(line, match["group"], topic, number))
            for topic in topics.table
            for number, partition in enumerate(topics.each(topic))
        ]
    )


def _document(rows: list[OffsetRow]) -> DocumentRows:
    """Build a `DocumentRows` from offset rows, and state whether any row shows an owner.

    If no partition has an owner, Burrow does not know the members.
    """
    return DocumentRows(offsets=rows, shows_owners=any(row.owner is not None for row in rows))


def _detail_row(partition: JsonFields, row: OffsetRow) -> OffsetRow:
    host, client = partition.optional_text("owner"), partition.optional_text("client_id")
    lag = partition.optional_integer("current-lag")
    return replace(row, lag=lag, owner=_owner(host, client), host=host, client_id=client)


def _owner(host: str | None, client: str | None) -> str | None:
    return host if client is None else f"{client}_{host or ''}"


def _row(partition: JsonFields, group: str, line: int) -> OffsetRow:
    host, client = partition.optional_text("owner"), partition.optional_text("client_id")
    end = partition.optional_inner("end")
    lag = partition.optional_integer("current_lag")
    return OffsetRow(
        line,
        group,
        partition.text("topic"),
        partition.count("partition"),
        current=None if end is None else end.optional_integer("offset"),
        lag=lag if lag is not None or end is None else end.optional_integer("lag"),
        owner=_owner(host, client),
        host=host,
        client_id=client,
    )
