"""Digest and copy files of an output directory on any Hadoop file system.

Spark lists, reads and writes all files, so that the driver needs no access to the file system.
"""

import json
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.study.output_reader import (
    MANIFESTS,
    FileDigests,
    FileState,
    StudySummary,
    damaged_files,
    digest_local_files,
    load_summary,
    read_manifest,
    verified_manifest,
)
from kassay.reference.documents.output_files import location
from kassay.reference.model.errors import InputError

CASES_FOLDER, SUMMARY_FOLDER = "cases", "summary"
PARQUET_OPTIONS = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",  # counts prove completeness
    "parquet.page.write-checksum.enabled": "true",
    "parquet.block.size": str(32 << 20),
}


def new_run() -> str:
    """Create a unique name for a run of a study or history. Names sort by time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def uri_of(output: str) -> str:
    """Convert the path or URI of an output directory to a URI for Spark."""
    path = location(output)
    return output.rstrip("/") if path is None else path.absolute().as_uri()


def digest_files(spark: SparkSession, output: str, folders: Sequence[str]) -> FileDigests:
    """Return the size and SHA-256 of each file in the given folders of an output directory.

    Folders that do not exist are skipped. On remote file systems, the folders of all batches are
    read together.
    """
    local = location(output)
    if local is not None:
        return digest_local_files(local, folders)
    kept = tuple(f"{folder}/" for folder in folders)
    parents = dict.fromkeys("/".join(folder.split("/")[:2]) for folder in kept)
    return {
        name: FileState(row["length"], row["sha256"])
        for parent in parents
        for row in _files(spark, output, parent, "length", "sha256")
        if (name := f"{parent}/{row['name']}").startswith(kept)
    }


def write_manifest(
    spark: SparkSession,
    output: str,
    run: str,
    document: Mapping[str, object],
    *,
    folders: Sequence[str],
) -> None:
    """Write the manifest of a run, with the size and SHA-256 of each file in ``folders``.

    A run with a manifest is complete: nothing is written after the manifest.
    """
    files = digest_files(spark, output, folders)
    text = json.dumps({**document, "folders": folders, "files": files}, ensure_ascii=False)
    frame = spark.createDataFrame([(text,)], "value string").coalesce(1)
    frame.write.text(f"{uri_of(output)}/{MANIFESTS}/run={run}")


@contextmanager
def local_copy(spark: SparkSession, output: str) -> Iterator[tuple[Path, FileDigests | None]]:
    """Copy the files that a report needs to a local directory, and yield the directory.

    The second yielded value contains the digests of all files of the output. A local output is not
    copied, and its digests are None.
    """
    local = location(output)
    if local is not None:
        yield local, None
        return
    with tempfile.TemporaryDirectory(prefix="kassay-") as scratch:
        directory = Path(scratch)
        _fetch(spark, output, MANIFESTS, directory)
        manifest = read_manifest(directory)
        _fetch(spark, output, str(manifest.get("summary") or manifest["history"]), directory)
        yield directory, digest_files(spark, output, manifest["folders"])


def read_summary(spark: SparkSession, output: str) -> StudySummary:
    """Read the summary tables of a study, after a check of their files' digests."""
    with local_copy(spark, output) as (directory, found):
        return load_summary(directory, verified_manifest(directory, found=found))


def changed_folders(spark: SparkSession, output: str) -> set[str]:
    """Return the folders with files that differ from the manifest of an output directory."""
    try:
        with local_copy(spark, output) as (directory, found):
            damage = damaged_files(directory, read_manifest(directory), found)
    except InputError:
        return set()  # there is no manifest
    return {name.rpartition("/")[0] for name in damage}


def _fetch(spark: SparkSession, output: str, folder: str, directory: Path) -> None:
    """Copy all files of one output folder to a local directory."""
    for row in _files(spark, output, folder, "content"):
        target = directory / folder / row["name"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(row["content"])


def _files(spark: SparkSession, output: str, folder: str, *columns: str) -> Iterator[Row]:
    """Yield one row per file in a folder: its name and the requested ``columns``."""
    try:
        frame = (
            spark.read.format("binaryFile")
            .option("recursiveFileLookup", "true")
            .load(f"{uri_of(output)}/{folder}")
            .withColumn("sha256", F.sha2("content", 256))
        )
        name = F.substring_index("path", f"/{folder}/", -1).alias("name")
        yield from frame.select(name, *columns).toLocalIterator(prefetchPartitions=True)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
