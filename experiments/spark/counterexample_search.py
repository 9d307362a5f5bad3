"""Search many cases for counterexamples, on Spark."""

import json
from collections.abc import Sequence
from dataclasses import asdict

import pyarrow as pa
from pyspark.sql import SparkSession

from kassay.experiments.counterexamples.search import CaseSearch, search_case
from kassay.experiments.counterexamples.shortcomings import SearchOptions
from kassay.experiments.spark.arrow_map import map_rows
from kassay.experiments.spark.progress import with_progress
from kassay.experiments.spark.study_schemas import schema_of
from kassay.experiments.study.case import Case

CASES_PER_TASK = 50
_RESULTS = schema_of(CaseSearch)
_CASES = pa.schema([pa.field("case", pa.string(), nullable=False)])


def search_cases(
    spark: SparkSession, cases: Sequence[Case], options: SearchOptions, *, tasks: int | None = None
) -> list[CaseSearch]:
    """Search every case, and return one result per case, in no particular order."""
    tasks = tasks or max(1, -(-len(cases) // CASES_PER_TASK))
    rows = [{"case": json.dumps(asdict(case), ensure_ascii=False)} for case in cases]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=_CASES)).repartition(tasks)
    with with_progress(spark, total=len(cases)):
        results = map_rows(
            frame,
            lambda rows: (asdict(search_case(_case(row["case"]), options)) for row in rows),
            _RESULTS,
        ).toArrow()
    return [CaseSearch(**row) for row in results.to_pylist()]


def _case(text: str) -> Case:
    fields = json.loads(text)
    return Case(**{**fields, "assignors": tuple(fields["assignors"])})
