"""Read records of ``__consumer_offsets`` from Arrow batches, dumps or a running cluster.

The reader of a running cluster joins no group.
"""

import base64
import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from kassay.experiments.sources.live_cluster.cluster_responses import LiveTopic
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.live_cluster.msk_iam import connection_properties
from kassay.reference.model.errors import InputError
from kassay.reference.protocol import message_decoder
from kassay.reference.protocol.group_messages import CONSUMERS

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]
_COLUMNS = ("group", "kind", "partition", "offset", "timestamp", "payload", "error")
_EMPTY: Row = {**dict.fromkeys(_COLUMNS), "records": 1}


def record_row(record: message_decoder.DecodedRecord, position: Row) -> dict[str, Any]:
    """Convert a decoded record to a table row.

    ``payload`` is JSON, in which fields of type bytes are null.
    """
    payload = None
    if record.kind in message_decoder.RECORD_SCHEMAS:
        payload = json.dumps(
            [record.key, record.value],
            ensure_ascii=False,
            separators=(",", ":"),
            default=lambda value: str(value) if isinstance(value, uuid.UUID) else None,
        )
    return {
        **_EMPTY,
        **position,
        "kind": record.kind,
        "group": record.key.get("group"),
        "payload": payload,
    }


def from_row(row: Row) -> message_decoder.DecodedRecord:
    """Convert a table row to a decoded record."""
    position = {name: row[name] for name in Position._fields}
    return message_decoder.DecodedRecord(row["kind"], *json.loads(row["payload"]), **position)


class Position(NamedTuple):
    """Position of a record in ``__consumer_offsets``."""

    partition: int | None
    offset: int | None
    timestamp: int | None


def decode_batches(batches: "Iterable[pa.RecordBatch]") -> Iterator[dict[str, Any]]:
    """Decode raw records to table rows. A damaged record gives a row with an error.

    Offset commits, usually the majority of records, are only counted, by whole columns. The last
    row has the number of commits.
    """
    # PyArrow takes 50 MB: only Spark workers import it.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    first_bytes = [kind.to_bytes(2) for kind in sorted(message_decoder.OFFSET_COMMIT_KINDS)]
    commit_keys = pa.array(first_bytes, pa.binary())
    commits = 0
    for batch in batches:
        kinds = pc.binary_slice(batch.column("key"), 0, 2)
        is_commit = pc.is_in(kinds, commit_keys)
        commits += pc.sum(is_commit).as_py() or 0
        for row in batch.filter(pc.invert(is_commit)).to_pylist():
            position = {name: row[name] for name in Position._fields}
            try:
                yield record_row(message_decoder.decode(row["key"], row["value"]), position)
            except message_decoder.CorruptRecordError as error:
                yield {**_EMPTY, **position, "error": str(error)}
    if commits:
        yield {**_EMPTY, "records": commits}


_PARTITION = re.compile(r"__consumer_offsets-(\d+)")
_RECORD = re.compile(
    r"^[|\s]*(?:baseOffset: \d+ )?offset: (?P<offset>\d+)\s.*?(?:CreateTime|LogAppendTime): "
    r"(?P<timestamp>-?\d+)\s.*?(?<=\s)key: (?P<key>.*?)(?:\s+payload: (?P<payload>.*))?$"
)
_FAILED = re.compile(r"Error at offset \d+, skipping\. ?(?P<reason>.*)")
_OTHER_TYPE = re.compile(r"Unknown record type (?P<kind>\d+) at offset")
_TOMBSTONE = "<DELETE>"

_OF_CONSUMERS = {
    "subscription": message_decoder.SUBSCRIPTION,
    "assignment": message_decoder.ASSIGNMENT,
}
_CAPITAL = re.compile(r"(?<=[a-z])[A-Z]")
# On Spark workers, this package is in an archive.
_FIELD_NAMES: Mapping[str, str] = json.loads(
    files(__package__).joinpath("dump_field_names.json").read_bytes()
)
"""Field names of `message_decoder`, by the names of the dump tool in snake case."""


