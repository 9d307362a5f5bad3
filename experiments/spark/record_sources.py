"""Read records of ``__consumer_offsets`` from Parquet, text dumps or a live cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.history.group_records import read_dump
from kassay.experiments.history.live_topic import TOPIC, OffsetsReader
from kassay.experiments.history.log_files import DUMP_SUFFIXES, is_dump
from kassay.experiments.spark.history_pipeline import RAW, RECORDS, decode_records
from kassay.experiments.spark.jobs import map_rows
from kassay.experiments.spark.output_files import uri_of
from kassay.reference.documents.input_files import open_text, without_gzip
from kassay.reference.documents.output_files import location
from kassay.reference.model.errors import InputError

_PARQUET_MAGIC = b"PAR1"
_REQUIRED_COLUMNS = ("key", "value")


def read_files(spark: SparkSession, paths: Sequence[str | Path]) -> list[DataFrame]:
    """Read and decode ``__consumer_offsets`` records from text dumps and Parquet files.

    Directories are searched for both types of files. Dumps may be compressed with gzip. URIs of
    other file systems must contain Parquet files.
    """
    texts: list[Path] = []
    tables: list[str] = []
    for path in map(str, paths):
        local = location(path)
        if local is None:
            tables.append(path)
            continue
        found, parquet = record_files(local)
        texts += found
        tables += map(str, parquet)
    stored = {path: spark.read.parquet(uri_of(path)) for path in tables}
    unordered = [path for path, frame in stored.items() if "offset" not in frame.columns]
    if unordered and (texts or len(unordered) < len(stored)):
        raise InputError(
            f"{unordered[0]}: the records have no column offset, so their order among the records "
            "of the other files is unknown"
        )
    frames = [decode_records(_raw_records(each, path)) for path, each in stored.items()]
    if texts:
        names = [[str(path.absolute())] for path in texts]
        dumps = spark.createDataFrame(names, "path string").repartition(len(names))
        frames.append(map_rows(dumps, _dump_rows, RECORDS))
    return frames


def record_files(path: Path) -> tuple[list[Path], list[Path]]:
    """List the text dumps and the Parquet files or directories at a path."""
    if not path.exists():
        raise InputError(f"{path}: no such file or directory")
    if path.is_dir():
        dumps = sorted(file for file in path.rglob("*") if file.is_file() and _is_dump(file))
        # The directory that Spark writes for a table can also have a name with .parquet.
        parquet = sorted(
            file
            for file in path.rglob("*.parquet")
            if not any(part.endswith(".parquet") for part in file.relative_to(path).parts[:-1])
        )
        if not (dumps or parquet):
            suffixes = " or ".join(DUMP_SUFFIXES)
            raise InputError(
                f"{path}: the directory contains neither Parquet files nor output of "
                f"kafka-dump-log.sh (files {suffixes}, also with .gz)"
            )
        for file in parquet:
            _check_parquet(file)
        # A directory of Parquet files alone may have partition columns.
        return dumps, ([path] if parquet and not dumps else parquet)
    if _is_dump(path):
        if is_dump(path):
            return [path], []
        raise InputError(
            f"{path}: the file contains no output of kafka-dump-log.sh --offsets-decoder; captures "
            "of kafka-consumer-groups.sh and group documents show no history, use kassay plan for "
            "them"
        )
    _check_parquet(path)
    return [], [path]


def _is_dump(path: Path) -> bool:
    return without_gzip(path).suffix in DUMP_SUFFIXES


def _check_parquet(path: Path) -> None:
    if not path.is_file():
        return
    with path.open("rb") as file:
        if file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
            return
    suffixes = " or ".join(DUMP_SUFFIXES)
    raise InputError(
        f"{path}: not a Parquet file; "
        f"the name of a file with output of kafka-dump-log.sh must end with {suffixes}"
    )


def read_cluster(
    spark: SparkSession, settings: Mapping[str, str], *, timeout: float, tasks: int
) -> DataFrame:
    """Read and decode records of ``__consumer_offsets`` from a cluster, up to the current end.

    Each task reads some partitions with a consumer that joins no group and commits nothing.
    The settings are librdkafka properties; the timeout is in seconds per answer.
    """
    properties = dict(settings)
    partitions = OffsetsReader(properties, timeout=timeout).partitions()
    frame = spark.createDataFrame([[number] for number in partitions], "number long")

    def read(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        numbers = [int(row["number"]) for row in rows]
        return OffsetsReader(properties, timeout=timeout).read(numbers)

    return decode_records(map_rows(frame.repartition(tasks), read, RAW))


def _dump_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        path = Path(row["path"])
        with open_text(path, errors="replace") as lines:
            yield from read_dump(lines, name=str(path))


def _raw_records(frame: DataFrame, path: str) -> DataFrame:
    """Select the columns of raw records in Parquet files; missing columns become null.

    The columns are those of Spark's Kafka source: ``key``, ``value``, and optionally
    ``partition``, ``offset``, ``timestamp`` (a time or milliseconds) and ``topic``. Rows of
    topics other than ``__consumer_offsets`` are skipped.
    """
    types = dict(frame.dtypes)
    missing = [name for name in _REQUIRED_COLUMNS if name not in types]
    if missing or not types.keys() & {"offset", "timestamp"}:
        required = ", ".join(missing) if missing else "offset or timestamp"
        raise InputError(
            f"{path}: the files must have a column {required}, got {', '.join(frame.columns)}"
        )
    if "topic" in types:
        frame = frame.where(F.col("topic") == TOPIC)

    def column(name: str, kind: str) -> Column:
        if types.get(name, "").startswith("timestamp"):
            return F.unix_millis(F.col(name).cast("timestamp"))
        return (F.col(name) if name in types else F.lit(None)).cast(kind)

    kinds = {"key": "binary", "value": "binary"}
    return frame.select(*(column(n, kinds.get(n, "long")).alias(n) for n in RAW.names))
