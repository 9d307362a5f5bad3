"""What a study has done so far, on disk: whole waves or nothing of them."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kassay.reference.model.errors import InputError

MANIFEST = "manifest.json"
_PARTS = ".parts"
_STAGING = ".staging"
_LOCK = ".lock"
_DIGEST = "digest"


class CommittedBatches:
    """The waves of one study in a directory; those of any other study are dropped.

    Parameters
    ----------
    directory
        Where the study's tables go.
    digest
        Which study it is: what else it depends on than its cases, too.
    """

    def __init__(self, directory: Path, digest: str) -> None:
        self._directory = directory
        self._parts = directory / _PARTS
        self._digest = digest
        if self._parts.is_dir() and self._read_digest() != digest:
            shutil.rmtree(self._parts)
        if not self._parts.is_dir():
            shutil.rmtree(directory / _STAGING, ignore_errors=True)
            (directory / _STAGING).mkdir()
            (directory / _STAGING / _DIGEST).write_text(digest, encoding="utf-8")
            (directory / _STAGING).rename(self._parts)

    def has(self, wave: int) -> bool:
        """Say whether a wave is done."""
        return self._wave(wave).is_dir()

    def keep(self, wave: int, tables: Mapping[str, pa.Table]) -> None:
        """Keep a wave, all of it at once."""
        unfinished = self._parts / f"unfinished-{wave:05d}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        for name, table in tables.items():
            pq.write_table(table, unfinished / f"{name}.parquet", compression="zstd")
        unfinished.rename(self._wave(wave))

    def publish(self, waves: int, tables: Mapping[str, pa.Schema]) -> dict[str, int]:
        """Put the tables in place, instead of what an earlier study left, without manifest.

        Killed in between, it can be called again.

        Returns
        -------
        dict
            Rows of each table.
        """
        (self._directory / MANIFEST).unlink(missing_ok=True)
        rows: dict[str, int] = {}
        for name in tables:
            staged = self._directory / _STAGING
            shutil.rmtree(staged, ignore_errors=True)
            staged.mkdir()
            rows[name] = 0
            for wave in range(waves):
                part = self._wave(wave) / f"{name}.parquet"
                rows[name] += pq.read_metadata(part).num_rows
                _link(part, staged / f"part-{wave:05d}.parquet")
            shutil.rmtree(self._directory / name, ignore_errors=True)
            staged.rename(self._directory / name)
        return rows

    def finish(self, manifest: Mapping[str, object]) -> None:
        """Write the manifest, which says that the tables are whole, and drop the waves."""
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        unfinished = self._directory / f"{_STAGING}.json"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.rename(self._directory / MANIFEST)
        shutil.rmtree(self._parts)

    def _wave(self, wave: int) -> Path:
        return self._parts / f"wave-{wave:05d}"

    def _read_digest(self) -> str | None:
        try:
            return (self._parts / _DIGEST).read_text(encoding="utf-8")
        except OSError:
            return None


@contextmanager
def directory_lock(directory: Path) -> Iterator[None]:
    """Keep other runs out of a directory; the system lifts the lock if this one is killed.

    Raises
    ------
    InvalidGroupError
        If another run is at work there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{directory}: another study is at work there") from None
        yield


def completed_manifest(directory: Path, digest: str) -> dict[str, object] | None:
    """Return the manifest of a directory that holds just this study, else None."""
    try:
        found = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get(_DIGEST) != digest:
        return None
    shutil.rmtree(directory / _PARTS, ignore_errors=True)
    return found


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, or a copy where the file system has no such thing."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