def read_dump(lines: Iterable[str], *, name: str) -> Iterator[dict[str, Any]]:
    """Parse the output of ``kafka-dump-log.sh --offsets-decoder``, and yield table rows.

    Without this option, the tool prints keys and values as text and loses bytes. Before Kafka 4.0,
    it omits the subscriptions. Such lines give errors with this reason. Lines without a record are
    skipped.

    ``name`` is the file name in errors. It gives the partition for lines before a line names one.
    """
    partition = _partition(name)
    for number, line in enumerate(lines, start=1):
        match = _RECORD.match(line.rstrip("\r\n"))
        if match is None:
            partition = _partition(line) if "Dumping" in line else partition
            continue
        position = Position(partition, int(match["offset"]), int(match["timestamp"]))._asdict()
        try:
            yield record_row(_record(match["key"], match["payload"]), position)
        except ValueError as failure:
            yield {**_EMPTY, **position, "error": f"{name}:{number}: {failure}"}


def _partition(text: str) -> int | None:
    match = _PARTITION.search(text)
    return int(match[1]) if match else None


def _record(key: str, payload: str | None) -> message_decoder.DecodedRecord:
    if key.startswith("{"):
        return _json_record(key, payload)
    if (failed := _FAILED.match(key)) is not None:
        raise message_decoder.CorruptRecordError(
            f"kafka-dump-log.sh cannot decode the record: {failed['reason']}"
        )
    if (other := _OTHER_TYPE.match(key)) is not None:
        return message_decoder.DecodedRecord(int(other["kind"]), {}, None)
    raise message_decoder.CorruptRecordError(
        "the dump does not contain the fields of the record; run kafka-dump-log.sh of Kafka 4.0 or "
        "later with --offsets-decoder"
    )


def _json_record(key: str, payload: str | None) -> message_decoder.DecodedRecord:
    document = json.loads(key)
    kind = int(document["type"]) if isinstance(document, dict) and "type" in document else -1
    if kind not in message_decoder.RECORD_SCHEMAS:
        return message_decoder.DecodedRecord(kind, {}, None)
    schema = message_decoder.RECORD_SCHEMAS[kind]
    fields = _fields(schema.key, document.get("data"))
    if payload is None:
        raise message_decoder.CorruptRecordError("the line is truncated: its key has no payload")
    if payload == _TOMBSTONE:
        return message_decoder.DecodedRecord(kind, fields, None)
    body = _fields(schema.value.fields, json.loads(payload).get("data"))
    if kind == message_decoder.RecordType.GROUP_METADATA and body["protocol_type"] == CONSUMERS:
        for member in body["members"]:
            message_decoder.decode_consumer(member, protocol=body["protocol"])
    return message_decoder.DecodedRecord(kind, fields, body)


def _fields(schema: tuple[message_decoder.Field, ...], document: object) -> message_decoder.Fields:
    if not isinstance(document, dict):
        raise message_decoder.CorruptRecordError(
            f"expected a JSON object with the fields of a record, got {document!r:.60}"
        )
    values = {}
    for name, value in document.items():
        snake_case = _CAPITAL.sub(lambda capital: "_" + capital[0], name).lower()
        values[_FIELD_NAMES.get(snake_case, snake_case)] = value
    return {field.name: _value(field, values.get(field.name)) for field in schema}


def _value(field: message_decoder.Field, value: Any) -> Any:
    if isinstance(field.type, tuple):
        return [_fields(field.type, each) for each in value or ()]
    if value is None:
        if field.nullable or field.since or field.default is not None or field.type == "bytes":
            return field.default
        raise message_decoder.CorruptRecordError(f"the record lacks the field {field.name}")
    if field.name in _OF_CONSUMERS and isinstance(value, dict):
        return _fields(_OF_CONSUMERS[field.name].fields, value)
    # The tool prints undecodable bytes, and bytes of other applications, in base 64.
    if field.type not in ("uuid", "bytes"):
        return value
    try:
        if field.type == "uuid":
            return uuid.UUID(bytes=base64.urlsafe_b64decode(value + "=="))
        return base64.b64decode(value, validate=True)
    except (ValueError, TypeError):
        raise message_decoder.CorruptRecordError(
            f"expected {field.type} in base 64, got {value!r:.60}"
        ) from None


