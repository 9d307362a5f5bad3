"""Find rebalances in logs on Spark: tasks read whole files, and then the messages of groups."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kassay.experiments.history.log_files import events_of_file, rebalance_record, summarise_events
from kassay.experiments.history.log_messages import LogEvent, LogEventKind
from kassay.experiments.history.log_rebalances import LogRebalance
from kassay.experiments.spark.jobs import map_rows

_TEXT, _INT = pa.string(), pa.int64()
_EVENTS = pa.schema([("group", _TEXT), ("time", _INT), ("position", _INT), ("event", _TEXT)])
_FOUND = pa.schema([("group", _TEXT), ("is_summary", pa.bool_()), ("record", _TEXT)])


def summarise_logs_on_spark(
    spark: SparkSession, files: Sequence[Path], *, on_rebalance: Callable[[Mapping[str, Any]], None]
) -> list[dict[str, Any]]:
    """Summarise the rebalances in logs like `summarise_logs`, with one task per file.

    The executors must reach the files. ``on_rebalance`` receives each rebalance as JSON.
    """
    names = [[number, str(file.absolute()), str(file)] for number, file in enumerate(files)]
    schema = "number long, path string, name string"
    paths = spark.createDataFrame(names, schema).repartition(len(files))
    events = map_rows(paths, _events, _EVENTS).repartition("group")
    ordered = events.sortWithinPartitions("group", "time", "position")
    summaries = []
    for row in map_rows(ordered, _records, _FOUND).toLocalIterator():
        record = json.loads(row["record"])
        if row["is_summary"]:
            summaries.append(record)
        else:
            on_rebalance(record)
    return sorted(summaries, key=lambda record: str(record["id"]))


def _events(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        for line, event in enumerate(events_of_file(Path(row["path"]))):
            # The bytes of a line can be those of any encoding.
            text = event.text.decode("latin-1")
            values = json.dumps({**event._asdict(), "text": text, "file": row["name"]})
            position = (row["number"] << 40) + line
            yield {"group": event.group, "time": event.time, "position": position, "event": values}


def _records(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for group, found in groupby(rows, key=lambda row: row["group"]):
        rebalances: list[LogRebalance] = []
        events = (_event(json.loads(row["event"])) for row in found)
        for summary in summarise_events(events, on_rebalance=rebalances.append):
            yield {"group": group, "is_summary": True, "record": json.dumps(summary)}
        for one in rebalances:
            record = json.dumps(rebalance_record(one))
            yield {"group": group, "is_summary": False, "record": record}


def _event(values: dict[str, Any]) -> LogEvent:
    kind, text = LogEventKind(values.pop("kind")), values.pop("text").encode("latin-1")
    return LogEvent(kind=kind, text=text, **values)
