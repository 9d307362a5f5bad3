"""Compute histories of rebalances on Spark, from ``__consumer_offsets`` records and from logs.

The records are in Parquet files, text dumps or a running cluster.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.comparison.compare import LIMITS, CaseLimits
from kassay.experiments.history import log_summary
from kassay.experiments.history.group_records import TOPIC, OffsetsReader, decode_batches, read_dump
from kassay.experiments.history.log_messages import LogEvent, LogEventKind
from kassay.experiments.history.log_rebalances import LogRebalance
from kassay.experiments.history.recorded_rebalances import (
    HindsightRow,
    compared_row,
    generation_rows,
    hindsight_rows,
    last_document,
    rebalance_rows,
)
from kassay.experiments.spark.job_helpers import map_batches, map_rows, queries_of
from kassay.experiments.spark.session import PARQUET_OPTIONS, new_run, uri_of, write_manifest
from kassay.experiments.study.schemas import COMPARISONS, schema_of
from kassay.reference.documents.files import location, open_text, replacing_file, without_gzip
from kassay.reference.model.errors import InputError
from kassay.reference.protocol.message_decoder import OFFSET_COMMIT_KINDS, RecordType

_INT, _TEXT, _TEXTS = pa.int64(), pa.string(), pa.list_(pa.string())
_required = partial(pa.field, nullable=False)
_POSITION = [("partition", _INT), ("offset", _INT)]
# Raw records, the same for every source.
RAW = pa.schema([("key", pa.binary()), ("value", pa.binary()), *_POSITION, ("timestamp", _INT)])

# A record about a group, the number of offset commits, or an error.
RECORDS = pa.schema(
    [
        *(("group", _TEXT), ("kind", _INT), *_POSITION, ("timestamp", _INT)),
        *(("payload", _TEXT), _required("records", _INT), ("error", _TEXT)),
    ]
)

_NUMBERS = pa.list_(pa.struct([("topic", _TEXT), ("partitions", pa.list_(_INT))]))
_COUNTS = pa.list_(pa.struct([("topic", _TEXT), ("partitions", _INT)]))
_MEMBER = pa.struct(
    [
        *((name, _TEXT) for name in ("id", "instance_id", "client_id", "host", "rack")),
        *(("subscription", _TEXTS), ("assigned", _NUMBERS), ("claimed", _NUMBERS)),
        ("claimed_generation", _INT),
    ]
)
GENERATIONS = pa.schema(
    [
        *(_required("group", _TEXT), _required("incarnation", _INT), _required("number", _INT)),
        *(_required("protocol", _TEXT), ("assignor", _TEXT), ("timestamp", _INT), *_POSITION),
        *(_required("members", pa.list_(_MEMBER)), _required("partition_counts", _COUNTS)),
        *(_required("skipped_epochs", _INT), _required("cooperative", pa.bool_())),
    ]
)

_REBALANCE = [
    *(_required("group", _TEXT), _required("incarnation", _INT), _required("generation", _INT)),
    *(_required("first", _INT), _required("protocol", _TEXT), ("started", _INT)),
    *(("timestamp", _INT), _required("members", _INT), _required("partitions", _INT)),
    *(("unknown", _TEXT), ("document", _TEXT), _required("assigned", _TEXT)),
]
REBALANCES = pa.schema([*_REBALANCE, *COMPARISONS])
# Columns that are known before a rebalance is solved.
REBALANCE_FACTS = pa.schema(
    [*_REBALANCE, *(COMPARISONS.field(name) for name in ("case", "assignor", "rounds"))]
)

ERRORS = pa.schema([*_POSITION, _required("error", _TEXT)])

# Moves of a group over all of its rebalances.
HINDSIGHT = schema_of(HindsightRow)


RECORD_SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "8192"}
"""Spark settings that increase the rows per Arrow batch, because records are small."""

HISTORY_FOLDER, GROUPS = "history", "groups.jsonl"
_DOCUMENT = pa.schema([pa.field("document", pa.string(), nullable=False)])
_QUERIES = queries_of("history_summary.sql")


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """Partition counts and topic names of a cluster, which group records do not contain."""

    partition_counts: Mapping[str, int] = field(default_factory=dict)
    topic_names: Mapping[str, str] = field(default_factory=dict)  # by topic id (36 characters)


def decode_records(raw: DataFrame) -> DataFrame:
    """Decode raw records of ``__consumer_offsets`` to table rows."""
    return map_batches(raw, decode_batches, RECORDS)


def rebuild_generations(records: DataFrame, *, known: ClusterMetadata, tasks: int) -> DataFrame:
    """Reconstruct the generations of every group from decoded records.

    Each task reads its groups one by one, with at most one group in memory. The order of the input
    rows has no effect.
    """
    skipped = {*OFFSET_COMMIT_KINDS, RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT}
    kinds = ", ".join(f"{kind:d}" for kind in sorted(skipped))
    described = f"error IS NULL AND payload IS NOT NULL AND kind NOT IN ({kinds})"
    columns = ("group", "kind", "partition", "offset", "timestamp", "payload")
    by_group = records.where(described).select(*columns).repartition(tasks, "group")
    by_group = by_group.sortWithinPartitions(*(name for name in columns if name != "kind"))
    names = dict(known.topic_names)
    return map_rows(by_group, lambda rows: generation_rows(rows, topic_names=names), GENERATIONS)


def evaluate_rebalances(
    generations: DataFrame, *, known: ClusterMetadata, tasks: int, limits: CaseLimits = LIMITS
) -> DataFrame:
    """Reconstruct each rebalance, and compare its assignment with the optimum."""
    counts = dict(known.partition_counts)
    by_group = generations.repartition(tasks, "group").sortWithinPartitions(
        "group", "incarnation", "number"
    )
    facts = map_rows(
        by_group, lambda rows: rebalance_rows(rows, partition_counts=counts), REBALANCE_FACTS
    )
    return map_rows(
        facts.repartition(tasks),  # one group may have most of the rebalances
        lambda rows: (compared_row(row, limits=limits) for row in rows),
        REBALANCES,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Tables of a rebalance history as DataFrames, and the number of rows per table."""

    generations: DataFrame
    rebalances: DataFrame
    counts: Mapping[str, int]


