"""Output directories of studies: committed batches, published tables and the manifest."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kassay.reference.model.errors import RunError

MANIFEST = "manifest.json"
STAGING = ".staging"
_BATCHES = ".parts"
_LOCK = ".lock"
_DIGEST = "digest"


class CommittedBatches:
    """Finished batches of one study in an output directory."""

    def __init__(self, directory: Path, digest: str) -> None:
        self._directory = directory
        self._batches = directory / _BATCHES
        if self._batches.is_dir() and self._read_digest() != digest:
            shutil.rmtree(self._batches)
        if not self._batches.is_dir():
            staging = new_staging_directory(directory)
            (staging / _DIGEST).write_text(digest, encoding="utf-8")
            staging.rename(self._batches)

    def contains(self, index: int) -> bool:
        """Return whether a batch is committed."""
        return self._batch(index).is_dir()

    def commit(self, index: int, tables: Mapping[str, pa.Table]) -> None:
        """Write the tables of a batch atomically."""
        unfinished = self._batches / f"unfinished-{index:05d}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        for name, table in tables.items():
            pq.write_table(table, unfinished / f"{name}.parquet", compression="zstd")
        unfinished.rename(self._batch(index))

    def publish(self, batches: int, tables: Mapping[str, pa.Schema]) -> dict[str, int]:
        """Replace the published tables, delete the manifest, and return the rows per table.

        An interrupted call can be repeated.
        """
        (self._directory / MANIFEST).unlink(missing_ok=True)
        rows: dict[str, int] = {}
        for name in tables:
            staging = new_staging_directory(self._directory)
            rows[name] = 0
            for index in range(batches):
                part = self._batch(index) / f"{name}.parquet"
                rows[name] += pq.read_metadata(part).num_rows
                _link_or_copy(part, staging / f"part-{index:05d}.parquet")
            replace_table(staging, self._directory / name)
        return rows

    def finish(self, manifest: Mapping[str, object]) -> None:
        """Write the manifest, which marks the tables as complete, and delete the batches."""
        write_manifest(self._directory, manifest)
        shutil.rmtree(self._batches)

    def _batch(self, index: int) -> Path:
        return self._batches / f"batch-{index:05d}"

    def _read_digest(self) -> str | None:
        try:
            return (self._batches / _DIGEST).read_text(encoding="utf-8")
        except OSError:
            return None


@contextmanager
def directory_lock(directory: Path) -> Iterator[None]:
    """Lock an output directory. The operating system releases the lock of a killed process."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"{directory}: another study is running in this directory") from None
        yield


def new_staging_directory(directory: Path) -> Path:
    """Create an empty staging directory inside an output directory."""
    staging = directory / STAGING
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    return staging


def replace_table(staged: Path, table: Path) -> None:
    """Move a table from the staging directory to the output directory."""
    shutil.rmtree(table, ignore_errors=True)
    staged.rename(table)


def write_manifest(directory: Path, manifest: Mapping[str, object]) -> None:
    """Write the manifest of an output directory atomically."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    unfinished = directory / f"{STAGING}.json"
    unfinished.write_text(text, encoding="utf-8")
    unfinished.rename(directory / MANIFEST)


def completed_manifest(directory: Path, digest: str) -> dict[str, object] | None:
    """Return the manifest of a directory with the finished study, else None."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(manifest, dict) or manifest.get(_DIGEST) != digest:
        return None
    shutil.rmtree(directory / _BATCHES, ignore_errors=True)
    return manifest


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
