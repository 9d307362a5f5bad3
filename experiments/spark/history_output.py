"""The tables of a history on disk, and the groups as it left them."""

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

TABLES = ("generations", "rebalances", "commits", "errors")
GROUPS = "groups.jsonl"
MANIFEST = "manifest.json"
_STAGING = ".staging"
_ORDER = {
    "generations": ("group", "life", "number"),
    "rebalances": ("group", "life", "generation"),
    "commits": ("group", "topic", "topic_partition"),
    "errors": ("partition", "offset", "error"),
}


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
    """Write generations, rebalances, newest commits and errors, and the last groups.

    What an earlier run left is replaced once everything has been computed; the manifest
    goes first and comes last, so that a directory with a manifest is complete.

    Parameters
    ----------
    spark
        The session.
    sources
        Decoded records of every source.
    directory
        Where to.
    known
        What records do not tell.
    tasks
        Over how many Spark tasks to spread groups, and then rebalances. The tables do
        not depend on it.
    manifest
        Makes the manifest of the rows of each table.
    limits
        What each search may use up.

    Returns
    -------
    dict
        Rows of each table, and ``records``: how many records were read.
    """
    staging = directory / _STAGING
    shutil.rmtree(staging, ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)

    def kept(frame: DataFrame, name: str) -> DataFrame:
        place = (staging / name).absolute().as_uri()
        frame.write.parquet(place)
        return spark.read.parquet(place)

    try:
        records = kept(reduce(DataFrame.unionByName, sources), "records")
        generations = kept(
            _sorted(rebuild_generations(records, known=known, tasks=tasks), "generations"),
            "generations",
        )
        judged = evaluate_rebalances(generations, known=known, tasks=tasks, limits=limits)
        rebalances = kept(_sorted(judged, "rebalances"), "rebalances")
        frames = {
            "generations": generations,
            "rebalances": rebalances,
            "commits": kept(_sorted(newest_commits(records), "commits"), "commits"),
            "errors": kept(_sorted(undecoded_records(records), "errors"), "errors"),
        }
        counts = {name: frame.count() for name, frame in frames.items()}
        [total] = records.agg(F.sum("records").alias("records")).collect()
        counts["records"] = total["records"] or 0
        documents = list(_last_groups(generations, rebalances))
        _put_in_place(staging, directory, documents)
        text = json.dumps(manifest(counts), indent=2, ensure_ascii=False) + "\n"
        (directory / MANIFEST).write_text(text, encoding="utf-8")
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return counts


def _sorted(frame: DataFrame, name: str) -> DataFrame:
    # Coalescing would have one task do all the work before.
    return frame.repartition(1).sortWithinPartitions(*_ORDER[name])


def _put_in_place(staging: Path, directory: Path, documents: Sequence[str]) -> None:
    (directory / MANIFEST).unlink(missing_ok=True)
    for name in TABLES:
        shutil.rmtree(directory / name, ignore_errors=True)
        (staging / name).rename(directory / name)
    (directory / GROUPS).write_text("".join(f"{line}\n" for line in documents), encoding="utf-8")


def _last_groups(generations: DataFrame, rebalances: DataFrame) -> Iterator[str]:
    """Yield the document of every group whose last generation has members, by group id."""
    place = F.struct("life", "number")
    last = generations.groupBy("group").agg(
        F.max(place).alias("last"), F.max_by("members", place).alias("members")
    )
    ends = last.where(F.size("members") > 0).select(
        "group", F.col("last.life").alias("life"), F.col("last.number").alias("generation")
    )
    rows = rebalances.join(ends, ["group", "life", "generation"]).select(
        "group", "generation", "document", "assigned"
    )
    for row in sorted(rows.toLocalIterator(), key=lambda row: str(row["group"])):
        document = last_document(row.asDict())
        if document is not None:
            yield json.dumps(document, ensure_ascii=False)
