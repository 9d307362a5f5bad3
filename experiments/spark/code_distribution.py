"""The code that workers run: packed for them, and held to be the driver's own."""

import hashlib
import importlib.metadata
import platform
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

import kassay
import kassay.experiments
import kassay.reference
import kassay.solver
from kassay.reference.model.errors import RunError

_PACKAGES = (kassay, kassay.experiments, kassay.reference, kassay.solver)
_SUFFIXES = (".py", ".json", ".yaml")
_LIBRARIES = ("numpy", "ortools", "pyarrow")
_WHEN = (2000, 1, 1, 0, 0, 0)


class WorkerMismatchError(RunError):
    """A worker runs other code than the driver."""


def write_archive(target: Path) -> Path:
    """Pack the three packages into a zip file, the same file for the same code."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _files():
            archive.writestr(zipfile.ZipInfo(name, _WHEN), content)
    return target


def send_code(spark: SparkSession, directory: Path) -> None:
    """Send the code to all workers of a session, ahead of whatever they have installed."""
    archive = str(write_archive(directory / "kassay.zip"))
    if hasattr(spark, "sparkContext") and not _is_connect(spark):
        spark.sparkContext.addPyFile(archive)
    else:
        spark.addArtifacts(archive, pyfile=True)


def _is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


@cache
def code_identity() -> tuple[tuple[str, str], ...]:
    """Tell what this process runs: a digest of the code, and versions that results hang on.

    Examples
    --------
    >>> dict(code_identity())["python"] == platform.python_version()
    True
    """
    digest = hashlib.sha256()
    for name, content in _files():
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return (
        ("kassay", digest.hexdigest()[:16]),
        ("python", platform.python_version()),
        *((name, importlib.metadata.version(name)) for name in _LIBRARIES),
    )


def check_identity(expected: tuple[tuple[str, str], ...]) -> None:
    """Refuse to be a worker for a driver that runs something else.

    Raises
    ------
    WorkerMismatchError
        If anything differs: it says what, and where.

    Examples
    --------
    >>> check_identity((("python", "2.7"), *code_identity()[2:]))
    Traceback (most recent call last):
        ...
    kassay...WorkerMismatchError: the worker on ... has python ..., the driver 2.7
    """
    own = dict(code_identity())
    for name, version in expected:
        if own[name] != version:
            raise WorkerMismatchError(
                f"the worker on {platform.node()} has {name} {own[name]}, the driver {version}"
            )


def _files() -> Iterator[tuple[str, bytes]]:
    """Yield the files of the package, installed as folders or as a zip file, sorted by name."""
    archive = getattr(kassay.__loader__, "archive", None)
    yield from _zipped(archive) if archive else _unzipped()


def _unzipped() -> Iterator[tuple[str, bytes]]:
    """Yield the files of the folders; in a checkout they are beside each other."""
    paths: dict[str, Path] = {}
    for package in _PACKAGES:
        root = Path(str(package.__file__)).parent
        folder = package.__name__.replace(".", "/")
        for path in root.rglob("*"):
            if path.suffix in _SUFFIXES:
                paths[f"{folder}/{path.relative_to(root).as_posix()}"] = path
    for name, path in sorted(paths.items()):
        yield name, path.read_bytes()


def _zipped(archive: str) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as opened:
        for name in sorted(opened.namelist()):
            yield name, opened.read(name)
