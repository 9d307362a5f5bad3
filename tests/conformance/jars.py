"""Pinned jars of Apache Kafka, resolved by Maven, and the JVM.

``pom.xml`` in this directory contains the versions. A resolved class path is cached in
``.cache/jars`` until ``pom.xml`` changes or a jar is missing.
"""

from __future__ import annotations

import faulthandler
import hashlib
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import jpype

Kind = Literal["clients", "broker", "tools", "older-tools", "kinds", "s3"]
"""``clients``: consumers, client assignors, broker assignors. ``broker``: a whole KRaft
broker. ``tools``: the classes behind ``kafka-consumer-groups.sh`` and its siblings;
``older-tools``: those of release 3.9, with ``kafka-dump-log.sh``. ``kinds``: Kafka Streams
and Kafka Connect. ``s3``: Hadoop's S3 client for Spark."""

POM = Path(__file__).with_name("pom.xml")
CACHE = Path(__file__).parents[2] / ".cache" / "jars"
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
"""JVM option that disables Kafka's log, which slf4j-simple writes."""

_NAMESPACE = {"m": "http://maven.apache.org/POM/4.0.0"}
_RESOLVE_SECONDS = 900


class JarsUnavailableError(RuntimeError):
    """Maven or Java is missing, or the jars could not be downloaded."""


def version(kind: Kind = "clients") -> str:
    """Return Kafka's version on the class path of ``kind``.

    Examples
    --------
    >>> version("clients") == version("broker")
    True
    """
    name = f"kafka.{kind}.version" if kind.endswith("tools") else "kafka.version"
    pinned = ET.parse(POM).findtext(f"m:properties/m:{name}", namespaces=_NAMESPACE)
    if pinned is None:
        raise JarsUnavailableError(f"{POM.name} pins no {name!r}")
    return pinned


@cache
def classpath(kind: Kind) -> tuple[str, ...]:
    """Return the paths of the jars for ``kind``, downloaded on first use."""
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {get_args(Kind)}, got {kind!r}")
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:16]
    cached = CACHE / f"{kind}-{digest}.classpath"
    if cached.exists():
        jars = tuple(cached.read_text().split(os.pathsep))
        if all(Path(jar).is_file() for jar in jars):
            return jars
    _resolve(kind, cached)
    return tuple(cached.read_text().split(os.pathsep))


def _resolve(kind: Kind, target: Path) -> None:
    """Download the jars of a Maven profile and write their paths to a file."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailableError("mvn is not on PATH; install Maven 3.6+ to fetch Kafka's jars")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may resolve at the same time; the rename is atomic.
    partial = target.with_suffix(f".{os.getpid()}")
    command = [maven, "--quiet", "--batch-mode", f"--file={POM}", f"--activate-profiles={kind}"]
    command += ["dependency:build-classpath", f"-Dmdep.outputFile={partial}"]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_RESOLVE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise JarsUnavailableError(
            f"mvn did not resolve the {kind} jars within {_RESOLVE_SECONDS} s"
        ) from None
    if done.returncode != 0 or not partial.exists():
        errors = [line for line in done.stdout.splitlines() if "[ERROR]" in line]
        reason = errors[0] if errors else (done.stderr or done.stdout).strip()[-500:]
        raise JarsUnavailableError(f"mvn could not resolve the {kind} jars of Kafka: {reason}")
    partial.replace(target)


def java() -> str:
    """Return the path of the Java launcher, from ``$JAVA_HOME`` if set, else from PATH."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if path is None:
        raise JarsUnavailableError("no java on PATH; Kafka's jars need Java 17 or newer")
    return path


def start_jvm(heap_mib: int = 1024) -> None:
    """Start the JVM of this process with the ``clients`` jars, unless it runs already.

    ``heap_mib`` is the heap limit in MiB; only the first call sets it.
    """
    if not jpype.isJVMStarted():
        # The JVM needs its own handler of SIGSEGV until the process ends. When pytest ends, it
        # disables its fault handler, which restores the handler from before the JVM.
        faulthandler.disable()
        jpype.startJVM(f"-Xmx{heap_mib}m", QUIET, classpath=list(classpath("clients")))
