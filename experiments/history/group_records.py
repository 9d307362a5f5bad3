"""Decoded records of ``__consumer_offsets``, and their conversion to and from table rows."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kassay.reference.protocol.record_codec import DecodedRecord, Fields

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

    ``records`` is the number of raw records that the table row represents.
    """
    return {
        **_EMPTY,
        **position,
        "kind": record.kind,
        "group": record.key.get("group"),
        "topic": record.key.get("topic"),
        "topic_partition": record.key.get("partition"),
        "payload": to_payload(record) if record.known else None,
        "records": records,
        "error": None,
    }


def error_row(message: str, position: Row) -> dict[str, Any]:
    """Return the table row for a record that cannot be decoded."""
    return {**_EMPTY, **position, "records": 1, "error": message}


def to_payload(record: DecodedRecord) -> str:
    """Encode the key and the value of a record as JSON. Fields of type bytes become null.

    Examples
    --------
    >>> to_payload(DecodedRecord(3, {"group": "g"}, {"epoch": 7, "version": 0}))
    '[{"group":"g"},{"epoch":7,"version":0}]'
    """
    return json.dumps(
        [record.key, record.value],
        ensure_ascii=False,
        separators=(",", ":"),
        default=lambda value: str(value) if isinstance(value, uuid.UUID) else None,
    )


def from_row(row: Row) -> GroupRecord:
    """Convert a table row to a `GroupRecord`."""
    key, value = json.loads(row["payload"])
    position = {name: row[name] for name in ("partition", "offset", "timestamp")}
    return GroupRecord(kind=row["kind"], key=key, value=value, **position)
