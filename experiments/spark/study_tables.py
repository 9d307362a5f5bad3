"""Tables of a study as Spark DataFrames, for example ``groups`` and ``comparisons``."""

import json
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema

from kassay.experiments.report.output_reader import read_manifest
from kassay.experiments.spark.output_files import local_copy, new_run, uri_of, write_manifest
from kassay.experiments.spark.study_pipeline import SUMMARY_FOLDER, read_cases
from kassay.experiments.spark.study_schemas import KEY, TABLES
from kassay.experiments.spark.study_summary import write_summary
from kassay.reference.model.errors import InputError

_OLD_MANIFEST = "manifest.json"


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
    lists = ("assignments", "comparisons", "timings")
    tables = {name: cases.select(key, F.inline(name)) for name in lists}
    return {"groups": cases.select("groups.*"), "optima": optima, **tables}


def convert_study(spark: SparkSession, old: Path, output: str) -> None:
    """Summarise a study that was written in the old layout: one directory per table.

    Versions before 0.2 wrote this layout.

    Raises
    ------
    InputError
        If the old tables do not have the numbers of rows in the old manifest.
    """
    try:
        manifest = json.loads((old / _OLD_MANIFEST).read_text(encoding="utf-8"))
        expected = dict(manifest["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{old} contains no complete study: no valid {_OLD_MANIFEST}") from None
    run = new_run()
    summary = f"{SUMMARY_FOLDER}/run={run}"
    rows = write_summary(_nested(spark, old), f"{uri_of(output)}/{summary}")
    if rows != expected:
        raise InputError(f"{old}: the tables have {rows} rows, the manifest has {expected}")
    document = {**manifest, "summary": summary}
    write_manifest(spark, output, run, document, folders=[summary])


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
        cases = cases.join(lists, KEY, "left")  # null for a group that could not be built
    return cases
