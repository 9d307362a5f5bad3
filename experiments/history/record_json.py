"""Decoded records as JSON text, in which they travel from the readers to the replay."""

import json
import uuid
from collections.abc import Mapping

from kassay.experiments.history.group_state import GroupRecord
from kassay.reference.protocol.record_codec import DecodedRecord


def to_payload(record: DecodedRecord) -> str:
    """Write key and value of a record as JSON.

    Bytes are left out: what applications other than consumers put there, and the user
    data of assignors.

    Examples
    --------
    >>> to_payload(DecodedRecord(3, {"group": "g"}, {"epoch": 7, "version": 0}))
    '[{"group":"g"},{"epoch":7,"version":0}]'
    """
    return json.dumps(
        [record.key, record.value], ensure_ascii=False, separators=(",", ":"), default=_plain
    )


def from_payload(row: Mapping[str, object]) -> GroupRecord:
    """Read a row of the table of records back."""
    key, value = json.loads(str(row["payload"]))
    return GroupRecord(
        kind=_integer(row["kind"]) or 0,
        key=key,
        value=value,
        partition=_integer(row["partition"]),
        offset=_integer(row["offset"]),
        timestamp=_integer(row["timestamp"]),
    )


def _plain(value: object) -> str | None:
    return str(value) if isinstance(value, uuid.UUID) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None
