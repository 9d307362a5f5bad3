"""Apply Python functions to Spark DataFrames by way of Arrow record batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
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
