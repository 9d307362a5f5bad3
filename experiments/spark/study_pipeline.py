"""The sweep: cases out to the workers, rows back, wave after wave onto disk."""

import gc
import hashlib
import json
import pickle
import re
import sys
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
from kassay.experiments.spark.code_distribution import (
    WorkerMismatchError,
    check_identity,
    code_identity,
)
from kassay.experiments.spark.committed_batches import (
    CommittedBatches,
    completed_manifest,
    directory_lock,
)
from kassay.experiments.spark.progress import ProgressReporter, with_progress
from kassay.experiments.spark.table_schemas import (
    PLACE,
    RECORDS,
    SEALED,
    TABLES,
    opened,
    record_row,
    sealed,
    table_of,
)
from kassay.experiments.study.batches import BATCH_CASES, BatchedCase, batches_of, tasks_of
from kassay.experiments.study.case import Case
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.isolation import Judge, memory_limit, run_isolated, watchdog
from kassay.experiments.study.table_rows import CaseRecord
from kassay.reference.model.errors import InputError

_BATCH = 64
_AT_ONCE = 2  # waves: while the last tasks of one run, the next keeps the others busy
_spared = {"modules": 0}  # of this process
_MISMATCH = re.compile(rf"{WorkerMismatchError.__name__}: ([^\n]*)")


def evaluate_cases(
    spark: SparkSession,
    cases: Sequence[Case],
    *,
    tasks: int | None = None,
    limits: CaseLimits = LIMITS,
    judge: Judge | None = None,
    drawn: int | None = None,
) -> pa.Table:
    """Study every case: one row of `RECORDS` a case, in no particular order.

    Parameters
    ----------
    spark
        The session.
    cases
        What to study. They travel as names and seeds, and groups are built on the
        workers; only imported groups travel as documents.
    tasks
        Over how many Spark tasks to spread them; by default so many that each lasts
        about a second. The rows do not depend on it.
    limits
        What each search may use up. Every search runs on one thread.
    judge
        What to do with a case: a function that workers can import, or that pickles.
        By default `evaluate_case` within the limits.
    drawn
        Only groups of seeds below this are kept whole; None for all.
    """
    judge = judge or partial(_judge, limits=limits, drawn=drawn)
    packed = [pickle.dumps(task) for task in tasks_of(cases, tasks=tasks)]
    expected = code_identity()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        check_identity(expected)
        context = TaskContext.get()
        again = context is not None and context.attemptNumber() > 0
        for batch in batches:
            for index in batch.column(0).to_pylist():
                task = pickle.loads(packed[index])  # noqa: S301
                yield from map(sealed, _studied(task, judge, limits, again=again))
        _spare_collector()

    plan = spark.range(0, len(packed), 1, max(1, len(packed)))
    return opened(plan.mapInArrow(run, from_arrow_schema(SEALED)).toArrow())


def _spare_collector() -> None:
    """Keep what modules hold from the collector, which Spark's workers call after each task.

    Going through all of it would take a quarter of a study's time.
    """
    if len(sys.modules) > _spared["modules"]:
        _spared["modules"] = len(sys.modules)
        gc.collect()
        gc.freeze()


def _judge(case: Case, *, limits: CaseLimits, drawn: int | None) -> CaseRecord:
    return evaluate_case(case, limits=limits, drawn=drawn is None or case.seed < drawn)


def _studied(
    task: Sequence[BatchedCase], judge: Judge, limits: CaseLimits, *, again: bool
) -> Iterator[pa.RecordBatch]:
    """Study a task; where its process died at it before, each group in one of its own."""
    rows: list[dict[str, object]] = []
    with memory_limit(limits.memory), watchdog() as wind:
        for placed in task:
            if again:
                record = run_isolated(judge, placed.case, limits=limits)
            else:
                wind(limits.group)
                record = judge(placed.case)
            rows.append({PLACE: placed.place, **record_row(record)})
            if len(rows) == _BATCH:
                yield pa.RecordBatch.from_pylist(rows, schema=RECORDS)
                rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=RECORDS)


def write_study(
    spark: SparkSession,
    cases: Sequence[Case],
    directory: Path,
    *,
    manifest: Callable[[dict[str, int]], Mapping[str, object]],
    tasks: int | None = None,
    wave: int = BATCH_CASES,
    limits: CaseLimits = LIMITS,
    judge: Judge | None = None,
    drawn: int | None = None,
) -> Mapping[str, object]:
    """Run a study and write its tables and manifest into a directory.

    The study is cut into waves. Each is kept as soon as it is done, so that a run that was
    killed goes on where it was; the tables are the same as if it had not been. What was
    there of another study is replaced once everything has been computed. The manifest goes
    first and comes last, so that a directory with a manifest is complete.

    Parameters
    ----------
    spark, cases, tasks, limits, judge, drawn
        As in `evaluate_cases`.
    directory
        Where to. It must be the driver's; the workers need not see it.
    manifest
        Makes the manifest of the numbers of rows.
    wave
        Cases a wave.

    Returns
    -------
    Mapping
        The manifest; that of the earlier run, if the directory held this study already.

    Raises
    ------
    InvalidGroupError
        If another run is at work in the directory, or workers run other code.
    """
    with directory_lock(directory):
        digest = study_digest(cases, wave=wave, limits=limits, drawn=drawn)
        before = completed_manifest(directory, digest)
        if before is not None:
            return before
        parts = CommittedBatches(directory, digest)
        waves = batches_of(cases, wave=wave)
        missing = {index: cut for index, cut in enumerate(waves) if not parts.has(index)}
        left = sum(map(len, missing.values()))

        def run(index: int) -> tuple[int, pa.Table]:
            cut = missing[index]
            return index, evaluate_cases(
                spark, cut, tasks=tasks, limits=limits, judge=judge, drawn=drawn
            )

        with with_progress(
            spark, total=len(cases), done=len(cases) - left, wave=_AT_ONCE * wave
        ) as watch:
            _run_all(run, missing, parts, watch)
        document = {**manifest(parts.publish(len(waves), TABLES)), "digest": digest}
        parts.finish(document)
        return document


def _run_all(
    run: Callable[[int], tuple[int, pa.Table]],
    missing: Mapping[int, Sequence[Case]],
    parts: CommittedBatches,
    watch: ProgressReporter,
) -> None:
    """Run the missing waves, a few at once, and keep each as it comes."""
    waiting = list(missing)[::-1]
    running: set[Future[tuple[int, pa.Table]]] = set()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while waiting or running:
            while waiting and len(running) < _AT_ONCE:
                running.add(pool.submit(run, waiting.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                index, records = _result(future)
                records = records.sort_by(PLACE)
                if records.num_rows != len(missing[index]):
                    raise InputError(
                        f"wave {index}: {records.num_rows} records of {len(missing[index])} groups"
                    )
                parts.keep(index, {name: table_of(records, name) for name in TABLES})
                watch.advance(len(missing[index]))


def _result(future: Future[tuple[int, pa.Table]]) -> tuple[int, pa.Table]:
    try:
        return future.result()
    except PySparkException as error:
        found = _MISMATCH.search(str(error))
        if found is None:
            raise
        raise InputError(found[1]) from None


def study_digest(
    cases: Sequence[Case], *, wave: int, limits: CaseLimits, drawn: int | None = None
) -> str:
    """Tell studies apart: what is studied, how it is cut, and by which code."""
    digest = hashlib.sha256(json.dumps([code_identity(), wave, drawn, repr(limits)]).encode())
    for case in cases:
        digest.update(repr(case).encode())
    return digest.hexdigest()
