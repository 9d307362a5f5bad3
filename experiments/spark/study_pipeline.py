"""Evaluate the cases of a study on Spark, and write its tables batch by batch."""

import hashlib
import json
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kassay.experiments.compare import LIMITS, CaseLimits
from kassay.experiments.spark.arrow_map import record_batches
from kassay.experiments.spark.code_distribution import (
    WorkerMismatchError,
    check_identity,
    code_identity,
)
from kassay.experiments.spark.output_directory import (
    CommittedBatches,
    completed_manifest,
    directory_lock,
)
from kassay.experiments.spark.progress import ProgressReporter, with_progress
from kassay.experiments.spark.study_schemas import PLACE, RECORDS, TABLES, record_row, table_of
from kassay.experiments.study.case import BATCH_CASES, BatchedCase, Case, batches_of, tasks_of
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.isolation import Evaluator, memory_limit, run_isolated, watchdog
from kassay.experiments.study.table_rows import CaseRecord
from kassay.reference.model.errors import RunError

_ROWS_PER_BATCH = 64
_CONCURRENT_BATCHES = 2  # the next batch keeps cores busy during the last tasks of a batch
_MISMATCH = re.compile(rf"{WorkerMismatchError.__name__}: ([^\n]*)")


def evaluate_cases(
    spark: SparkSession,
    cases: Sequence[Case],
    *,
    tasks: int | None = None,
    limits: CaseLimits = LIMITS,
    judge: Evaluator | None = None,
    drawn: int | None = None,
) -> pa.Table:
    """Evaluate every case: one row of `RECORDS` per case, in no particular order.

    Cases are sent to the workers as names and seeds, and the workers build the groups. The
    rows do not depend on the number of Spark tasks; the default gives 25 cases per task. The
    judge evaluates a case; it must be possible to pickle it. Documents are stored only for
    groups with smaller seeds than ``drawn``, or for all.
    """
    judge = judge or partial(_evaluate, limits=limits, drawn=drawn)
    packed = [pickle.dumps(task) for task in tasks_of(cases, tasks=tasks)]
    expected = code_identity()

    def evaluate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        check_identity(expected)
        context = TaskContext.get()
        retry = context is not None and context.attemptNumber() > 0
        for batch in batches:
            for index in batch.column(0).to_pylist():
                task = pickle.loads(packed[index])  # noqa: S301
                rows = _evaluate_task(task, judge, limits, retry=retry)
                yield from record_batches(rows, RECORDS, size=_ROWS_PER_BATCH)

    plan = spark.range(0, len(packed), 1, max(1, len(packed)))
    return plan.mapInArrow(evaluate, from_arrow_schema(RECORDS)).toArrow()


def _evaluate(case: Case, *, limits: CaseLimits, drawn: int | None) -> CaseRecord:
    return evaluate_case(case, limits=limits, drawn=drawn is None or case.seed < drawn)


def _evaluate_task(
    task: Sequence[BatchedCase], judge: Evaluator, limits: CaseLimits, *, retry: bool
) -> Iterator[dict[str, object]]:
    """Evaluate the cases of a task. In a retry, each case runs in its own process."""
    with memory_limit(limits.memory), watchdog() as start_timer:
        for batched in task:
            if retry:
                record = run_isolated(judge, batched.case, limits=limits)
            else:
                start_timer(limits.group)
                record = judge(batched.case)
            yield {PLACE: batched.place, **record_row(record)}


def write_study(
    spark: SparkSession,
    cases: Sequence[Case],
    directory: Path,
    *,
    manifest: Callable[[dict[str, int]], Mapping[str, object]],
    tasks: int | None = None,
    wave: int = BATCH_CASES,
    limits: CaseLimits = LIMITS,
    judge: Evaluator | None = None,
    drawn: int | None = None,
) -> Mapping[str, object]:
    """Run a study, write its tables and manifest into a directory, and return the manifest.

    Each finished batch is committed, so an interrupted study can be resumed with the same
    tables. The manifest is deleted first and written last: it marks complete tables. The
    function ``manifest`` builds it from the number of rows per table. A directory that already
    contains this study keeps its manifest. Only the driver needs access to the directory.
    ``wave`` is the number of cases per batch; for other parameters see `evaluate_cases`.
    """
    with directory_lock(directory):
        digest = study_digest(cases, wave=wave, limits=limits, drawn=drawn)
        earlier = completed_manifest(directory, digest)
        if earlier is not None:
            return earlier
        committed = CommittedBatches(directory, digest)
        batches = batches_of(cases, wave=wave)
        missing = {i: batch for i, batch in enumerate(batches) if not committed.contains(i)}

        def run(index: int) -> pa.Table:
            return evaluate_cases(
                spark, missing[index], tasks=tasks, limits=limits, judge=judge, drawn=drawn
            )

        with with_progress(
            spark,
            total=len(cases),
            done=len(cases) - sum(map(len, missing.values())),
            concurrent=_CONCURRENT_BATCHES * wave,
        ) as progress:
            _run_batches(run, missing, committed, progress)
        document = {**manifest(committed.publish(len(batches), TABLES)), "digest": digest}
        committed.finish(document)
        return document


def _run_batches(
    run: Callable[[int], pa.Table],
    missing: Mapping[int, Sequence[Case]],
    committed: CommittedBatches,
    progress: ProgressReporter,
) -> None:
    """Run the missing batches, a few at the same time, and commit each when it is finished."""
    waiting = list(missing)[::-1]
    running: dict[Future[pa.Table], int] = {}
    with ThreadPoolExecutor(_CONCURRENT_BATCHES) as pool:
        while waiting or running:
            while waiting and len(running) < _CONCURRENT_BATCHES:
                index = waiting.pop()
                running[pool.submit(run, index)] = index
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                index = running.pop(future)
                records, expected = _records(future), len(missing[index])
                if records.num_rows != expected:
                    message = f"batch {index}: {records.num_rows} records for {expected} groups"
                    raise RunError(message)
                records = records.sort_by(PLACE)
                committed.commit(index, {name: table_of(records, name) for name in TABLES})
                progress.advance(expected)


def _records(future: Future[pa.Table]) -> pa.Table:
    try:
        return future.result()
    except PySparkException as error:
        mismatch = _MISMATCH.search(str(error))
        if mismatch is None:
            raise
        raise RunError(mismatch[1]) from None


def study_digest(
    cases: Sequence[Case], *, wave: int, limits: CaseLimits, drawn: int | None = None
) -> str:
    """Return a digest of the cases, their batches, the limits and the code."""
    digest = hashlib.sha256(json.dumps([code_identity(), wave, drawn, repr(limits)]).encode())
    for case in cases:
        digest.update(repr(case).encode())
    return digest.hexdigest()
