"""Read the cases of a study as Spark DataFrames, and find the complete runs of its batches."""

import json
import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema

from kassay.experiments.report.output_reader import MANIFESTS, read_manifest, verified_manifest
from kassay.experiments.spark.output_files import (
    CASES_FOLDER,
    SUMMARY_FOLDER,
    local_copy,
    new_run,
    uri_of,
    write_manifest,
)
from kassay.experiments.spark.study_schemas import CASES, KEY, LISTS, POSITION, STUDY, TABLES
from kassay.experiments.spark.study_summary import write_summary
from kassay.experiments.study.batches import Batch
from kassay.reference.model.errors import InputError

_OLD_MANIFEST = "manifest.json"
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


def convert_study(spark: SparkSession, old: Path, output: str) -> None:
    """Summarise a study that an earlier version wrote, and write the summary to ``output``.

    The first layout has one directory per table, and a single file as manifest.

    Raises
    ------
    InputError
        If the study is incomplete or damaged, or if its tables do not have the numbers of rows in
        the manifest.
    """
    run = new_run()
    summary = f"{SUMMARY_FOLDER}/run={run}"
    if (old / _OLD_MANIFEST).exists() or not (old / MANIFESTS).exists():
        manifest = _old_manifest(old)
        cases = _nested(spark, old)
    else:
        manifest = verified_manifest(old)
        folders = [name for name in manifest["folders"] if name.startswith(f"{CASES_FOLDER}/")]
        cases = read_cases(spark, uri_of(str(old)), folders)
    expected = dict(manifest["rows"])
    rows = write_summary(cases, f"{uri_of(output)}/{summary}")
    found = {name: rows.get(name) for name in expected}  # the old layout has no later tables
    if found != expected:
        raise InputError(f"{old}: the tables have {found} rows, the manifest has {expected}")
    document = {**manifest, "summary": summary}
    write_manifest(spark, output, run, document, folders=[summary])


def _old_manifest(old: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((old / _OLD_MANIFEST).read_text(encoding="utf-8"))
        return {**manifest, "rows": dict(manifest["rows"])}
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{old} contains no complete study: no valid {_OLD_MANIFEST}") from None


def _nested(spark: SparkSession, old: Path) -> DataFrame:
    """Join the tables of the old layout into one table with one row per case."""

    def read(name: str) -> DataFrame:
        schema = from_arrow_schema(TABLES[name])
        return spark.read.schema(schema).parquet((old.absolute() / name).as_uri())

    def row(name: str) -> Column:
        return F.struct(*(column for column in TABLES[name].names if column != KEY))

    cases = read("groups").select(KEY, F.struct(*TABLES["groups"].names).alias("groups"))
    cases = cases.join(read("optima").select(KEY, row("optima").alias("optima")), KEY, "left")
    for name in ("assignments", "comparisons", "timings"):
        # Both lists are sorted by assignor, their first column.
        lists = read(name).groupBy(KEY).agg(F.sort_array(F.collect_list(row(name))).alias(name))
        cases = cases.join(lists, KEY, "left")
        # A group that could not be built has no rows.
        cases = cases.withColumn(name, F.expr(f"coalesce({name}, array())"))
    later = ("rebalances", "front_distances")
    types = {name: from_arrow_schema(CASES)[name].dataType for name in later}
    return cases.withColumns({name: F.array().cast(kind) for name, kind in types.items()})
