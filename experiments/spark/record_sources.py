"""Where records of ``__consumer_offsets`` come from: Parquet, dumps in text, a live cluster."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import TimestampNTZType, TimestampType

from kassay.experiments.history.live_topic import OffsetsReader
from kassay.experiments.history.log_dumps import read_dump
from kassay.experiments.spark.history_pipeline import decode_records, map_rows
from kassay.experiments.spark.history_schemas import RAW, RECORDS
from kassay.reference.model.errors import InputError

TOPIC = "__consumer_offsets"
DUMP_SUFFIXES = (".txt", ".log", ".out")
_WANTED = ("key", "value")


def read_files(spark: SparkSession, paths: Sequence[Path]) -> list[DataFrame]:
    """Read files by their names: `DUMP_SUFFIXES` as dumps, others as Parquet; decoded records.

    Raises
    ------
    InvalidGroupError
        If there is no such file, or Parquet lacks a column.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or directory")
    texts = [path for path in paths if path.suffix in DUMP_SUFFIXES]
    tables = [path for path in paths if path.suffix not in DUMP_SUFFIXES]
    frames = [read_dumps(spark, texts)] if texts else []
    return [*frames, decode_records(read_parquet(spark, tables))] if tables else frames


def read_parquet(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """Read raw records; rows of `RAW`.

    Parameters
    ----------
    spark
        The session.
    paths
        Parquet files or directories of them with binary columns ``key`` and ``value`` and,
        where there, ``partition``, ``offset`` and ``timestamp`` (a time, or milliseconds):
        what Spark's own Kafka source gives. Of a column ``topic`` only the rows of
        ``__consumer_offsets`` are taken.

    Raises
    ------
    InvalidGroupError
        If there is no key or no value, or neither offset nor timestamp to order them by.
    """
    frame = spark.read.parquet(*(path.absolute().as_uri() for path in paths))
    missing = [name for name in _WANTED if name not in frame.columns]
    if missing or not {"offset", "timestamp"} & set(frame.columns):
        wanted = ", ".join(missing) if missing else "offset or timestamp"
        names = ", ".join(str(path) for path in paths)
        raise InputError(f"{names}: no column {wanted} among {', '.join(frame.columns)}")
    if "topic" in frame.columns:
        frame = frame.where(F.col("topic") == TOPIC)
    stamp = _millis(frame) if "timestamp" in frame.columns else F.lit(None)
    return frame.select(
        F.col("key").cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        *(
            (F.col(name) if name in frame.columns else F.lit(None)).cast("long").alias(name)
            for name in ("partition", "offset")
        ),
        stamp.cast("long").alias("timestamp"),
    )


def read_dumps(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """Read what ``kafka-dump-log.sh --offsets-decoder`` printed; rows of records.

    Files are read by the workers, a file a task at most.
    """
    names = [[str(path.absolute())] for path in paths]
    frame = spark.createDataFrame(names, "path string").repartition(max(1, len(names)))
    return map_rows(frame, _dump_rows, RECORDS)


def read_cluster(
    spark: SparkSession, settings: Mapping[str, str], *, timeout: float, tasks: int
) -> DataFrame:
    """Read the topic off a live cluster, up to its end at this moment; rows of `RAW`.

    Each task reads some partitions with a consumer of its own that joins no group and
    commits nothing.

    Parameters
    ----------
    spark
        The session.
    settings
        librdkafka's settings, ``bootstrap.servers`` among them.
    timeout
        Seconds to wait for an answer.
    tasks
        Over how many tasks to spread the partitions.
    """
    chosen = dict(settings)
    partitions = OffsetsReader(chosen, timeout=timeout).partitions()
    frame = spark.createDataFrame([[number] for number in partitions], "number long")

    def read(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        numbers = [int(row["number"]) for row in rows]
        return OffsetsReader(chosen, timeout=timeout).read(numbers)

    return map_rows(frame.repartition(tasks), read, RAW)


def read_cluster_with_spark(
    spark: SparkSession, servers: str, partitions: Sequence[int], options: Mapping[str, str]
) -> DataFrame:
    """Read the topic with Spark's own Kafka source, for sessions that have its package.

    Parameters
    ----------
    spark
        A session started with ``spark.jars.packages`` naming spark-sql-kafka.
    servers
        ``host:port`` of brokers.
    partitions
        The numbers of the topic's partitions.
    options
        Further options of the source, such as ``kafka.security.protocol``.
    """
    # The source asks an administrator for offsets and then drops internal topics without a
    # word (ConsumerStrategy, Spark 4.0.0). Asked the older way, by a consumer, it does not.
    spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
    # Options go first: what the table must be is not theirs to change.
    chosen = {**options, **_by_spark(servers, partitions)}
    frame = spark.read.format("kafka").options(**chosen).load()
    stamp = _millis(frame).cast("long").alias("timestamp")
    places = [F.col(name).cast("long").alias(name) for name in ("partition", "offset")]
    return frame.select("key", "value", *places, stamp).select(*RAW.names)


def _by_spark(servers: str, partitions: Sequence[int]) -> dict[str, str]:
    """Return the options that bound the read: one topic, to its end, without joining a group."""
    return {
        "kafka.bootstrap.servers": servers,
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({TOPIC: list(partitions)}),
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
    }


def _dump_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        path = Path(row["path"])
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in read_dump(lines, name=str(path)):
                yield line.row()


def _millis(frame: DataFrame) -> Column:
    stamp = F.col("timestamp")
    if isinstance(frame.schema["timestamp"].dataType, TimestampType | TimestampNTZType):
        return F.unix_millis(stamp.cast("timestamp"))
    return stamp
