"""Show the progress of a study on standard error: a bar, or one line per minute in a log."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kassay.experiments.spark.code_distribution import uses_connect

_POLL_SECONDS = 0.5
_LOG_SECONDS = 60.0


@dataclass(slots=True)
class ProgressReporter:
    """Progress of a study. ``concurrent`` is the number of groups in running batches."""

    total: int
    done: int
    concurrent: int

    def advance(self, groups: int) -> None:
        """Add the groups of a finished batch."""
        self.done += groups


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.0f}/s")


@contextmanager
def with_progress(
    spark: SparkSession, *, total: int, done: int = 0, concurrent: int = 0
) -> Iterator[ProgressReporter]:
    """Show the progress of a study while the block runs."""
    progress = ProgressReporter(total, done, concurrent)
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("groups"),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        speed_estimate_period=120.0,
    )
    ended = threading.Event()
    with bar:
        task = bar.add_task("studying", total=total, completed=done)

        def poll() -> None:
            last_line = time.monotonic()
            while not ended.wait(_POLL_SECONDS):
                bar.update(task, completed=_estimate(spark, progress))
                if bar.disable and time.monotonic() - last_line > _LOG_SECONDS:
                    last_line = time.monotonic()
                    console.print(f"studying: {_line(bar.tasks[0])}", highlight=False)

        poller = threading.Thread(target=poll, daemon=True)
        poller.start()
        try:
            yield progress
            bar.update(task, completed=progress.done)
        finally:
            ended.set()
            poller.join()


def _line(task: Task) -> str:
    counts = f"{task.completed:,.0f} of {task.total:,.0f} groups"
    if task.speed is None or task.time_remaining is None:
        return counts
    remaining = timedelta(seconds=round(task.time_remaining))
    return f"{counts}, {task.speed:.1f} per second, {remaining} left"


def _estimate(spark: SparkSession, progress: ProgressReporter) -> float:
    """Estimate the number of evaluated groups from the finished tasks of running batches."""
    finished = tasks = 0
    if uses_connect(spark):
        return progress.done
    tracker = spark.sparkContext.statusTracker()
    for stage_id in tracker.getActiveStageIds():
        stage = tracker.getStageInfo(stage_id)
        if stage is not None:
            finished += stage.numCompletedTasks
            tasks += stage.numTasks
    running = min(progress.concurrent, progress.total - progress.done)
    return progress.done + (running * finished / tasks if tasks else 0)
