"""The hunt on Spark: cases out to the workers, catches back."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kassay.experiments.counterexamples.search import CaseSearch, search_case
from kassay.experiments.counterexamples.shortcomings import SearchOptions
from kassay.experiments.spark.progress import with_progress
from kassay.experiments.spark.table_schemas import schema_of
from kassay.experiments.study.case import Case

CASES_A_TASK = 50
_CATCHES = schema_of(CaseSearch)
_CASES = pa.schema([pa.field("case", pa.string(), nullable=False)])


def search_cases(
    spark: SparkSession, cases: Sequence[Case], hunt: SearchOptions, *, tasks: int | None = None
) -> list[CaseSearch]:
    """Chase every case.

    Parameters
    ----------
    spark
        The session.
    cases
        Where to look. They travel as names and seeds, imported groups and small worlds
        as documents.
    hunt
        What is hunted.
    tasks
        Over how many Spark tasks to spread them; by default about `CASES_A_TASK` cases
        each. What is caught does not depend on it.

    Returns
    -------
    list of Catch
        One a case, in no order.
    """
    tasks = tasks or max(1, -(-len(cases) // CASES_A_TASK))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            here = [asdict(search_case(_case(row["case"]), hunt)) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist(here, schema=_CATCHES)

    rows = [{"case": json.dumps(asdict(case), ensure_ascii=False)} for case in cases]
    plan = spark.createDataFrame(pa.Table.from_pylist(rows, schema=_CASES))
    with with_progress(spark, total=len(cases)):
        caught = plan.repartition(tasks).mapInArrow(run, from_arrow_schema(_CATCHES)).toArrow()
    return [CaseSearch(**row) for row in caught.to_pylist()]


def _case(text: str) -> Case:
    fields = json.loads(text)
    return Case(**{**fields, "assignors": tuple(fields["assignors"])})
