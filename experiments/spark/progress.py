"""How far a study has come, on standard error: a bar, or a line a minute in a log."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
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

_SECONDS = 0.5
_LINE_SECONDS = 60.0


class ProgressReporter:
    """Counts groups.

    Parameters
    ----------
    total
        Groups of the study.
    done
        Groups that an earlier run did.
    wave
        Groups that run together.
    """

    def __init__(self, total: int, done: int, wave: int = 0) -> None:
        self.total = total
        self.before = done
        self.wave = wave
        self.done = done
        self._start = time.monotonic()

    def advance(self, groups: int) -> None:
        """Count a wave that was kept."""
        self.done += groups

    def line(self) -> str:
        """Say it in one line: how far, how fast, how long to go.

        Examples
        --------
        >>> ProgressReporter(1000, 400).line()
        '400 of 1,000 groups'
        """
        counts = f"{self.done:,} of {self.total:,} groups"
        spent = time.monotonic() - self._start
        fresh = self.done - self.before
        if not fresh or not spent:
            return counts
        left = timedelta(seconds=round((self.total - self.done) * spent / fresh))
        return f"{counts}, {fresh / spent:.1f} a second, {left} left"


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.0f}/s")


@contextmanager
def with_progress(
    spark: SparkSession, *, total: int, done: int = 0, wave: int = 0
) -> Iterator[ProgressReporter]:
    """Show how far a study has come while a block runs.

    Between waves Spark tells finished tasks, so the bar advances by a task's share.
    """
    watch = ProgressReporter(total, done, wave)
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
            spoken = time.monotonic()
            while not ended.wait(_SECONDS):
                bar.update(task, completed=_estimate(spark, watch))
                if bar.disable and time.monotonic() - spoken > _LINE_SECONDS:
                    spoken = time.monotonic()
                    console.print(f"studying: {watch.line()}", highlight=False)

        watcher = threading.Thread(target=poll, daemon=True)
        watcher.start()
        try:
            yield watch
            bar.update(task, completed=watch.done)
        finally:
            ended.set()
            watcher.join()


def _estimate(spark: SparkSession, watch: ProgressReporter) -> float:
    """Guess how many groups are done, those of unfinished waves included."""
    finished = known = 0
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return watch.done
    tracker = spark.sparkContext.statusTracker()
    for stage_id in tracker.getActiveStageIds():
        stage = tracker.getStageInfo(stage_id)
        if stage is not None:
            finished += stage.numCompletedTasks
            known += stage.numTasks
    running = min(watch.wave, watch.total - watch.done)
    return watch.done + (running * finished / known if known else 0)