def write_history(
    spark: SparkSession,
    sources: Sequence[DataFrame],
    output: str,
    *,
    known: ClusterMetadata,
    tasks: int,
    manifest: Callable[[dict[str, int]], Mapping[str, object]],
    limits: CaseLimits = LIMITS,
) -> History:
    """Reconstruct the rebalance history of all groups, and write the resulting tables.

    Each call writes a new run, and then the manifest of this run. Earlier runs do not change. The
    function ``manifest`` creates the manifest from the number of rows per table. The rows do not
    depend on the number of tasks.
    """
    run = new_run()
    folder = f"{HISTORY_FOLDER}/run={run}"

    def written(frame: DataFrame, name: str) -> DataFrame:
        uri = f"{uri_of(output)}/{folder}/{name}"
        frame.write.options(**PARQUET_OPTIONS).parquet(uri)
        return spark.read.parquet(uri)

    records = reduce(DataFrame.unionByName, sources).persist(StorageLevel.DISK_ONLY)
    generations = written(rebuild_generations(records, known=known, tasks=tasks), "generations")
    solved = evaluate_rebalances(generations, known=known, tasks=tasks, limits=limits)
    frames = {
        "generations": generations,
        "rebalances": written(solved, "rebalances"),
        "errors": written(records.where("error IS NOT NULL").select(*ERRORS.names), "errors"),
    }
    counts = {name: frame.count() for name, frame in frames.items()}
    [total] = records.selectExpr("coalesce(sum(records), 0) AS records").collect()
    counts["records"] = total["records"]
    records.unpersist()
    last = spark.sql(
        _QUERIES["last_groups"], generations=generations, rebalances=frames["rebalances"]
    )
    map_rows(last, _documents, _DOCUMENT).write.text(f"{uri_of(output)}/{folder}/groups")
    local = location(output)
    if local is not None:
        with replacing_file(local / GROUPS) as lines:
            for part in sorted((local / folder / "groups").glob("part-*")):
                lines.write(part.read_bytes())
    document = {**manifest(counts), "history": folder}
    write_manifest(spark, output, run, document, folders=[folder])
    return History(generations=generations, rebalances=frames["rebalances"], counts=counts)


