"""The history of ``__consumer_offsets`` on Spark: records to generations to judged rebalances."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema

from kassay.experiments.compare import LIMITS, CaseLimits
from kassay.experiments.history.record_batches import decode_batches
from kassay.experiments.history.table_rows import compared_row, generation_rows, rebalance_rows
from kassay.experiments.spark.history_schemas import (
    COMMITS,
    ERRORS,
    GENERATIONS,
    REBALANCES,
    RECORDS,
)
from kassay.reference.protocol.record_schemas import OFFSET_COMMIT_KINDS, RecordType

_BATCH = 512  # rows
RECORD_SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "8192"}
"""Session setting for records, which are small: more of them travel together."""

_PLACE = ("partition", "offset")

Rows = Iterator[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """What records do not tell.

    Parameters
    ----------
    counts
        Partition counts by topic.
    names
        Topic names by id, in its usual form of 36 characters.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


def decode_records(raw: DataFrame) -> DataFrame:
    """Decode raw records; one row of `RECORDS` for each but commits, see `decode_batches`."""
    return _mapped(raw, decode_batches, RECORDS)


def rebuild_generations(records: DataFrame, *, known: ClusterMetadata, tasks: int) -> DataFrame:
    """Rebuild the generations of every group; rows of `GENERATIONS`.

    Groups are spread over tasks, and each task goes through its groups one after
    another, so that it holds one of them at most. The order of the records' rows does
    not matter.
    """
    lives = records.where(
        F.col("error").isNull()
        & F.col("payload").isNotNull()
        & ~F.col("kind").isin(
            *OFFSET_COMMIT_KINDS, int(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT)
        )
    ).select("group", "kind", *_PLACE, "timestamp", "payload")
    spread = lives.repartition(tasks, "group").sortWithinPartitions(
        "group", *_PLACE, "timestamp", "payload"
    )
    names = dict(known.names)
    return map_rows(spread, lambda rows: generation_rows(rows, topic_names=names), GENERATIONS)


def evaluate_rebalances(
    generations: DataFrame, *, known: ClusterMetadata, tasks: int, limits: CaseLimits = LIMITS
) -> DataFrame:
    """Tell and solve every rebalance; rows of `REBALANCES`.

    One group may have gone through most of them, so they are spread anew to be solved.
    """
    counts = dict(known.counts)
    facts = pa.schema([REBALANCES.field(name) for name in _FACTS])
    spread = generations.repartition(tasks, "group").sortWithinPartitions("group", "life", "number")
    told = map_rows(spread, lambda rows: rebalance_rows(rows, partition_counts=counts), facts)
    return map_rows(
        told.repartition(tasks),
        lambda rows: (compared_row(row, limits=limits) for row in rows),
        REBALANCES,
    )


def newest_commits(records: DataFrame) -> DataFrame:
    """Take the newest commit of every partition; rows of `COMMITS`."""
    newest = (
        records.where(F.col("kind").isin(*OFFSET_COMMIT_KINDS) & F.col("error").isNull())
        .groupBy("group", "topic", "topic_partition")
        .agg(
            F.max_by("payload", F.coalesce("offset", "timestamp", F.lit(-1))).alias("payload"),
            F.sum("records").alias("records"),
        )
    )
    value = "$[1]"
    return newest.select(
        "group",
        "topic",
        "topic_partition",
        F.get_json_object("payload", f"{value}.offset").cast("long").alias("committed"),
        F.get_json_object("payload", f"{value}.metadata").alias("metadata"),
        F.get_json_object("payload", f"{value}.commit_timestamp")
        .cast("long")
        .alias("commit_timestamp"),
        "records",
    ).select(*COMMITS.names)


def undecoded_records(records: DataFrame) -> DataFrame:
    """Take the records that could not be decoded; rows of `ERRORS`."""
    return records.where(F.col("error").isNotNull()).select(*ERRORS.names)


_FACTS = (
    "group",
    "life",
    "generation",
    "first",
    "protocol",
    "timestamp",
    "members",
    "partitions",
    "unknown",
    "document",
    "assigned",
    "case",
    "assignor",
    "rounds",
)


def map_rows(
    frame: DataFrame, work: Callable[[Rows], Iterable[Mapping[str, Any]]], schema: pa.Schema
) -> DataFrame:
    """Send the rows of each task through a stream of plain rows."""
    return _mapped(
        frame, lambda batches: work(row for batch in batches for row in batch.to_pylist()), schema
    )


def _mapped(
    frame: DataFrame,
    work: Callable[[Iterator[pa.RecordBatch]], Iterable[Mapping[str, Any]]],
    schema: pa.Schema,
) -> DataFrame:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = iter(work(batches))
        while chunk := list(islice(found, _BATCH)):
            yield pa.RecordBatch.from_pylist(chunk, schema=schema)

    return frame.mapInArrow(run, from_arrow_schema(schema))
