"""The sweep: cases out to the workers, rows back, tables onto disk."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema

from experiments.compare import LIMITS, Limits
from experiments.families import Case
from experiments.spark.progress import watched
from experiments.spark.tables import CASES, RECORDS, TABLES, case_of, case_row, record_row
from experiments.study import study

MANIFEST = "manifest.json"
CASES_A_TASK = 24
_STAGING = ".staging"


def sweep(
    spark: SparkSession,
    cases: Sequence[Case],
    *,
    tasks: int | None = None,
    limits: Limits = LIMITS,
) -> DataFrame:
    """Study every case; lazy, one row of `RECORDS` a case.

    Parameters
    ----------
    spark
        The session.
    cases
        What to study. They travel as names and seeds, and groups are built on the
        workers; only imported groups travel as documents.
    tasks
        Over how many Spark tasks to spread them; by default about `CASES_A_TASK` cases
        each. The rows do not depend on it.
    limits
        What each search may use up. Every search runs on one thread.
    """
    tasks = tasks or max(1, -(-len(cases) // CASES_A_TASK))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            here = [record_row(study(case_of(row), limits=limits)) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist(here, schema=RECORDS)

    plan = spark.createDataFrame(pa.Table.from_pylist([case_row(c) for c in cases], schema=CASES))
    return plan.repartition(tasks).mapInArrow(run, from_arrow_schema(RECORDS))


def table_of(records: DataFrame, name: str) -> DataFrame:
    """Take one table out of the records, one row after another in the order of its key."""
    rows = records.select(F.explode(name).alias("row")).select("row.*")
    key = [column for column in ("case", "assignor") if column in rows.columns]
    return rows.coalesce(1).sortWithinPartitions(*key)


def write_tables(
    spark: SparkSession,
    cases: Sequence[Case],
    directory: Path,
    *,
    manifest: Callable[[dict[str, int]], dict[str, object]],
    tasks: int | None = None,
    limits: Limits = LIMITS,
) -> dict[str, int]:
    """Run a study and write its tables and manifest into a directory.

    What was there of an earlier run is replaced, table by table, once everything has been
    computed: until then the earlier tables stay. The manifest goes first and comes last,
    so that a directory with a manifest is complete.

    Returns
    -------
    dict
        Rows of each table.
    """
    staging = directory / _STAGING
    shutil.rmtree(staging, ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with watched(spark, total=len(cases)):
            lazy = sweep(spark, cases, tasks=tasks, limits=limits)
            lazy.write.parquet((staging / "records").absolute().as_uri())
        records = spark.read.parquet((staging / "records").absolute().as_uri())
        for name in TABLES:
            table_of(records, name).write.parquet((staging / name).absolute().as_uri())
        counts = {name: spark.read.parquet(str(staging / name)).count() for name in TABLES}
        (directory / MANIFEST).unlink(missing_ok=True)
        for name in TABLES:
            shutil.rmtree(directory / name, ignore_errors=True)
            (staging / name).rename(directory / name)
        text = json.dumps(manifest(counts), indent=2, ensure_ascii=False) + "\n"
        (directory / MANIFEST).write_text(text, encoding="utf-8")
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return counts
