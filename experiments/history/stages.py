"""The steps of a history as streams of rows, none of which holds more than one group."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from kassay.experiments.history.generations import generations
from kassay.experiments.history.offset_commits import integers, is_complete_batch, plain_list
from kassay.experiments.history.rebalances import rebalances
from kassay.experiments.history.record_json import from_payload, to_payload
from kassay.experiments.history.table_rows import generation_of, generation_row, rebalance_row
from kassay.reference.protocol.primitive_types import CorruptRecordError
from kassay.reference.protocol.record_codec import DecodedRecord, Fields, decode_key, decode_value
from kassay.reference.protocol.record_schemas import OFFSET_COMMIT_KINDS

Row = Mapping[str, Any]
_HELD_COMMITS = 50_000
_PLACE = ("partition", "offset", "timestamp")
_Place = tuple[int | None, int | None, int | None]
_EMPTY: dict[str, Any] = dict.fromkeys(
    (
        "group",
        "kind",
        "partition",
        "offset",
        "timestamp",
        "topic",
        "topic_partition",
        "payload",
        "error",
    )
)


def decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Decode raw records, columns ``key``, ``value`` and place; damage becomes a row with an error.

    Of the commits of one partition only the newest goes on, with how many records it
    stands for: as the cleaner of the log would have it, and so that the many commits of a
    long history take little room. Of the others it is told by the column that they keep
    to their format, and what their keys say is read once.
    """
    commits: dict[bytes, _Newest] = {}
    for batch in batches:
        keys, values = (plain_list(batch.column(name)) for name in ("key", "value"))
        whole = is_complete_batch(batch.column("value")).tolist()
        places = zip(*(integers(batch.column(name)) for name in _PLACE), strict=True)
        for key, value, sure, place in zip(keys, values, whole, places, strict=True):
            held = commits.get(key) if key is not None else None
            if held is not None and sure:
                held.count(value, place)
                continue
            try:
                kind, fields = (held.kind, held.key) if held is not None else decode_key(key)
                commit = kind in OFFSET_COMMIT_KINDS
                found = None if commit and sure else decode_value(kind, value)
            except CorruptRecordError as error:
                yield {**_EMPTY, **_named(place)} | {"records": 1, "error": str(error)}
                continue
            if not commit:
                yield row_of(DecodedRecord(kind, fields, found), _named(place))
            elif held is not None:
                held.count(value, place)
            elif key is not None:
                commits[key] = _Newest(kind, fields, value, place)
        if len(commits) >= _HELD_COMMITS:
            yield from _drained(commits)
    yield from _drained(commits)


def row_of(record: DecodedRecord, place: Row) -> dict[str, Any]:
    """Return a decoded record as a row of the table of records."""
    return {
        **_EMPTY,
        **place,
        "kind": record.kind,
        "group": record.key.get("group"),
        "topic": record.key.get("topic"),
        "topic_partition": record.key.get("partition"),
        "payload": to_payload(record) if record.known else None,
        "records": 1,
    }


def generation_rows(rows: Iterable[Row], *, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Rebuild generations from records sorted by group, partition and offset."""
    for group, mine in groupby(rows, key=itemgetter("group")):
        for found in generations(group, map(from_payload, mine), names=names):
            yield generation_row(found)


def rebalance_rows(rows: Iterable[Row], *, counts: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Tell rebalances from generations sorted by group, life and number."""
    for _, mine in groupby(rows, key=itemgetter("group")):
        for found in rebalances(map(generation_of, mine), counts=counts):
            yield rebalance_row(found)


class _Newest:
    """The newest commit of a partition, and how many it stands for."""

    __slots__ = ("_order", "_place", "_records", "_value", "key", "kind")

    def __init__(self, kind: int, key: Fields, value: bytes | None, place: _Place) -> None:
        self.kind = kind
        self.key = key
        self._value = value
        self._place = place
        self._records = 1
        self._order = order_of(place)

    def count(self, value: bytes | None, place: _Place) -> None:
        """Put one more in its place if it is newer."""
        self._records += 1
        order = order_of(place)
        if order >= self._order:
            self._value, self._place, self._order = value, place, order

    def row(self) -> dict[str, Any]:
        """Return it as a row of the table of records."""
        record = DecodedRecord(self.kind, self.key, decode_value(self.kind, self._value))
        return row_of(record, _named(self._place)) | {"records": self._records}


def order_of(place: _Place) -> int:
    """Order commits of a partition by their offsets, or by time where there are none."""
    _, offset, timestamp = place
    return (timestamp or 0) if offset is None else offset


def _named(place: _Place) -> Row:
    return dict(zip(_PLACE, place, strict=True))


def _drained(commits: dict[bytes, _Newest]) -> Iterator[dict[str, Any]]:
    for newest in commits.values():
        yield newest.row()
    commits.clear()
