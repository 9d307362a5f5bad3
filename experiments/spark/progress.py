"""A progress bar on standard error, fed by Spark's status tracker."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_JOB = "kassay-study"
_SECONDS = 0.25


@contextmanager
def watched(spark: SparkSession, *, total: int) -> Iterator[None]:
    """Show how far the Spark jobs of a block have come, as groups out of ``total``.

    Spark tells finished tasks, so the bar advances by a task's share of the groups.
    """
    context = spark.sparkContext
    context.setJobGroup(_JOB, "study")
    done = threading.Event()
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("groups"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    task = bar.add_task("studying", total=total)

    def poll() -> None:
        while not done.wait(_SECONDS):
            bar.update(task, completed=int(_finished_share(spark) * total))

    watcher = threading.Thread(target=poll, daemon=True)
    with bar:
        watcher.start()
        try:
            yield
            bar.update(task, completed=total)
        finally:
            done.set()
            watcher.join()


def _finished_share(spark: SparkSession) -> float:
    """Return the share of tasks finished, of all stages that run Python."""
    tracker = spark.sparkContext.statusTracker()
    finished = known = 0
    for job in tracker.getJobIdsForGroup(_JOB):
        info = tracker.getJobInfo(job)
        for stage_id in info.stageIds if info else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                finished += stage.numCompletedTasks
                known += stage.numTasks
    return finished / known if known else 0.0
