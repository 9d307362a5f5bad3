"""Search many cases for counterexamples, on Spark."""

from collections.abc import Iterator
from dataclasses import asdict

from pyspark import StorageLevel
from pyspark.sql import SparkSession

from kassay.experiments.counterexamples.search import CaseSearch, search_case
from kassay.experiments.counterexamples.shortcomings import SearchOptions
from kassay.experiments.spark.arrow_map import map_rows
from kassay.experiments.spark.progress import CaseCounts, with_progress
from kassay.experiments.spark.study_schemas import schema_of
from kassay.experiments.study.batches import case_index
from kassay.experiments.study.case import Cases

CASES_PER_TASK = 50
_RESULTS = schema_of(CaseSearch)


def search_cases(
    spark: SparkSession, cases: Cases, options: SearchOptions, *, tasks: int | None = None
) -> Iterator[CaseSearch]:
    """Search every case; yield one result per case, in no particular order.

    The workers derive each case from its number and keep the results on disk.
    """
    total = len(cases)
    tasks = tasks or max(1, -(-total // CASES_PER_TASK))
    results = map_rows(
        spark.range(0, total, 1, tasks),
        lambda rows: (
            asdict(search_case(cases[case_index(row["id"], total)], options)) for row in rows
        ),
        _RESULTS,
    ).persist(StorageLevel.DISK_ONLY)
    with with_progress(spark, CaseCounts(total, running=total)):
        results.count()
    for row in results.toLocalIterator():
        yield CaseSearch(**row.asDict())
    results.unpersist()
