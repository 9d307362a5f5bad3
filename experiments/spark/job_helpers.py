"""Helpers for Spark jobs: map Python functions, read queries, run jobs concurrently."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from importlib.resources import files
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

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
    """Read the queries of an SQL file by name. The names are in comments of the file."""
    # On Spark workers, this package is in an archive.
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    _, *parts = re.split(r"^-- (\w+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def run_concurrently(spark: SparkSession, calls: Iterable[Callable[[], object]], most: int) -> None:
    """Run functions that start Spark jobs, at most ``most`` at the same time.

    After an exception or Ctrl-C, no further function starts, and running jobs are stopped.
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
