"""Our own Java classes over Kafka's: compiled once, loaded into this process's one JVM."""

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
    """``Driver.java`` as a class of the JVM; see `java_class`."""
    return java_class("Driver", heap_mib)


def java_class(name: str, heap_mib: int = 1024) -> Any:
    """One of our Java classes in the JVM, which is started if need be.

    Parameters
    ----------
    name
        Name of the class.
    heap_mib
        Most heap of the JVM, in MiB, if this is what starts it.

    Raises
    ------
    jars.JarsUnavailableError
        If Kafka's jars or a JDK are missing.
    """
    compiled = _compiled()
    jars.start_jvm(heap_mib)
    jpype.addClassPath(str(compiled))
    return jpype.JClass(name)


def java_map(entries: Mapping[str, Any]) -> Any:
    """A ``HashMap`` with these entries."""
    filled = jpype.JClass("java.util.HashMap")()
    for key, value in entries.items():
        filled.put(key, value)
    return filled


@cache
def _compiled() -> Path:
    """Folder with the class files, made anew when a source or the jars change."""
    key = b"".join(source.read_bytes() for source in (*SOURCES, jars.POM))
    target = jars.CACHE.parent / "driver" / hashlib.sha256(key).hexdigest()[:16]
    if target.exists():
        return target
    compiler = shutil.which("javac", path=_java_path())
    if compiler is None:
        raise jars.JarsUnavailableError(
            "javac is not on PATH; a JDK 17+ compiles the conformance driver"
        )
    # Two processes may compile at once: each into its own folder, the rename is atomic.
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
