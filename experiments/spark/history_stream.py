"""Compare rebalances with the optimum in real time, with Spark Structured Streaming."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from kassay.experiments.comparison.compare import LIMITS, CaseLimits
from kassay.experiments.history.group_records import from_row
from kassay.experiments.history.prometheus_metrics import metrics_text, replace_file
from kassay.experiments.history.rebalances import FOLLOWED, GroupFollower
from kassay.experiments.spark.history_pipeline import (
    REBALANCE_FACTS,
    REBALANCES,
    ClusterMetadata,
    compare_rebalances,
    decode_records,
    group_records,
)
from kassay.experiments.spark.output_files import PARQUET_OPTIONS, uri_of

_CHECKPOINT_FOLDER = "checkpoint"
_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def follow(
    spark: SparkSession,
    raw: DataFrame,
    output: str,
    *,
    known: ClusterMetadata,
    tasks: int,
    interval: float,
    quiet_period: float,
    metrics: Path | None = None,
    limits: CaseLimits = LIMITS,
) -> None:
    """Find, evaluate and write the rebalances in a record stream until interrupted.

    ``interval`` is the time between two batches, in seconds. A group without new records for
    ``quiet_period`` seconds has finished its last generation. The metrics of all groups are
    written to the file ``metrics``.

    The rebalances of each batch are in a folder of their own, which a repeated batch replaces.
    The checkpoint in the output contains the offsets of finished batches and the state of all
    groups, so that the next start continues after the last finished batch.
    """
    folder = f"{uri_of(output)}/{FOLLOWED}"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _STATE_STORE)
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))

    def write(facts: DataFrame, batch: int) -> None:
        facts.persist()
        if facts.count():
            rows = compare_rebalances(facts, tasks=tasks, limits=limits)
            target = f"{folder}/batch={batch}"
            rows.write.mode("overwrite").options(**PARQUET_OPTIONS).parquet(target)
            _write_metrics(facts.sparkSession, folder, metrics)
        facts.unpersist()

    _write_metrics(spark, folder, metrics)
    processor = _RebalanceProcessor(known, quiet_milliseconds=int(1000 * quiet_period))
    facts = (
        group_records(decode_records(raw))
        .groupBy("group")
        .transformWithState(
            processor, from_arrow_schema(REBALANCE_FACTS), "Append", "ProcessingTime"
        )
    )
    query = (
        facts.writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{uri_of(output)}/{_CHECKPOINT_FOLDER}")
        .trigger(processingTime=f"{int(1000 * interval)} milliseconds")
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()


class _RebalanceProcessor(StatefulProcessor):
    """Spark stream processor that finds the rebalances of each group in its records.

    The state of a group is its `GroupFollower`.
    """

    def __init__(self, known: ClusterMetadata, *, quiet_milliseconds: int) -> None:
        self._known = known
        self._quiet_milliseconds = quiet_milliseconds

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState("follower", "state binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        follower = self._load(key)
        records = sorted(map(Row.asDict, rows), key=lambda row: (row["offset"], row["payload"]))
        counts = self._known.partition_counts
        found = list(follower.apply(map(from_row, records), counts))
        self._state.update((follower.state(),))
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        now = timerValues.getCurrentProcessingTimeInMs()
        self._handle.registerTimer(now + self._quiet_milliseconds)
        return map(_row, found)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: ARG002, N803
        expiredTimerInfo: Any,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        follower = self._load(key)
        found = list(follower.close(self._known.partition_counts))
        self._state.update((follower.state(),))
        return map(_row, found)

    def close(self) -> None:
        """Do nothing, because Spark closes the state of the groups."""

    def _load(self, key: Any) -> GroupFollower:
        state = self._state.get() if self._state.exists() else (None,)
        follower = GroupFollower.of(key[0], None if state is None else state[0])
        follower.replay.topic_names = self._known.topic_names
        return follower


def _row(values: dict[str, object]) -> Row:
    return Row(**{name: values[name] for name in REBALANCE_FACTS.names})


def _write_metrics(spark: SparkSession, folder: str, file: Path | None) -> None:
    """Write the metrics of all evaluated rebalances to a file for Prometheus."""
    if file is None:
        return
    try:
        rebalances = spark.read.schema(from_arrow_schema(REBALANCES)).parquet(folder)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return  # no rebalance is written
    replace_file(file, metrics_text(row.asDict() for row in group_metrics(rebalances).collect()))


def group_metrics(rebalances: DataFrame) -> DataFrame:
    """Compute the metrics of each group from its rebalances, one row per group."""
    generation = F.struct("incarnation", "generation")
    several = F.col("generation") > F.col("first")
    return rebalances.groupBy("group").agg(
        F.count("*").alias("rebalances"),
        F.sum("movement_greedy").alias("moves"),
        F.sum("unnecessary_moves").alias("unnecessary_moves"),
        F.expr("count_if(unnecessary_moves IS NULL)").alias("unproven"),
        (F.sum(F.when(several, F.col("timestamp") - F.col("started")).otherwise(0)) / 1000).alias(
            "seconds_without_owner"
        ),
        F.max_by("sum_of_squares_gap", generation).alias("imbalance_gap"),
        F.max_by("makespan_gap", generation).alias("makespan_gap"),
        (F.max("timestamp") / 1000).alias("last_rebalance"),
    )
