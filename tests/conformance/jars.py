"""The pinned jars of real Apache Kafka, resolved through Maven, and the JVM over them.

The versions stand in ``pom.xml`` beside this file and nowhere else. A resolved class
path is kept under ``.cache/jars`` of the repository and used for as long as the
``pom.xml`` is the same and every jar on it is still there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import jpype

Kind = Literal["clients", "broker", "tools"]
"""``clients``: consumers, client assignors, broker assignors. ``broker``: a whole KRaft
broker. ``tools``: the classes behind ``kafka-consumer-groups.sh`` and its siblings."""

POM = Path(__file__).with_name("pom.xml")
CACHE = Path(__file__).parents[2] / ".cache" / "jars"
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
"""JVM option that silences Kafka's own log, whose only sink is slf4j-simple."""

_NAMESPACE = {"m": "http://maven.apache.org/POM/4.0.0"}
_RESOLVE_SECONDS = 900


class JarsUnavailableError(RuntimeError):
    """Maven or Java is missing, or the jars could not be fetched."""


def version(kind: Kind = "clients") -> str:
    """Kafka's version on the class path of ``kind``, as ``pom.xml`` pins it.

    Examples
    --------
    >>> version("clients") == version("broker")
    True
    """
    name = "kafka.tools.version" if kind == "tools" else "kafka.version"
    pinned = ET.parse(POM).findtext(f"m:properties/m:{name}", namespaces=_NAMESPACE)
    if pinned is None:
        raise JarsUnavailableError(f"{POM.name} pins no {name!r}")
    return pinned


@cache
def classpath(kind: Kind) -> tuple[str, ...]:
    """Paths of the jars for ``kind``, fetched on first use.

    Raises
    ------
    JarsUnavailableError
        If Maven is missing or cannot resolve the jars.
    """
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
    """Have Maven fetch the jars of the profile ``kind`` and write their paths."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailableError("mvn is not on PATH; install Maven 3.6+ to fetch Kafka's jars")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Two processes may resolve at once: each writes its own file, the rename is atomic.
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
        said = [line for line in done.stdout.splitlines() if "[ERROR]" in line]
        reason = said[0] if said else (done.stderr or done.stdout).strip()[-500:]
        raise JarsUnavailableError(f"mvn could not resolve the {kind} jars of Kafka: {reason}")
    partial.replace(target)


def java() -> str:
    """Path of the Java launcher: ``$JAVA_HOME`` if set, else the one on PATH.

    Raises
    ------
    JarsUnavailableError
        If there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if found is None:
        raise JarsUnavailableError("no java on PATH; Kafka's jars need Java 17 or newer")
    return found


def start_jvm(heap_mib: int = 1024) -> None:
    """Start this process's one JVM over the ``clients`` jars, unless it runs already.

    Parameters
    ----------
    heap_mib
        Most heap it may use, in MiB. Only the first call decides.
    """
    if not jpype.isJVMStarted():
        jpype.startJVM(f"-Xmx{heap_mib}m", QUIET, classpath=list(classpath("clients")))
