"""Burrow's HTTP endpoint, version 3: ``/v3/kafka/CLUSTER/consumer/GROUP/lag``."""

from kassay.experiments.sources.describe_output import OffsetRow
from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows, Fields, offset_row


def read_lag(document: Fields, *, line: int) -> DocumentRows:
    """Read a lag response.

    Burrow names a partition's owner by host and, in newer releases, by client id; it has
    no member ids.

    Raises
    ------
    SourceError
        If it reports an error, lists fewer partitions than it counts (``/status`` does:
        it lists those with trouble), or lacks a field.
    """
    if document.table.get("error") is not False:
        raise SourceError(f"{document.where}: Burrow answered: {document.table.get('message')!r}")
    status = document.inner("status")
    partitions = status.each("partitions")
    total = status.optional_integer("partition_count")
    if total is not None and total != len(partitions):
        raise SourceError(
            f"{status.where}.partitions: lists {len(partitions)} of {total} partitions, "
            "ask Burrow for /lag, not /status"
        )
    group = status.text("group")
    return DocumentRows(offsets=[_row(partition, group, line) for partition in partitions])


def _row(partition: Fields, group: str, line: int) -> OffsetRow:
    host, client = partition.optional_text("owner"), partition.optional_text("client_id")
    end = partition.inner("end") if partition.table.get("end") is not None else None
    lag = partition.optional_integer("current_lag")
    return offset_row(
        line,
        group,
        (partition.text("topic"), partition.count("partition")),
        current=None if end is None else end.optional_integer("offset"),
        lag=lag if lag is not None or end is None else end.optional_integer("lag"),
        owner=host if client is None else f"{client}_{host or ''}",
        client_id=client,
    )
