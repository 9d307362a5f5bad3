"""Parser of the output of ``kafka-dump-log.sh --offsets-decoder``.

Without this option, the tool prints keys and values as text and loses bytes. Such lines become
errors that state this reason.
"""

import base64
import binascii
import json
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kassay.experiments.history.group_records import error_row, record_row
from kassay.reference.protocol.member_messages import CONSUMERS
from kassay.reference.protocol.record_codec import (
    CorruptRecordError,
    DecodedRecord,
    Fields,
    decode_consumer,
)
from kassay.reference.protocol.record_schemas import (
    ASSIGNMENT,
    RECORD_SCHEMAS,
    SUBSCRIPTION,
    Field,
    RecordType,
)

_PARTITION = re.compile(r"__consumer_offsets-(\d+)")
_RECORD = re.compile(
    r"^[|\s]*(?:baseOffset: \d+ )?offset: (?P<offset>\d+)\s.*?(?:CreateTime|LogAppendTime): "
    r"(?P<timestamp>-?\d+)\s.*?(?<=\s)key: (?P<key>.*?)(?:\s+payload: (?P<payload>.*))?$"
)
_FAILED = re.compile(r"Error at offset \d+, skipping\. ?(?P<reason>.*)")
_OTHER_TYPE = re.compile(r"Unknown record type (?P<kind>\d+) at offset")
# Output of releases before 4.0.
_OLD_COMMIT = re.compile(r"offset_commit::group=(?P<group>.*),partition=(?P<topic>.*)-(?P<n>\d+)")
_OLD_GROUP = re.compile(r"group_metadata::group=(?P<group>.*)")
_OLD_MEMBER = re.compile(r"(?P<member>[^=,{}][^={}]*)=\[(?P<assigned>[^\]]*)\]")
_OLD_TOMBSTONES = (None, "<DELETE>", "<EMPTY>")
_TOMBSTONE = "<DELETE>"

_CAPITAL = re.compile(r"(?<=[a-z])[A-Z]")
_FIELD_NAMES = {
    "group_id": "group",
    "group_instance_id": "instance_id",
    "current_state_timestamp": "timestamp",
    "assigned_partitions": "assigned",
    "topic_partitions": "assigned",
    "owned_partitions": "owned",
    "generation_id": "generation",
    "rack_id": "rack",
    "rebalance_timeout_ms": "rebalance_timeout",
    "subscribed_topic_names": "topics",
    "subscribed_topic_regex": "regex",
    "regular_expression": "regex",
    "server_assignor": "assignor",
    "assignment_epoch": "epoch",
    "member_epoch": "epoch",
    "previous_member_epoch": "previous_epoch",
    "partitions_pending_revocation": "revoking",
    "topic_name": "topic",
    "num_partitions": "partitions",
    "partition_metadata": "racks",
    "version": "revision",
}
"""Field names of `record_schemas`, by the tool's names in snake case."""


@dataclass(frozen=True, slots=True)
class DumpLine:
    """A line of ``kafka-dump-log.sh`` output: a decoded record, or a decoding error."""

    partition: int | None
    offset: int
    timestamp: int
    record: DecodedRecord | None
    error: str | None = None

    def row(self) -> dict[str, Any]:
        """Convert the line to a table row with its record or its decoding error."""
        names = ("partition", "offset", "timestamp")
        position = {name: getattr(self, name) for name in names}
        if self.record is None:
            return error_row(self.error or "", position)
        return record_row(self.record, position)


def read_dump(lines: Iterable[str], *, name: str) -> Iterator[DumpLine]:
    """Yield the records in ``kafka-dump-log.sh`` output. Skip lines without a record.

    ``name`` is used in error messages, and gives the partition until a line names one.

    Examples
    --------
    >>> text = (
    ...     '| offset: 4 CreateTime: 70 keySize: 5 valueSize: 9 key: {"type":"3","data":'
    ...     '{"groupId":"g"}} payload: {"version":"0","data":{"epoch":2}}'
    ... )
    >>> [line] = read_dump([text], name="__consumer_offsets-12.txt")
    >>> line.partition, line.offset, line.record.key, line.record.value
    (12, 4, {'group': 'g'}, {'epoch': 2, 'metadata_hash': 0})
    """
    partition = _partition(name)
    for number, line in enumerate(lines, start=1):
        match = _RECORD.match(line.rstrip("\r\n"))
        if match is None:
            partition = _partition(line) if "Dumping" in line else partition
            continue
        record, error = None, None
        try:
            record = _record(match["key"], match["payload"])
        except ValueError as failure:
            error = f"{name}:{number}: {failure}"
        yield DumpLine(partition, int(match["offset"]), int(match["timestamp"]), record, error)


def _partition(text: str) -> int | None:
    match = _PARTITION.search(text)
    return int(match[1]) if match else None


