"""Events of Metricbeat's ``kafka.consumergroup`` metricset, one partition each."""

from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows, Fields, offset_row


def read_event(event: Fields, *, line: int) -> DocumentRows:
    """Read one event.

    Raises
    ------
    SourceError
        If it reports an error or lacks a field.
    """
    group = event.inner("kafka").inner("consumergroup")
    if group.table.get("error") is not None and group.inner("error").optional_integer("code"):
        code = group.inner("error").integer("code")
        raise SourceError(f"{group.where}.error.code: Kafka answered with error {code}")
    client = group.inner("client") if group.table.get("client") is not None else None
    row = offset_row(
        line,
        group.text("id"),
        (_topic(group), group.count("partition")),
        consumer_id=None if client is None else client.optional_text("member_id"),
        client_id=None if client is None else client.optional_text("id"),
        current=group.optional_integer("offset"),
        lag=group.optional_integer("consumer_lag"),
    )
    return DocumentRows(offsets=[row])


def _topic(group: Fields) -> str:
    topic = group.table.get("topic")
    # From release 7.0 on it is an object with a name.
    return group.inner("topic").text("name") if isinstance(topic, dict) else group.text("topic")
