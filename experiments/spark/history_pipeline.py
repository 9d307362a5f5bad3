"""Reconstruct the rebalance history of groups from ``__consumer_offsets``, on Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.compare import LIMITS, CaseLimits
from kassay.experiments.history.record_batches import decode_batches
from kassay.experiments.history.table_rows import compared_row, generation_rows, rebalance_rows
from kassay.experiments.spark.arrow_map import map_batches, map_rows
from kassay.experiments.spark.history_schemas import (
    COMMITS,
    ERRORS,
    GENERATIONS,
    REBALANCE_FACTS,
    REBALANCES,
    RECORDS,
)
from kassay.reference.protocol.record_schemas import OFFSET_COMMIT_KINDS, RecordType

RECORD_SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "8192"}
"""Spark settings for small records: more rows per Arrow batch."""

_PLACE = ("partition", "offset")


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """Partition counts and topic names, which ``__consumer_offsets`` does not contain."""

    partition_counts: Mapping[str, int] = field(default_factory=dict)
    topic_names: Mapping[str, str] = field(default_factory=dict)  # by topic id (36 characters)


def decode_records(raw: DataFrame) -> DataFrame:
    """Decode raw records of ``__consumer_offsets``, and combine the commits of each partition."""
    return map_batches(raw, decode_batches, RECORDS)


def group_records(records: DataFrame) -> DataFrame:
    """Select the decoded records that describe members and assignments of groups."""
    return records.where(
        F.col("error").isNull()
        & F.col("payload").isNotNull()
        & ~F.col("kind").isin(
            *OFFSET_COMMIT_KINDS, int(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT)
        )
    ).select("group", "kind", *_PLACE, "timestamp", "payload")


def rebuild_generations(records: DataFrame, *, known: ClusterMetadata, tasks: int) -> DataFrame:
    """Reconstruct the generations of every group from decoded records.

    Each task reads its groups one by one and holds at most one of them. The order of the
    input rows does not matter.
    """
    by_group = group_records(records).repartition(tasks, "group")
    by_group = by_group.sortWithinPartitions("group", *_PLACE, "timestamp", "payload")
    names = dict(known.topic_names)
    return map_rows(by_group, lambda rows: generation_rows(rows, topic_names=names), GENERATIONS)


def evaluate_rebalances(
    generations: DataFrame, *, known: ClusterMetadata, tasks: int, limits: CaseLimits = LIMITS
) -> DataFrame:
    """Reconstruct every rebalance, and compare its assignment with the optimum."""
    counts = dict(known.partition_counts)
    by_group = generations.repartition(tasks, "group").sortWithinPartitions(
        "group", "incarnation", "number"
    )
    rebalances = map_rows(
        by_group, lambda rows: rebalance_rows(rows, partition_counts=counts), REBALANCE_FACTS
    )
    return map_rows(
        rebalances.repartition(tasks),  # one group may have most of the rebalances
        lambda rows: (compared_row(row, limits=limits) for row in rows),
        REBALANCES,
    )


def newest_commits(records: DataFrame) -> DataFrame:
    """Return the newest offset commit of every group and partition."""
    newest = (
        records.where(F.col("kind").isin(*OFFSET_COMMIT_KINDS) & F.col("error").isNull())
        .groupBy("group", "topic", "topic_partition")
        .agg(
            F.max_by("payload", F.coalesce("offset", "timestamp", F.lit(-1))).alias("payload"),
            F.sum("records").alias("records"),
        )
    )

    def value(name: str) -> Column:
        return F.get_json_object("payload", f"$[1].{name}")

    return newest.select(
        "*",
        value("offset").cast("long").alias("committed"),
        value("metadata").alias("metadata"),
        value("commit_timestamp").cast("long").alias("commit_timestamp"),
    ).select(*COMMITS.names)


def undecoded_records(records: DataFrame) -> DataFrame:
    """Return the position and error of each record that cannot be decoded."""
    return records.where(F.col("error").isNotNull()).select(*ERRORS.names)
