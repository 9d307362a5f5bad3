"""Parser of the events of Metricbeat's ``kafka.consumergroup`` metricset."""

from kassay.experiments.sources.describe_output import OffsetRow
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows
from kassay.experiments.sources.tool_documents.json_fields import JsonFields
from kassay.reference.model.errors import InputError


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
