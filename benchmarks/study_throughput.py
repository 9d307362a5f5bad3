"""Throughput of a study on Spark, compared with a pool of processes."""

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.pool import Pool
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from benchmarks.memory import cpu_seconds
from benchmarks.timing import KASSAY, Timing, best_seconds
from kassay.experiments.spark.session import PARQUET_OPTIONS, spark_session
from kassay.experiments.spark.study_pipeline import evaluate_cases
from kassay.experiments.study.cases import Batch, Case, Cases, family_cases
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.schemas import case_row

GROUPS = 4_000
PROCESSES = 2
_FAMILY = "overlap-random"
_ASSIGNORS = ("sticky", "cooperative-sticky", "uniform")
_POOL = "multiprocessing"
_CHUNK = 24
_ROUNDS = 5


def throughput() -> Iterator[Timing]:
    """Time a study of small groups on Spark and with `multiprocessing`, with two processes each.

    Both are warmed up. Spark writes the rows, and the pool returns them. They alternate,
    because the speed of a machine varies; the share is the median over the rounds. The share by
    CPU time depends less on the load of the machine.
    """
    cases = family_cases({_FAMILY: GROUPS}, assignors=_ASSIGNORS)
    # The pool starts first: a process with threads should not fork.
    with (
        multiprocessing.get_context("spawn").Pool(PROCESSES) as pool,
        spark_session(master=f"local[{PROCESSES}]") as spark,
    ):
        implementations = {
            _POOL: partial(_evaluate_in_pool, pool, list(cases)),
            KASSAY: partial(_evaluate_on_spark, spark, cases),
        }
        rounds = [
            {name: _measured(evaluate) for name, evaluate in implementations.items()}
            for _ in range(1 + _ROUNDS)
        ][1:]  # the first round is the warm-up
    share, cpu_share = (
        median(times[_POOL][kind] / times[KASSAY][kind] for times in rounds) for kind in (0, 1)
    )
    for name in (KASSAY, _POOL):
        best = min(times[name][0] for times in rounds)
        cpu = median(times[name][1] for times in rounds)
        note = f"{GROUPS / best:.0f} groups per second, {1e3 * cpu / GROUPS:.2f} ms CPU per group"
        if name == KASSAY:
            note += f", {share:.0%} of {_POOL}, {cpu_share:.0%} by CPU time"
        yield Timing(
            benchmark="throughput",
            case=f"{GROUPS:,} groups of {_FAMILY}, {PROCESSES} processes",
            implementation=name,
            seconds=best,
            note=note,
        )


def _measured(evaluate: Callable[[], object]) -> tuple[float, float]:
    """Call a function; return the wall-clock seconds and the CPU seconds of all processes."""
    before = cpu_seconds()
    seconds = best_seconds(evaluate, repetitions=1, clock=time.perf_counter)
    after = cpu_seconds()  # idle workers of Spark may have ended
    return seconds, sum(time - before.get(process, 0) for process, time in after.items())


def _evaluate_on_spark(spark: SparkSession, cases: Cases) -> None:
    frame = evaluate_cases(spark, cases, Batch(0, 0, len(cases)))
    with tempfile.TemporaryDirectory() as directory:
        frame.repartition(1).write.options(**PARQUET_OPTIONS).mode("overwrite").parquet(
            Path(directory).as_uri()
        )


def _evaluate_in_pool(pool: Pool, cases: Sequence[Case]) -> None:
    pool.map(_evaluate, cases, chunksize=_CHUNK)


def _evaluate(case: Case) -> object:
    return case_row(evaluate_case(case), position=0, study="")
