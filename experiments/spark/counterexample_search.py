"""Search many cases for counterexamples, on Spark."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict

from pyspark.sql import SparkSession

from kassay.experiments.counterexamples.find_counterexample import (
    CaseSearch,
    CounterexampleOptions,
    find_counterexample,
)
from kassay.experiments.spark.jobs import CaseCounts, map_rows, with_progress
from kassay.experiments.spark.session import cores_of
from kassay.experiments.study.cases import Cases, case_index
from kassay.experiments.study.tables import schema_of

_MAX_JOBS = 200
_MIN_CASES = 10
_RESULTS = schema_of(CaseSearch)


def search_cases(
    spark: SparkSession, cases: Cases, options: CounterexampleOptions, *, tasks: int | None = None
) -> Iterator[CaseSearch]:
    """Search every case for counterexamples, and yield results as Spark jobs finish.

    Each task is a job of its own, and several jobs run at a time, because a job returns its
    rows only when all its tasks have ended. The workers derive each case from its number.
    """
    total = len(cases)
    size = max(1, -(-total // tasks)) if tasks else max(_MIN_CASES, -(-total // _MAX_JOBS))

    def job(first: int) -> list[CaseSearch]:
        rows = map_rows(
            spark.range(first, min(total, first + size), 1, 1),
            lambda rows: (
                asdict(find_counterexample(cases[case_index(row["id"], total)], options))
                for row in rows
            ),
            _RESULTS,
        ).collect()
        return [CaseSearch(**row.asDict()) for row in rows]

    counts = CaseCounts(total)
    with with_progress(spark, counts), ThreadPoolExecutor(cores_of(spark) + 1) as pool:
        running = [pool.submit(job, first) for first in range(0, total, size)]
        try:
            for done in as_completed(running):
                found = done.result()
                counts.finished += len(found)
                yield from found
        finally:
            for future in running:
                future.cancel()
