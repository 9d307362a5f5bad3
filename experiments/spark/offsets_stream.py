"""Spark streaming source that reads the topic ``__consumer_offsets`` of a cluster."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kassay.experiments.history.live_topic import OffsetsReader
from kassay.experiments.spark.arrow_map import record_batches
from kassay.experiments.spark.history_schemas import RAW

_ROWS_PER_BATCH = 8192


def stream_cluster(
    spark: SparkSession, settings: Mapping[str, str], *, timeout: float, tasks: int
) -> DataFrame:
    """Read raw records of ``__consumer_offsets`` from a cluster as an endless stream.

    Each task reads some partitions with a consumer that joins no group and commits nothing.
    The settings are librdkafka properties; the timeout is in seconds per answer.
    """
    spark.dataSource.register(_OffsetsSource)
    options = {"secret": json.dumps(dict(settings)), "timeout": str(timeout), "tasks": str(tasks)}
    return spark.readStream.format(_OffsetsSource.name()).options(**options).load()


@dataclass(frozen=True)
class _Ranges(InputPartition):
    """Range of offsets to read in each topic partition, for one Spark task."""

    offsets: tuple[tuple[int, int, int], ...]  # partition, first offset, end


class _OffsetsSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kassay-offsets"

    def schema(self) -> StructType:
        return from_arrow_schema(RAW)

    def streamReader(self, schema: StructType) -> "_StreamReader":  # noqa: ARG002, N802
        return _StreamReader(dict(self.options))


class _StreamReader(DataSourceStreamReader):
    """Stream reader that stores the next offset of each partition in Spark's checkpoint.

    The checkpoint contains ``{partition: next offset}``.
    """

    def __init__(self, options: dict[str, str]) -> None:
        self._settings = json.loads(options["secret"])
        self._timeout, self._tasks = float(options["timeout"]), int(options["tasks"])

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {str(number): 0 for number in self._reader().partitions()}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: ARG002, N802
        return {str(number): end for number, end in self._reader().ends().items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        ranges = [(int(n), start.get(n, 0), end[n]) for n in end if start.get(n, 0) < end[n]]
        slices = (tuple(ranges[task :: self._tasks]) for task in range(self._tasks))
        return [_Ranges(offsets) for offsets in slices if offsets]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        offsets = partition.offsets  # type: ignore[attr-defined]
        ranges = {number: (first, end) for number, first, end in offsets}
        rows = self._reader().read(list(ranges), ranges)
        yield from record_batches(rows, RAW, size=_ROWS_PER_BATCH)

    def _reader(self) -> OffsetsReader:
        return OffsetsReader(self._settings, timeout=self._timeout)