def _record(key: str, payload: str | None) -> DecodedRecord:
    if key.startswith("{"):
        return _json_record(key, payload)
    if (failed := _FAILED.match(key)) is not None:
        raise CorruptRecordError(f"the tool cannot decode the record: {failed['reason']}")
    if (other := _OTHER_TYPE.match(key)) is not None:
        return DecodedRecord(int(other["kind"]), {}, None)
    if (commit := _OLD_COMMIT.fullmatch(key)) is not None:
        place = {"topic": commit["topic"], "partition": int(commit["n"])}
        return DecodedRecord(1, {"group": commit["group"]} | place, _old_commit(payload))
    if (group := _OLD_GROUP.fullmatch(key)) is not None:
        return DecodedRecord(2, {"group": group["group"]}, _old_group(payload))
    raise CorruptRecordError(
        "the dump does not contain the bytes of the record; run kafka-dump-log.sh with "
        "--offsets-decoder"
    )


def _json_record(key: str, payload: str | None) -> DecodedRecord:
    document = json.loads(key)
    kind = int(document["type"]) if isinstance(document, dict) and "type" in document else -1
    if kind not in RECORD_SCHEMAS:
        return DecodedRecord(kind, {}, None)
    schema = RECORD_SCHEMAS[kind]
    fields = _fields(schema.key, document.get("data"))
    if payload is None:
        raise CorruptRecordError("key without a payload: the line is truncated")
    if payload == _TOMBSTONE:
        return DecodedRecord(kind, fields, None)
    body = _fields(schema.value.fields, json.loads(payload).get("data"))
    if kind == RecordType.GROUP_METADATA and body["protocol_type"] == CONSUMERS:
        for member in body["members"]:
            decode_consumer(member, protocol=body["protocol"])
    return DecodedRecord(kind, fields, body)


def _fields(schema: tuple[Field, ...], document: object) -> Fields:
    """Rename the fields of a JSON structure in a dump to the field names of `record_schemas`."""
    if not isinstance(document, dict):
        raise CorruptRecordError(
            f"expected a JSON object with the fields of a record, got {document!r:.60}"
        )
    values = {_field_name(name): value for name, value in document.items()}
    return {field.name: _value(field, values.get(field.name)) for field in schema}


def _field_name(name: str) -> str:
    snake_case = _CAPITAL.sub(lambda capital: "_" + capital[0], name).lower()
    return _FIELD_NAMES.get(snake_case, snake_case)


def _value(field: Field, value: Any) -> Any:
    if field.name in ("subscription", "assignment"):
        schema = SUBSCRIPTION if field.name == "subscription" else ASSIGNMENT
        # The tool prints undecodable bytes, and bytes of other applications, in base 64.
        return _fields(schema.fields, value) if isinstance(value, dict) else _bytes(value)
    if isinstance(field.type, tuple):
        return [_fields(field.type, each) for each in value or ()]
    if value is None:
        if field.nullable or field.since or field.default is not None or field.type == "bytes":
            return field.default
        raise CorruptRecordError(f"the field {field.name} is missing")
    match field.type:
        case "uuid":
            return _uuid(value)
        case "bytes":
            return _bytes(value)
    return value


def _bytes(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError):
        raise CorruptRecordError(f"expected bytes in base 64, got {text!r:.60}") from None


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (binascii.Error, ValueError):
        raise CorruptRecordError(f"expected a topic id in base 64, got {text!r}") from None


def _old_commit(payload: str | None) -> Fields | None:
    if payload in _OLD_TOMBSTONES:
        return None
    match = re.match(r"offset=(-?\d+)", str(payload))
    if match is None:
        raise CorruptRecordError(f"expected an offset commit, got {payload!r:.60}")
    return {"offset": int(match[1]), "metadata": "", "commit_timestamp": None}


def _old_group(payload: str | None) -> Fields | None:
    if payload in _OLD_TOMBSTONES:
        return None
    group = json.loads(str(payload))
    if not isinstance(group, dict) or "generationId" not in group:
        raise CorruptRecordError(f"expected group metadata, got {payload!r:.60}")
    members = []
    for member in _OLD_MEMBER.finditer(str(group.get("assignment") or "")):
        pairs = [each.rpartition("-") for each in member["assigned"].split(", ") if each]
        assigned = [{"topic": topic, "partitions": [int(number)]} for topic, _, number in pairs]
        members.append(
            {
                "member_id": member["member"],
                "instance_id": None,
                "client_id": "",
                "client_host": "",
                "subscription": None,
                "assignment": {"assigned": assigned},
            }
        )
    return {
        "protocol_type": group.get("protocolType") or "",
        "generation": group["generationId"],
        "protocol": group.get("protocol"),
        "timestamp": -1,
        "members": members,
    }
