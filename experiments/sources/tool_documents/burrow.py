"""Burrow's lag endpoint: ``/v3/kafka/CLUSTER/consumer/GROUP/lag``."""

from kassay.experiments.sources.describe_output import OffsetRow
from kassay.experiments.sources.tool_documents.document_rows import DocumentFields, DocumentRows
from kassay.reference.model.errors import InputError


def read_burrow_lag(document: DocumentFields, *, line: int) -> DocumentRows:
    """Read a lag response of Burrow.

    Burrow shows the owner's host and, in newer releases, its client id. It has no member ids.
    """
    if document.table.get("error") is not False:
        raise InputError(f"{document.where}: Burrow answered: {document.table.get('message')!r}")
    status = document.inner("status")
    partitions = status.each("partitions")
    total = status.optional_integer("partition_count")
    if total is not None and total != len(partitions):
        raise InputError(
            f"{status.where}.partitions: lists {len(partitions)} of {total} partitions, "
            "ask Burrow for /lag, not /status"
        )
    group = status.text("group")
    return DocumentRows(offsets=[_row(partition, group, line) for partition in partitions])


def _row(partition: DocumentFields, group: str, line: int) -> OffsetRow:
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
        owner=host if client is None else f"{client}_{host or ''}",
        client_id=client,
    )
