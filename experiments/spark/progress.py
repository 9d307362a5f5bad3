"""Show the progress of a study on the terminal, by its finished Spark tasks."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.text import Text

from kassay.experiments.spark.session import uses_connect

_POLL_SECONDS = 0.5
_LOG_SECONDS = 60.0


@dataclass(slots=True)
class CaseCounts:
    """Numbers of all cases, of finished cases, and of cases in running batches."""

    total: int
    finished: int = 0
    running: int = 0


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.0f}/s")


@contextmanager
def with_progress(spark: SparkSession, counts: CaseCounts) -> Iterator[None]:
    """Print the progress of a study during a ``with`` block that updates ``counts``."""
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
    finished = tasks = 0
    if not uses_connect(spark):
        tracker = spark.sparkContext.statusTracker()
        for stage_id in tracker.getActiveStageIds():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                finished += stage.numCompletedTasks
                tasks += stage.numTasks
    return counts.finished + (counts.running * finished / tasks if tasks else 0)
