"""What ``kafka-dump-log.sh --offsets-decoder`` prints, as records.

Without that option the tool prints keys and values as if they were text, and bytes get
lost: such lines are errors that say so.
"""

import base64
import binascii
import json
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kassay.reference.protocol.primitive_types import CorruptRecordError
from kassay.reference.protocol.record_codec import DecodedRecord, Fields
from kassay.reference.protocol.record_schemas import (
    ASSIGNMENT,
    RECORD_SCHEMAS,
    SUBSCRIPTION,
    Field,
    Schema,
)

_PARTITION = re.compile(r"__consumer_offsets-(\d+)")
_RECORD = re.compile(
    r"^[|\s]*(?:baseOffset: \d+ )?offset: (?P<offset>\d+)\s.*?(?:CreateTime|LogAppendTime): "
    r"(?P<timestamp>-?\d+)\s.*?(?<=\s)key: (?P<key>.*?)(?:\s+payload: (?P<payload>.*))?$"
)
_FAILED = re.compile(r"Error at offset \d+, skipping\. ?(?P<why>.*)")
_FOREIGN = re.compile(r"Unknown record type (?P<kind>\d+) at offset")
_OLD_COMMIT = re.compile(r"offset_commit::group=(?P<group>.*),partition=(?P<topic>.*)-(?P<n>\d+)")
_OLD_GROUP = re.compile(r"group_metadata::group=(?P<group>.*)")
_OLD_MEMBER = re.compile(r"(?P<member>[^=,{}][^={}]*)=\[(?P<assigned>[^\]]*)\]")
_DELETED = "<DELETE>"
_NO_ENTRY = "<EMPTY>"

_HUMP = re.compile(r"(?<=[a-z])[A-Z]")
_OURS = {
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
"""Names of fields here by those that the tool prints, once in lower case."""


@dataclass(frozen=True, slots=True)
class DumpLine:
    """A record that a line shows, or the error in its place."""

    partition: int | None
    offset: int
    timestamp: int
    record: DecodedRecord | None
    error: str | None = None


def read_dump(lines: Iterable[str], *, name: str) -> Iterator[DumpLine]:
    """Read the records of a dump, in the order of its lines.

    Parameters
    ----------
    lines
        What the tool printed. Lines that show no record are passed over.
    name
        Where they come from; the partition is taken from it until a line names one.

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
    found = _PARTITION.search(text)
    return int(found[1]) if found else None


def _record(key: str, payload: str | None) -> DecodedRecord:
    if key.startswith("{"):
        return _json_record(key, payload)
    if (failed := _FAILED.match(key)) is not None:
        raise CorruptRecordError(f"the tool failed: {failed['why']}")
    if (foreign := _FOREIGN.match(key)) is not None:
        return DecodedRecord(int(foreign["kind"]), {}, None)
    if (commit := _OLD_COMMIT.fullmatch(key)) is not None:
        place = {"topic": commit["topic"], "partition": int(commit["n"])}
        return DecodedRecord(1, {"group": commit["group"]} | place, _old_commit(payload))
    if (group := _OLD_GROUP.fullmatch(key)) is not None:
        return DecodedRecord(2, {"group": group["group"]}, _old_group(payload))
    raise CorruptRecordError("its bytes are lost in text, dump it with --offsets-decoder")


def _json_record(key: str, payload: str | None) -> DecodedRecord:
    head = json.loads(key)
    kind = int(head["type"]) if isinstance(head, dict) and "type" in head else -1
    if kind not in RECORD_SCHEMAS:
        return DecodedRecord(kind, {}, None)
    schema = RECORD_SCHEMAS[kind]
    named = _take(schema.key, head.get("data"))
    if payload is None:
        raise CorruptRecordError("a key without a payload: the line is cut")
    if payload == _DELETED:
        return DecodedRecord(kind, named, None)
    body = json.loads(payload)
    return DecodedRecord(kind, named, _take(schema.value.fields, body.get("data")))


def _take(fields: tuple[Field, ...], said: object) -> Fields:
    """Take the fields of a structure by the names that the tool gives them."""
    if not isinstance(said, dict):
        raise CorruptRecordError(f"not the fields of a record: {said!r:.60}")
    table = {_ours(name): value for name, value in said.items()}
    return {field.name: _one(field, table.get(field.name)) for field in fields}


def _ours(name: str) -> str:
    lower = _HUMP.sub(lambda hump: "_" + hump[0], name).lower()
    return _OURS.get(lower, lower)


def _one(field: Field, value: Any) -> Any:
    if field.name in ("subscription", "assignment"):
        return _embedded(SUBSCRIPTION if field.name == "subscription" else ASSIGNMENT, value)
    if isinstance(field.type, tuple):
        return [_take(field.type, each) for each in value or ()]
    if value is None:
        if field.nullable or field.since or field.default is not None or field.type == "bytes":
            return field.default
        raise CorruptRecordError(f"{field.name}: missing")
    if field.type == "uuid":
        return _uuid(value)
    return value


def _embedded(schema: Schema, value: Any) -> Fields | None:
    # Where there is nothing to open, the tool prints bytes in base 64.
    return _take(schema.fields, value) if isinstance(value, dict) else None


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (binascii.Error, ValueError):
        raise CorruptRecordError(f"{text!r} is no topic id") from None


def _old_commit(payload: str | None) -> Fields | None:
    if payload in (None, _DELETED, _NO_ENTRY):
        return None
    found = re.match(r"offset=(-?\d+)", str(payload))
    if found is None:
        raise CorruptRecordError(f"not a commit: {payload!r:.60}")
    return {"offset": int(found[1]), "metadata": "", "commit_timestamp": None}


def _old_group(payload: str | None) -> Fields | None:
    if payload in (None, _DELETED, _NO_ENTRY):
        return None
    said = json.loads(str(payload))
    if not isinstance(said, dict) or "generationId" not in said:
        raise CorruptRecordError(f"not the metadata of a group: {payload!r:.60}")
    members = []
    for member in _OLD_MEMBER.finditer(str(said.get("assignment") or "")):
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
        "protocol_type": said.get("protocolType") or "",
        "generation": said["generationId"],
        "protocol": said.get("protocol"),
        "timestamp": -1,
        "members": members,
    }
