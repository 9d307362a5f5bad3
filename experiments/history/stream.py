"""The steps of a history as streams of rows, none of which holds more than one group."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from experiments.history.decode import Record, decode
from experiments.history.generations import generations
from experiments.history.payload import from_payload, to_payload
from experiments.history.rebalances import rebalances
from experiments.history.rows import generation_of, generation_row, rebalance_row
from experiments.history.schemas import OFFSET_COMMIT_KINDS
from reference.coordinator.wire import CorruptRecordError

Row = Mapping[str, Any]
_HELD_COMMITS = 50_000
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


def decode_rows(raw: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Decode raw records; a damaged one becomes a row with an error.

    Of the commits of one partition only the newest goes on, with how many records it
    stands for: as the cleaner of the log would have it, and so that the many commits of a
    long history take little room.
    """
    commits: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in raw:
        place = {name: row[name] for name in ("partition", "offset", "timestamp")}
        try:
            record = decode(row["key"], row["value"])
        except CorruptRecordError as error:
            yield _EMPTY | place | {"records": 1, "error": str(error)}
            continue
        if record.kind in OFFSET_COMMIT_KINDS:
            _keep_newest(commits, record, place)
            if len(commits) >= _HELD_COMMITS:
                yield from commits.values()
                commits.clear()
        else:
            yield row_of(record, place)
    yield from commits.values()


def row_of(record: Record, place: Row) -> dict[str, Any]:
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


def _keep_newest(
    commits: dict[tuple[str, str, int], dict[str, Any]], record: Record, place: Row
) -> None:
    key = record.key
    identity = (key["group"], key["topic"], key["partition"])
    held = commits.get(identity)
    if held is None:
        commits[identity] = row_of(record, place)
        return
    records = held["records"] + 1
    if (place["offset"] or 0) >= (held["offset"] or 0):
        commits[identity] = row_of(record, place)
    commits[identity]["records"] = records
