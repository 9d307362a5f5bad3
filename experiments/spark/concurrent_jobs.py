"""Run Spark jobs of one session at the same time."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

from pyspark.sql import SparkSession


def run_concurrently(spark: SparkSession, calls: Iterable[Callable[[], object]], most: int) -> None:
    """Run functions that start Spark jobs, ``most`` at the same time, until all have ended.

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
