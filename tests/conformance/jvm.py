"""Java classes of this directory: compiled once and loaded into the JVM."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jpype

from tests.conformance import jars

SOURCES = sorted(Path(__file__).parent.glob("*.java"))
_COMPILE_SECONDS = 300


@cache
def driver(heap_mib: int = 1024) -> Any:
    return java_class("Driver", heap_mib)


def java_class(name: str, heap_mib: int = 1024) -> Any:
    """Return a class of this directory; start the JVM if necessary.

    ``heap_mib`` is the heap limit in MiB, if this call starts the JVM.
    """
    compiled = _compiled()
    jars.start_jvm(heap_mib)
    jpype.addClassPath(str(compiled))
    return jpype.JClass(name)


def java_map(entries: Mapping[str, Any]) -> Any:
    """Create a ``HashMap`` with these entries."""
    result = jpype.JClass("java.util.HashMap")()
    for key, value in entries.items():
        result.put(key, value)
    return result


@cache
def _compiled() -> Path:
    """Return the directory of class files, compiled when a source or the jars change."""
    key = b"".join(source.read_bytes() for source in (*SOURCES, jars.POM))
    target = jars.CACHE.parent / "driver" / hashlib.sha256(key).hexdigest()[:16]
    if target.exists():
        return target
    # The Java home of a running Spark session contains only a launcher.
    compiler = shutil.which("javac", path=_java_path()) or shutil.which("javac")
    if compiler is None:
        raise jars.JarsUnavailableError(
            "javac is not on PATH; a JDK 17+ compiles the conformance driver"
        )
    # Several processes may compile at the same time; the rename is atomic.
    partial = target.with_suffix(f".{os.getpid()}")
    partial.mkdir(parents=True)
    classpath = os.pathsep.join(jars.classpath("clients"))
    command = [compiler, "-nowarn", "-cp", classpath, "-d", str(partial), *map(str, SOURCES)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=_COMPILE_SECONDS
    )
    if done.returncode != 0:
        shutil.rmtree(partial)
        raise jars.JarsUnavailableError(f"javac failed: {done.stderr[-500:]}")
    try:
        partial.rename(target)
    except OSError:
        shutil.rmtree(partial)
    return target


def _java_path() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin" if home else None
