"""Our own Java class over Kafka's: compiled once, loaded into this process's one JVM."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jpype

from tests.conformance import jars

SOURCE = Path(__file__).with_name("Driver.java")
_COMPILE_SECONDS = 300


@cache
def driver(heap_mib: int = 1024) -> Any:
    """``Driver.java`` as a class of the JVM, which is started if need be.

    Parameters
    ----------
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
    return jpype.JClass("Driver")


def _compiled() -> Path:
    """Folder with the class files, made anew when the source or the jars change."""
    key = SOURCE.read_bytes() + jars.POM.read_bytes()
    target = jars.CACHE.parent / "driver" / hashlib.sha256(key).hexdigest()[:16]
    if (target / "Driver.class").exists():
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
    command = [compiler, "-nowarn", "-cp", classpath, "-d", str(partial), str(SOURCE)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=_COMPILE_SECONDS
    )
    if done.returncode != 0:
        shutil.rmtree(partial)
        raise jars.JarsUnavailableError(f"javac failed on {SOURCE.name}: {done.stderr[-500:]}")
    try:
        partial.rename(target)
    except OSError:
        shutil.rmtree(partial)
    return target


def _java_path() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin" if home else None
