"""Decoded records of ``__consumer_offsets`` as table rows, from Arrow batches of raw records."""

import base64
import binascii
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kassay.reference.protocol.group_messages import CONSUMERS
from kassay.reference.protocol.record_codec import (
    CorruptRecordError,
    DecodedRecord,
    Fields,
    decode_consumer,
    decode_key,
    decode_value,
)
from kassay.reference.protocol.record_schemas import (
    ASSIGNMENT,
    OFFSET_COMMIT_KINDS,
    RECORD_SCHEMAS,
    SUBSCRIPTION,
    Field,
    RecordType,
)

Row = Mapping[str, Any]
_EMPTY = dict.fromkeys(
    ("group", "kind", "partition", "offset", "timestamp", "topic", "topic_partition", "payload")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """A decoded record of a group, with its position. ``value`` is None for a tombstone."""

    kind: int
    key: Fields
    value: Fields | None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None


def record_row(record: DecodedRecord, position: Row, *, records: int = 1) -> dict[str, Any]:
    """Convert a decoded record to a table row.

    ``records`` is the number of raw records that the table row represents. ``payload`` is JSON, in
    which fields of type bytes are null.
    """
    payload = None
    if record.known:
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
        "topic": record.key.get("topic"),
        "topic_partition": record.key.get("partition"),
        "payload": payload,
        "records": records,
        "error": None,
    }


def error_row(message: str, position: Row) -> dict[str, Any]:
    """Return the table row for a record that cannot be decoded."""
    return {**_EMPTY, **position, "records": 1, "error": message}


def from_row(row: Row) -> GroupRecord:
    """Convert a table row to a `GroupRecord`."""
    key, value = json.loads(row["payload"])
    position = {name: row[name] for name in ("partition", "offset", "timestamp")}
    return GroupRecord(kind=row["kind"], key=key, value=value, **position)


_MAX_COMMITS = 50_000
"""Number of commits in memory at which all commits are yielded and removed from memory."""
# Sizes in bytes. Versions below 4 have fields at fixed positions and lengths of two bytes.
_VERSION, _OFFSET, _EPOCH, _TIME = 2, 8, 4, 8
_FLEXIBLE_VERSION = 4


class Position(NamedTuple):
    """Position of a record in ``__consumer_offsets``."""

    partition: int | None
    offset: int | None
    timestamp: int | None

    @property
    def order(self) -> int:
        """Return the sort key of an offset commit: its offset or, if unknown, its timestamp."""
        return (self.timestamp or 0) if self.offset is None else self.offset


def decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Decode raw records to table rows. A damaged record becomes a row with an error.

    Of all commits of a partition, only the newest becomes a row, with the number of
    records, as in log compaction. The others are only checked, whole columns at a time.
    """
    commits: dict[bytes, _NewestCommit] = {}
    for batch in batches:
        keys, values = (to_list(batch.column(name)) for name in ("key", "value"))
        valid = are_valid_commits(batch.column("value")).tolist()
        columns = (batch.column(name) for name in Position._fields)
        lists = (c.to_pylist() if c.null_count else c.to_numpy().tolist() for c in columns)
        positions = map(Position, *lists)
        for key, value, is_valid, position in zip(keys, values, valid, positions, strict=True):
            newest = commits.get(key) if key is not None else None
            if newest is not None and is_valid:
                newest.add(value, position)
                continue
            try:
                kind, fields = decode_key(key) if newest is None else (newest.kind, newest.key)
                is_commit = kind in OFFSET_COMMIT_KINDS
                body = None if is_commit and is_valid else decode_value(kind, value)
            except CorruptRecordError as error:
                yield error_row(str(error), position._asdict())
                continue
            if not is_commit:
                yield record_row(DecodedRecord(kind, fields, body), position._asdict())
            elif newest is not None:
                newest.add(value, position)
            elif key is not None:
                commits[key] = _NewestCommit(kind, fields, value, position)
        if len(commits) >= _MAX_COMMITS:
            yield from _drain(commits)
    yield from _drain(commits)


@dataclass(slots=True)
class _NewestCommit:
    """The newest offset commit of a group for one partition, and the number of all commits."""

    kind: int
    key: Fields
    value: bytes | None
    position: Position
    records: int = 1

    def add(self, value: bytes | None, position: Position) -> None:
        """Count an offset commit, and store the commit if it is the newest."""
        self.records += 1
        if position.order >= self.position.order:
            self.value, self.position = value, position

    def row(self) -> dict[str, Any]:
        record = DecodedRecord(self.kind, self.key, decode_value(self.kind, self.value))
        return record_row(record, self.position._asdict(), records=self.records)


def _drain(commits: dict[bytes, _NewestCommit]) -> Iterator[dict[str, Any]]:
    for newest in commits.values():
        yield newest.row()
    commits.clear()


def are_valid_commits(values: pa.BinaryArray) -> NDArray[np.bool_]:
    """Return which values in a column are valid offset commits or null (a tombstone).

    False for values with non-ASCII text, tagged fields, or a long text in version 4.

    Examples
    --------
    >>> commit = bytes.fromhex("0003 0000000000000009 00000000 0001 6d 0000000000000005")
    >>> newer = bytes.fromhex("0004 0000000000000009 00000000 02 6d 0000000000000005 00")
    >>> are_valid_commits(pa.array([commit, commit[:-1], newer, None])).tolist()
    [True, False, True, True]
    """
    ends, data = _offsets_and_bytes(values)
    start, end = ends[:-1], ends[1:]
    version = _int16(data, start)
    at = start + _VERSION + _OFFSET + np.where(version >= 3, _EPOCH, 0)
    fixed = (version >= 0) & (version < _FLEXIBLE_VERSION)
    size = np.where(fixed, _int16(data, at), data[np.minimum(at, len(data) - 1)].astype(int) - 1)
    text = at + np.where(fixed, 2, 1)
    text_end = text + size
    rest = end - text_end - _TIME - np.where(version == 1, _TIME, 0)
    last = data[np.maximum(end - 1, 0)]
    valid: NDArray[np.bool_] = fixed & (rest == 0)
    valid |= (version == _FLEXIBLE_VERSION) & (rest == 1) & (last == 0) & (size < 0x7F)
    valid &= size >= 0
    non_ascii = np.concatenate(([0], np.cumsum(data >= 0x80)))
    valid &= non_ascii[np.minimum(text, len(data))] == non_ascii[np.clip(text_end, 0, len(data))]
    if values.null_count:
        valid |= values.is_null().to_numpy(zero_copy_only=False)
    return valid


def to_list(column: pa.BinaryArray) -> list[bytes | None]:
    """Convert a binary Arrow column to a list, several times faster than `to_pylist`.

    Examples
    --------
    >>> to_list(pa.array([b"ab", None, b""]))
    [b'ab', None, b'']
    """
    offsets = np.frombuffer(column.buffers()[1], np.int32)
    ends = offsets[column.offset : column.offset + len(column) + 1].tolist()
    data = column.buffers()[2]
    raw = b"" if data is None else data.to_pybytes()
    values: list[bytes | None] = [raw[start:end] for start, end in pairwise(ends)]
    if column.null_count:
        for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)):
            values[row] = None
    return values


def _offsets_and_bytes(values: pa.BinaryArray) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the byte positions of the values in a binary column, and the bytes of all values."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    first, last = int(ends[0]), int(ends[-1])
    if first == last:
        return np.zeros(len(ends), np.int64), np.zeros(1, np.uint8)
    return ends.astype(np.int64) - first, np.frombuffer(data, np.uint8)[first:last]


def _int16(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Read 16-bit integers at the given byte positions of an array.

    Positions past the end of the array give arbitrary values.
    """
    high, low = (data[np.minimum(at + n, len(data) - 1)] for n in (0, 1))
    return (high.astype(np.int8).astype(np.int64) << 8) | low


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


def read_dump(lines: Iterable[str], *, name: str) -> Iterator[dict[str, Any]]:
    """Yield the table rows of the records in the output of ``kafka-dump-log.sh --offsets-decoder``.

    Without this option, the tool prints keys and values as text and loses bytes. Such lines become
    errors that state this reason. Lines without a record are skipped.

    ``name`` is used in error messages, and gives the partition until a line names one.

    Examples
    --------
    >>> text = (
    ...     '| offset: 4 CreateTime: 70 keySize: 5 valueSize: 9 key: {"type":"3","data":'
    ...     '{"groupId":"g"}} payload: {"version":"0","data":{"epoch":2}}'
    ... )
    >>> [row] = read_dump([text], name="__consumer_offsets-12.txt")
    >>> row["partition"], row["offset"], row["payload"]
    (12, 4, '[{"group":"g"},{"epoch":2,"metadata_hash":0}]')
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
            yield error_row(f"{name}:{number}: {failure}", position)


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
