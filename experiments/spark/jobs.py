"""Helpers for Spark jobs: map Python functions, read queries, and show progress."""

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.text import Text

from kassay.experiments.spark.session import uses_connect

Row = Mapping[str, Any]


def record_batches(
    rows: Iterable[Row], schema: pa.Schema, *, size: int
) -> Iterator[pa.RecordBatch]:
    """Convert dictionaries of column values to Arrow record batches of at most ``size`` rows."""
    remaining = iter(rows)
    while batch := list(islice(remaining, size)):
        yield pa.RecordBatch.from_pylist(batch, schema=schema)


def map_batches(
    frame: DataFrame,
    function: Callable[[Iterator[pa.RecordBatch]], Iterable[Row]],
    schema: pa.Schema,
    *,
    size: int = 512,
) -> DataFrame:
    """Call a function once per Spark task, with all Arrow record batches of the task."""
    return frame.mapInArrow(
        lambda batches: record_batches(function(batches), schema, size=size),
        from_arrow_schema(schema),
    )


def map_rows(
    frame: DataFrame,
    function: Callable[[Iterator[Row]], Iterable[Row]],
    schema: pa.Schema,
    *,
    size: int = 512,
) -> DataFrame:
    """Call a function once per Spark task, with all rows of the task."""
    return map_batches(
        frame,
        lambda batches: function(row for batch in batches for row in batch.to_pylist()),
        schema,
        size=size,
    )


def queries_of(file: str) -> dict[str, str]:
    """Read the queries of an SQL file of this package, by the names in its comments."""
    # On Spark workers, this package is in an archive.
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    _, *parts = re.split(r"^-- (\w+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def run_concurrently(spark: SparkSession, calls: Iterable[Callable[[], object]], most: int) -> None:
    """Run functions that start Spark jobs, at most ``most`` at the same time.

    After an exception or Ctrl-C, no further function starts, and the running jobs are stopped.
    """
    with ThreadPoolExecutor(most) as pool:
        futures = [pool.submit(call) for call in calls]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            started = [future for future in futures if not future.cancelled()]
            unfinished = True
            while unfinished:
                with suppress(Exception):  # the Java process may be dead
                    spark.interruptAll()
                # A function may start its job after the interruption.
                unfinished = bool(wait(started, timeout=1).not_done)
            raise


_POLL_SECONDS = 0.5
_LOG_SECONDS = 60.0


@dataclass(slots=True)
class CaseCounts:
    """Number of all cases, of those in finished batches, and of those in running batches."""

    total: int
    finished: int = 0
    running: int = 0


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.0f}/s")


@contextmanager
def with_progress(spark: SparkSession, counts: CaseCounts) -> Iterator[None]:
    """Print the progress of a study while a ``with`` block runs and updates ``counts``."""
    console = Console(stderr=True)
    bar = Progress(
        *Progress.get_default_columns(),
        *(MofNCompleteColumn(), _Rate(), TimeElapsedColumn()),
        console=console,
        disable=not console.is_terminal,
        speed_estimate_period=120.0,
    )
    ended = threading.Event()

    def poll() -> None:
        last_line = time.monotonic()
        while not ended.wait(_POLL_SECONDS):
            with suppress(Exception):  # the driver reports a dead Java process
                bar.update(task, completed=max(bar.tasks[0].completed, _estimate(spark, counts)))
            if bar.disable and time.monotonic() - last_line > _LOG_SECONDS:
                last_line = time.monotonic()
                done = f"{bar.tasks[0].completed:,.0f} of {counts.total:,} groups"
                console.print(f"studying: {done}", highlight=False)

    with bar:
        task = bar.add_task("studying", total=counts.total, completed=counts.finished)
        poller = threading.Thread(target=poll, daemon=True)
        poller.start()
        try:
            yield
        finally:
            ended.set()
            poller.join()
            bar.update(task, completed=counts.finished)


def _estimate(spark: SparkSession, counts: CaseCounts) -> float:
    """Estimate the number of evaluated cases from the finished Spark tasks."""
    finished = tasks = 0
    if not uses_connect(spark):
        tracker = spark.sparkContext.statusTracker()
        for stage_id in tracker.getActiveStageIds():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                finished += stage.numCompletedTasks
                tasks += stage.numTasks
    return counts.finished + (counts.running * finished / tasks if tasks else 0)
