"""Read the cases of a study as Spark DataFrames, and find the complete runs of its batches."""

import re
from collections.abc import Container, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema

from kassay.experiments.spark.output_files import (
    CASES_FOLDER,
    local_copy,
    uri_of,
)
from kassay.experiments.spark.study_schemas import CASES, KEY, LISTS, POSITION, STUDY, TABLES
from kassay.experiments.study.batches import Batch
from kassay.experiments.study.output_reader import read_manifest

_RUN_OF_FILE = r"/batch=(\d+)/run=([^/]+)/[^/]+$"


def read_cases(
    spark: SparkSession,
    root: str,
    paths: Sequence[str],
    **options: str,
) -> DataFrame:
    """Read the evaluated cases of a study from folders, and verify checksums."""
    checks = {"parquet.page.verify-checksum.enabled": "true", **options}
    frames = spark.read.schema(from_arrow_schema(CASES)).options(**checks)
    return frames.parquet(*(f"{root}/{path}" for path in paths))


def complete_runs(
    spark: SparkSession,
    root: str,
    batches: Sequence[Batch],
    digest: str,
    *,
    without: Container[str] = (),
) -> dict[int, str]:
    """Map the number of each complete batch to the name of its first complete run.

    All columns of all files are read, with their page checksums. A run is complete if it has
    the rows of this study at exactly the positions of its batch, and no unreadable file. The
    folders in ``without`` are ignored.
    """
    # Skip unreadable parts of damaged files: their rows are then missing.
    skipped = dict.fromkeys(("ignoreCorruptFiles", "ignoreMissingFiles"), "true")
    paths = [f"batch={batches[0].number}"] if len(batches) == 1 else [""]
    try:
        frame = read_cases(spark, root, paths, recursiveFileLookup="true", **skipped)
        names = frame.inputFiles()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return {}
        raise
    listed = [match.groups() for name in names if (match := re.search(_RUN_OF_FILE, name))]
    path = F.col("_metadata.file_path")
    file = F.xxhash64(path)
    found = (
        frame.groupBy(
            F.regexp_extract(path, _RUN_OF_FILE, 1).try_cast("int").alias("batch"),
            F.regexp_extract(path, _RUN_OF_FILE, 2).alias("run"),
        )
        .agg(
            F.count("*"),
            F.count_distinct(POSITION),
            F.min(POSITION),
            F.max(POSITION),
            F.count_if(F.col(STUDY) == digest),
            F.min(file) != F.max(file),  # a run has one file or two files
            *(F.count(name) for name in TABLES),  # reads all columns
        )
        .collect()
    )
    sizes = {batch.number: batch for batch in batches}
    runs: dict[int, str] = {}
    for number, run, *counts in sorted(found, key=lambda row: str(row["run"])):
        batch, folder = sizes.get(number), f"{CASES_FOLDER}/{digest}/batch={number}/run={run}"
        if batch is None or folder in without:
            continue
        files = listed.count((str(number), run))
        size, last = batch.size, batch.end - 1
        if files <= 2 and counts[:6] == [size, size, batch.first, last, size, files == 2]:
            runs.setdefault(number, run)
    return runs


def study_tables(spark: SparkSession, output: str) -> dict[str, DataFrame]:
    """Return the tables of a finished study as DataFrames, by table name.

    A damaged file is an error when its rows are read.
    """
    with local_copy(spark, output) as (directory, _):
        folders = read_manifest(directory)["folders"]
    paths = [folder for folder in folders if folder.startswith("cases/")]
    cases = read_cases(spark, uri_of(output), paths)
    key = F.col(f"groups.{KEY}").alias(KEY)
    optima = cases.where("optima IS NOT NULL").select(key, "optima.*")
    tables = {name: cases.select(key, F.inline(name)) for name in LISTS}
    return {"groups": cases.select("groups.*"), "optima": optima, **tables}
