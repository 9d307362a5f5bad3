"""Write the tables of a history and the last state of each group."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.compare import LIMITS, CaseLimits
from kassay.experiments.history.table_rows import last_document
from kassay.experiments.spark.history_pipeline import (
    ClusterMetadata,
    evaluate_rebalances,
    newest_commits,
    rebuild_generations,
    undecoded_records,
)
from kassay.experiments.spark.output_directory import (
    MANIFEST,
    new_staging_directory,
    replace_table,
    write_manifest,
)

GROUPS = "groups.jsonl"
_SORT_COLUMNS = {
    "generations": ("group", "incarnation", "number"),
    "rebalances": ("group", "incarnation", "generation"),
    "commits": ("group", "topic", "topic_partition"),
    "errors": ("partition", "offset", "error"),
}
TABLES = tuple(_SORT_COLUMNS)


def write_history(
    spark: SparkSession,
    sources: Sequence[DataFrame],
    directory: Path,
    *,
    known: ClusterMetadata,
    tasks: int,
    manifest: Callable[[dict[str, int]], dict[str, object]],
    limits: CaseLimits = LIMITS,
) -> dict[str, int]:
    """Write generations, rebalances, newest commits, errors and the last groups.

    Earlier tables are replaced when all new ones are complete. A directory with a manifest
    is complete, because the manifest is deleted first and written last. The function
    ``manifest`` builds it from the number of rows per table, which is returned with the
    number of input records as ``records``. The tables do not depend on the number of tasks.
    """
    staging = new_staging_directory(directory)

    def staged(frame: DataFrame, name: str) -> DataFrame:
        uri = (staging / name).absolute().as_uri()
        (_sorted(frame, name) if name in TABLES else frame).write.parquet(uri)
        return spark.read.parquet(uri)

    try:
        records = staged(reduce(DataFrame.unionByName, sources), "records")
        generations = staged(rebuild_generations(records, known=known, tasks=tasks), "generations")
        solved = evaluate_rebalances(generations, known=known, tasks=tasks, limits=limits)
        frames = {
            "generations": generations,
            "rebalances": staged(solved, "rebalances"),
            "commits": staged(newest_commits(records), "commits"),
            "errors": staged(undecoded_records(records), "errors"),
        }
        counts = {name: frame.count() for name, frame in frames.items()}
        [total] = records.agg(F.sum("records").alias("records")).collect()
        counts["records"] = total["records"] or 0
        documents = list(_last_groups(generations, frames["rebalances"]))
        _publish(staging, directory, documents)
        write_manifest(directory, manifest(counts))
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return counts


def _sorted(frame: DataFrame, name: str) -> DataFrame:
    # coalesce(1) would run all preceding work in one task.
    return frame.repartition(1).sortWithinPartitions(*_SORT_COLUMNS[name])


def _publish(staging: Path, directory: Path, documents: Sequence[str]) -> None:
    (directory / MANIFEST).unlink(missing_ok=True)
    for name in TABLES:
        replace_table(staging / name, directory / name)
    (directory / GROUPS).write_text("".join(f"{line}\n" for line in documents), encoding="utf-8")


def _last_groups(generations: DataFrame, rebalances: DataFrame) -> Iterator[str]:
    """Yield the documents of groups with members in their last generation, by group id."""
    generation = F.struct("incarnation", "number")
    last = generations.groupBy("group").agg(
        F.max(generation).alias("last"), F.max_by("members", generation).alias("members")
    )
    last_generations = last.where(F.size("members") > 0).select(
        "group",
        F.col("last.incarnation").alias("incarnation"),
        F.col("last.number").alias("generation"),
    )
    rows = rebalances.join(last_generations, ["group", "incarnation", "generation"]).select(
        "group", "generation", "document", "assigned"
    )
    for row in sorted(rows.toLocalIterator(), key=lambda row: str(row["group"])):
        document = last_document(row.asDict())
        if document is not None:
            yield json.dumps(document, ensure_ascii=False)
