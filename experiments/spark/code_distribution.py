"""Send kassay's code to Spark workers, and check that workers and driver run equal versions."""

import hashlib
import importlib.metadata
import platform
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pyspark.sql import SparkSession

from kassay.reference.model.errors import RunError

_PACKAGES = ("kassay", "kassay.experiments", "kassay.reference", "kassay.solver")
_SUFFIXES = (".py", ".pyi", ".json", ".yaml")
_LIBRARIES = ("numpy", "ortools", "pyarrow")


def send_code(spark: SparkSession, directory: Path) -> None:
    """Send kassay's code to all Spark workers, which use it instead of an installed version."""
    path = str(directory / "kassay.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _files():
            archive.writestr(name, content)
    if uses_connect(spark):
        spark.addArtifacts(path, pyfile=True)
    else:
        spark.sparkContext.addPyFile(path)


def uses_connect(spark: SparkSession) -> bool:
    """Return whether a Spark session uses a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@cache
def code_identity() -> tuple[tuple[str, str], ...]:
    """Return a digest of kassay's code, and the versions of Python and required libraries."""
    digest = hashlib.sha256()
    for name, content in _files():
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return (
        ("kassay", digest.hexdigest()[:16]),
        ("python", platform.python_version()),
        *((name, importlib.metadata.version(name)) for name in _LIBRARIES),
    )


def check_identity(expected: tuple[tuple[str, str], ...]) -> None:
    """Check that this Spark worker runs the same code and library versions as the driver.

    Examples
    --------
    >>> check_identity((("python", "2.7"), *code_identity()[2:]))
    Traceback (most recent call last):
        ...
    kassay...RunError: the worker on ... has python ..., the driver has 2.7; ...
    """
    own = dict(code_identity())
    for name, version in expected:
        if own[name] != version:
            raise RunError(
                f"the worker on {platform.node()} has {name} {own[name]}, the driver has "
                f"{version}; install the same version on both"
            )


def _files() -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file of the package ``kassay``, sorted by name."""
    found: dict[str, Traversable] = {}
    # In a checkout, the folders of the packages are not nested.
    folders = [(package.replace(".", "/"), files(package)) for package in _PACKAGES]
    while folders:
        name, folder = folders.pop()
        for each in folder.iterdir():
            if each.is_dir():
                folders.append((f"{name}/{each.name}", each))
            elif each.name.endswith(_SUFFIXES):
                found[f"{name}/{each.name}"] = each
    for name, file in sorted(found.items()):
        yield name, file.read_bytes()