def summarise_groups(
    history: History, *, limits: CaseLimits = LIMITS
) -> Iterator[dict[str, object]]:
    """Yield a summary per group: generations, rebalances, moves and unassigned topics."""
    sequences = history.rebalances.repartition("group").sortWithinPartitions(
        "group", "incarnation", "generation"
    )
    sequences = sequences.select("group", "incarnation", "document", "assigned", "unknown")
    hindsight = map_rows(
        sequences, lambda rows: hindsight_rows(rows, limits=limits), HINDSIGHT, size=64
    )
    rows = sequences.sparkSession.sql(
        _QUERIES["summaries"],
        generations=history.generations,
        rebalances=history.rebalances,
        hindsight=hindsight,
    )
    for row in rows.na.fill(0).toLocalIterator():
        yield row.asDict()


def _documents(rows: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        document = last_document(row)
        if document is not None:
            yield {"document": json.dumps(document, ensure_ascii=False)}


_LOG_EVENTS = pa.schema([("group", _TEXT), ("time", _INT), ("position", _INT), ("event", _TEXT)])
_LOG_RECORDS = pa.schema([("group", _TEXT), ("is_summary", pa.bool_()), ("record", _TEXT)])


def summarise_logs_on_spark(
    spark: SparkSession, files: Sequence[Path], *, on_rebalance: Callable[[Mapping[str, Any]], None]
) -> list[dict[str, Any]]:
    """Summarise the rebalances in logs like `summarise_logs`, with one task per file.

    The executors must be able to read the files. ``on_rebalance`` receives each rebalance as JSON.
    """
    names = [[number, str(file.absolute()), str(file)] for number, file in enumerate(files)]
    schema = "number long, path string, name string"
    paths = spark.createDataFrame(names, schema).repartition(len(files))
    events = map_rows(paths, _log_events, _LOG_EVENTS).repartition("group")
    ordered = events.sortWithinPartitions("group", "time", "position")
    summaries = []
    for row in map_rows(ordered, _log_records, _LOG_RECORDS).toLocalIterator():
        record = json.loads(row["record"])
        if row["is_summary"]:
            summaries.append(record)
        else:
            on_rebalance(record)
    return sorted(summaries, key=lambda record: str(record["id"]))


def _log_events(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        for line, event in enumerate(log_summary.events_of_file(Path(row["path"]))):
            # The bytes of a line can be those of any encoding.
            text = event.text.decode("latin-1")
            values = json.dumps({**event._asdict(), "text": text, "file": row["name"]})
            position = (row["number"] << 40) + line
            yield {"group": event.group, "time": event.time, "position": position, "event": values}


def _log_records(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for group, found in groupby(rows, key=lambda row: row["group"]):
        rebalances: list[LogRebalance] = []
        events = (_log_event(json.loads(row["event"])) for row in found)
        for summary in log_summary.summarise_events(events, on_rebalance=rebalances.append):
            yield {"group": group, "is_summary": True, "record": json.dumps(summary)}
        for one in rebalances:
            record = json.dumps(log_summary.rebalance_record(one))
            yield {"group": group, "is_summary": False, "record": record}


def _log_event(values: dict[str, Any]) -> LogEvent:
    kind, text = LogEventKind(values.pop("kind")), values.pop("text").encode("latin-1")
    return LogEvent(kind=kind, text=text, **values)


_REQUIRED_COLUMNS = ("key", "value")


def read_files(spark: SparkSession, paths: Sequence[str | Path]) -> list[DataFrame]:
    """Read records of ``__consumer_offsets`` from text dumps and Parquet files.

    Directories are searched for both types of files. Dumps may be compressed with gzip. URIs of
    other file systems must contain Parquet files.
    """
    texts: list[Path] = []
    tables: list[str] = []
    for path in map(str, paths):
        local = location(path)
        if local is None:
            tables.append(path)
            continue
        found, parquet = record_files(local)
        texts += found
        tables += map(str, parquet)
    stored = {path: spark.read.parquet(uri_of(path)) for path in tables}
    unordered = [path for path, frame in stored.items() if "offset" not in frame.columns]
    if unordered and (texts or len(unordered) < len(stored)):
        raise InputError(
            f"{unordered[0]}: the records have no column offset, so their order among the records "
            "of other files is unknown; read files without this column in a separate command"
        )
    frames = [decode_records(_raw_records(each, path)) for path, each in stored.items()]
    if texts:
        names = [[str(path.absolute())] for path in texts]
        dumps = spark.createDataFrame(names, "path string").repartition(len(names))
        frames.append(map_rows(dumps, _dump_rows, RECORDS))
    return frames


def record_files(path: Path) -> tuple[list[Path], list[Path]]:
    """List the text dumps and the Parquet files at a path."""
    if not path.exists():
        raise InputError(f"{path}: no such file or directory")
    if path.is_dir():
        dumps = sorted(file for file in path.rglob("*") if file.is_file() and _is_dump(file))
        # The directory that Spark writes for a table can also have a name with .parquet.
        parquet = sorted(
            file
            for file in path.rglob("*.parquet")
            if not any(part.endswith(".parquet") for part in file.relative_to(path).parts[:-1])
        )
        if not (dumps or parquet):
            suffixes = " or ".join(log_summary.DUMP_SUFFIXES)
            raise InputError(
                f"{path}: the directory contains neither Parquet files nor output of "
                f"kafka-dump-log.sh (files {suffixes}, also with .gz)"
            )
        for file in parquet:
            _check_parquet(file)
        # A directory of Parquet files alone may have partition columns.
        return dumps, ([path] if parquet and not dumps else parquet)
    if _is_dump(path):
        if log_summary.is_dump(path):
            return [path], []
        raise InputError(
            f"{path}: the file contains no output of kafka-dump-log.sh --offsets-decoder; captures "
            "of kafka-consumer-groups.sh and group documents show no history, use kassay plan for "
            "them"
        )
    _check_parquet(path)
    return [], [path]


def _is_dump(path: Path) -> bool:
    return without_gzip(path).suffix in log_summary.DUMP_SUFFIXES


def _check_parquet(path: Path) -> None:
    if not path.is_file() or log_summary.is_parquet(path):
        return
    suffixes = " or ".join(log_summary.DUMP_SUFFIXES)
    raise InputError(
        f"{path}: the file is not a Parquet file; "
        f"the name of a file with output of kafka-dump-log.sh must end with {suffixes}"
    )


def read_cluster(
    spark: SparkSession, settings: Mapping[str, str], *, timeout: float, tasks: int
) -> DataFrame:
    """Read and decode all current records of ``__consumer_offsets`` from a cluster.

    Each task reads some partitions with a consumer that joins no group and commits nothing.
    The settings are librdkafka properties; the timeout is in seconds per response.
    """
    properties = dict(settings)
    partitions = OffsetsReader(properties, timeout=timeout).partitions()
    frame = spark.createDataFrame([[number] for number in partitions], "number long")

    def read(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        numbers = [int(row["number"]) for row in rows]
        positions = dict.fromkeys(numbers, OFFSET_BEGINNING)
        return OffsetsReader(properties, timeout=timeout).read(positions)

    return decode_records(map_rows(frame.repartition(tasks), read, RAW))


def _dump_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        path = Path(row["path"])
        with open_text(path, errors="replace") as lines:
            yield from read_dump(lines, name=str(path))


def _raw_records(frame: DataFrame, path: str) -> DataFrame:
    """Select the columns of raw records, with null for missing optional columns.

    The columns are those of Spark's Kafka source: ``key``, ``value``, and optionally
    ``partition``, ``offset``, ``timestamp`` (a time or milliseconds) and ``topic``. Rows of
    topics other than ``__consumer_offsets`` are skipped.
    """
    types = dict(frame.dtypes)
    missing = [name for name in _REQUIRED_COLUMNS if name not in types]
    if missing or not types.keys() & {"offset", "timestamp"}:
        required = ", ".join(missing) if missing else "offset or timestamp"
        raise InputError(
            f"{path}: the files must have a column {required}, got {', '.join(frame.columns)}"
        )
    if "topic" in types:
        frame = frame.where(F.col("topic") == TOPIC)

    def column(name: str, kind: str) -> Column:
        if types.get(name, "").startswith("timestamp"):
            return F.unix_millis(F.col(name).cast("timestamp"))
        return (F.col(name) if name in types else F.lit(None)).cast(kind)

    kinds = {"key": "binary", "value": "binary"}
    return frame.select(*(column(n, kinds.get(n, "long")).alias(n) for n in RAW.names))