TOPIC = "__consumer_offsets"
_MAX_MESSAGES = 1_000  # maximum number of messages per call
_POLL_SECONDS = 0.25
_CONSUMER_SETTINGS = {
    # librdkafka requires a group id, but this consumer joins no group and commits nothing.
    "group.id": "kassay-reads-only",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "earliest",  # after the deletion of old records
    # The records of groups are not transactional, but wait behind open transactions of commits.
    "isolation.level": "read_uncommitted",
    "log_level": "0",
}


class OffsetsReader:
    """Reader of the records in the topic ``__consumer_offsets`` of a running cluster."""

    def __init__(self, settings: Mapping[str, str], *, timeout: float = 30.0) -> None:
        self._settings = settings
        self._servers = settings["bootstrap.servers"]
        self._timeout = timeout

    def partitions(self) -> list[int]:
        """Return the partition numbers of ``__consumer_offsets``, or raise InputError."""
        topic = _cluster(self._settings, self._timeout).topics([TOPIC]).get(TOPIC)
        if isinstance(topic, LiveTopic):
            return list(range(topic.partitions))
        reason = topic or "the cluster creates it for its first consumer group"
        raise InputError(f"{self._servers}: cannot find the topic {TOPIC}: {reason}")

    def end_offsets(self) -> dict[int, int]:
        """Return the end offset of each partition, or -1 if the partition has no leader."""
        keys = [(TOPIC, number) for number in self.partitions()]
        ends = _cluster(self._settings, self._timeout).end_offsets(keys)
        return {number: ends.get((TOPIC, number), -1) for _, number in keys}

    def read(self, positions: Mapping[int, int]) -> Iterator[dict[str, Any]]:
        """Yield raw records of ``__consumer_offsets`` from the given offsets to the current end."""
        if not positions:
            return
        unfinished = set(positions)
        known = connection_properties(self._settings, self._servers)
        consumer = Consumer({**known, **_CONSUMER_SETTINGS})
        try:
            consumer.assign([TopicPartition(TOPIC, *at) for at in sorted(positions.items())])
            deadline = time.monotonic() + self._timeout
            while unfinished:
                messages = consumer.consume(_MAX_MESSAGES, timeout=_POLL_SECONDS)
                deadline = time.monotonic() + self._timeout if messages else deadline
                if time.monotonic() > deadline:
                    raise InputError(
                        f"{self._servers}: received no records within {self._timeout:g} s; "
                        "give a higher --timeout"
                    )
                for message in messages:
                    error = message.error()
                    if error is None:
                        yield _row(message)
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                        unfinished.discard(message.partition())
                    elif not error.retriable():
                        raise InputError(f"{self._servers}: cannot read {TOPIC}: {error.str()}")
        finally:
            consumer.close()


def list_cluster_topics(
    settings: Mapping[str, str], *, timeout: float = 30.0
) -> tuple[dict[str, int], dict[str, str]]:
    """Return the partition counts of a cluster's topics, and the topic names by id."""
    cluster = _cluster(settings, timeout)
    names = [name for name in cluster.topic_names() if not name.startswith("__")]
    described = cluster.topics(names) if names else {}
    # A topic may be deleted between the two requests.
    topics = {name: topic for name, topic in described.items() if isinstance(topic, LiveTopic)}
    counts = {name: topic.partitions for name, topic in topics.items()}
    return counts, {str(topic.id): name for name, topic in topics.items() if topic.id is not None}


def _cluster(settings: Mapping[str, str], timeout: float) -> LiveCluster:
    return LiveCluster(settings["bootstrap.servers"], settings, timeout=timeout)


def _row(message: Any) -> dict[str, Any]:
    timestamp_type, timestamp = message.timestamp()
    return {
        "key": message.key(),
        "value": message.value(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp if timestamp_type else None,
    }
