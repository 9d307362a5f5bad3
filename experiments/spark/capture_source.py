"""Spark data source ``kassay``: read captures as a DataFrame of consumer groups."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kassay.experiments.sources.capture_files import ImportedGroup, import_groups, load_metadata
from kassay.experiments.sources.import_options import ImportOptions
from kassay.experiments.study.tables import schema_of
from kassay.reference.documents.input_files import is_capture
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.errors import InputError
from kassay.reference.model.group_remarks import AssumedSubscriptions

NAME = "kassay"
_CAPTURES_PER_TASK = 64


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """Row for one group of a capture: the imported group, or the import error."""

    capture: str
    id: str | None
    members: int | None
    partitions: int | None
    document: str | None
    skipped: str | None
    error: str | None


GROUPS = schema_of(CaptureRow)


class CaptureDataSource(DataSource):
    """Spark data source that imports all captures in a directory.

    Each file of the directory is one capture. Each subdirectory is also read as one capture;
    its files are from the same moment. A capture that cannot be read becomes a row with an error.

    The options are ``path`` and those of `kassay import`: ``metadata``, a file with partition
    counts; ``subscriptions``, ``assigned`` or ``equal``; ``weights``, ``lag`` or ``none``: 1, also
    if the source has weights; ``missing_lag``. By default, weights are those of the group
    documents. ``captures_per_task`` is the number of captures that a task reads.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format name of the data source, for `spark.read.format`."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the DataFrame, as a Spark schema."""
        return from_arrow_schema(GROUPS)

    def reader(self, schema: StructType) -> "CaptureReader":  # noqa: ARG002
        """Return a reader with the options of this data source."""
        return CaptureReader(dict(self.options))


class CaptureReader(DataSourceReader):
    """Reader that divides the captures of a directory among Spark tasks."""

    def __init__(self, options: dict[str, str]) -> None:
        if "path" not in options:
            raise InputError("no path is given; load a directory of captures")
        self._root = Path(options["path"].removeprefix("file://"))
        self._captures_per_task = int(options.get("captures_per_task", _CAPTURES_PER_TASK))
        self._options = _import_options(options)

    def partitions(self) -> list[InputPartition]:
        """Divide the captures into slices, one slice per Spark task."""
        captures = [str(path) for path in _list_captures(self._root)]
        return [
            InputPartition(captures[first : first + self._captures_per_task])
            for first in range(0, len(captures), self._captures_per_task)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Import the captures of one Spark task. Yield one record batch per capture."""
        for path in partition.value:
            rows = [asdict(row) for row in _capture_rows(Path(path), self._options)]
            yield pa.RecordBatch.from_pylist(rows, schema=GROUPS)


def register(spark: SparkSession) -> None:
    """Register the data source ``kassay`` in a Spark session."""
    spark.dataSource.register(CaptureDataSource)


def _list_captures(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise InputError(f"{root}: no such file or directory")
    return sorted(path for path in root.iterdir() if path.is_dir() or is_capture(path))


def _capture_rows(path: Path, options: ImportOptions) -> Iterator[CaptureRow]:
    try:
        for imported in import_groups([path], options):
            yield _row(path, imported)
    except Exception as error:  # noqa: BLE001 - other captures must still be read
        yield _row(path, ImportedGroup(None, error=f"{path}: {type(error).__name__}: {error}"))


def _row(path: Path, imported: ImportedGroup) -> CaptureRow:
    group = imported.group
    return CaptureRow(
        capture=str(path),
        id=imported.id,
        members=None if group is None else len(group.members),
        partitions=None if group is None else group.partition_count,
        document=None if group is None else json.dumps(group_document(group), ensure_ascii=False),
        skipped=imported.skipped,
        error=imported.error,
    )


def _import_options(options: dict[str, str]) -> ImportOptions:
    metadata, missing_lag = options.get("metadata"), options.get("missing_lag")
    assumed = options.get("subscriptions")
    known = load_metadata(None if metadata is None else Path(metadata))
    try:
        return ImportOptions(
            assumed_subscriptions=None if assumed is None else AssumedSubscriptions(assumed),
            partition_counts=known.partition_counts,
            minimum_counts=known.minimum_counts,
            missing_lag=None if missing_lag is None else int(missing_lag),
        ).with_named_weights(options.get("weights"))
    except ValueError as error:
        raise InputError(f"invalid option of the format {NAME}: {error}") from None
