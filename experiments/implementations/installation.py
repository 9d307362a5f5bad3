"""Installation of client libraries with their drivers, in a directory of the user.

Each version of a library has its own directory, which is complete when it has its final name.
``KASSAY_IMPLEMENTATIONS`` selects the directory of all installations, by default
``kassay/implementations`` in the user's cache directory. Only `install` uses the network.

A *driver* is a program that calls the assignors of one version of a library. Its source is in
``drivers/RUNTIME``. It writes one line on standard output when it is ready. Then it reads one
JSON line per group, ``{"assignor": NAME, "group": GROUP_DOCUMENT}``, and writes one line: an
assignment document, or ``{"failed": EXCEPTION, "reason": TEXT}``. It ends when its standard input
ends, even during a call of an assignor.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from kassay.experiments.implementations.library_catalogue import (
    Library,
    LibraryAssignor,
    Runtime,
    libraries,
    runtimes,
)
from kassay.reference.model.errors import InputError, RunError

DRIVERS = Path(__file__).with_name("drivers")
_INSTALL_SECONDS = 1800


def run_step(command: Sequence[str], *, directory: Path, environment: Mapping[str, str]) -> None:
    """Run one step of an installation. Raise RunError with the end of its output if it fails."""
    program = _find_program(command[0])
    if program is None:
        raise RunError(f"{command[0]!r} is required and not on PATH")
    try:
        done = subprocess.run(  # noqa: S603 - a command of this package
            [program, *command[1:]],
            cwd=directory,
            env=os.environ | dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{command[0]} did not end within {_INSTALL_SECONDS} seconds") from None
    if done.returncode != 0:
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines[-3:]
        raise RunError(f"{command[0]} failed: {' '.join(errors[:3])[:600]}")


def _find_program(name: str) -> str | None:
    """Return the path of a program. Java programs are first searched in JAVA_HOME."""
    home = os.environ.get("JAVA_HOME")
    if home and name in {"java", "javac"}:
        found = shutil.which(name, path=f"{home}/bin")
        if found is not None:
            return found
    return shutil.which(name)


def missing_programs(runtime: Runtime) -> list[str]:
    """Return the required programs of a runtime that are not on PATH."""
    return [name for name in runtime.programs if _find_program(name) is None]


def _words(library: Library, version: str, directory: Path, template: str) -> list[str]:
    """Return the words of a step or command of ``libraries.yaml``, with the values of a version."""
    sanitizer = os.environ.get("KASSAY_SANITIZER")
    offered = (name for name in library.assignors if library.offers(name, version))
    values = {
        "directory": directory,
        "sources": DRIVERS / library.runtime,
        "package": library.package,
        "version": version,
        "packaged": library.packaged.get(version, version),
        "driver": library.driver or library.name,
        "tags": ",".join((library.name, *offered)).replace("-", "_"),
        "python": sys.executable,
        "seed": os.environ.get("PYTHONHASHSEED", "0"),
        "sanitizer": f"-{sanitizer}" if sanitizer else "",
    }
    return [word.format(**values) for word in template.split()]


_VARIABLE = "KASSAY_IMPLEMENTATIONS"
_DIGEST = "driver.sha256"


class NotInstalledError(InputError):
    """Error: a library is not installed on this machine. This is no result of an assignor."""


def installations() -> Path:
    """Return the directory with all installed libraries."""
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "kassay" / "implementations"


def is_installed(library: Library, version: str) -> bool:
    """Return whether a version of a library is installed with the current driver."""
    digest = _directory(library, version) / _DIGEST
    return digest.is_file() and digest.read_text(encoding="utf-8") == _driver_digest(library)


def installed_versions() -> Iterator[tuple[Library, str]]:
    """Yield the installed versions of all libraries."""
    pinned = ((library, each) for library in libraries().values() for each in library.versions)
    return (one for one in pinned if is_installed(*one))


def install(library: Library, version: str) -> Path:
    """Install a version of a library with its driver, and return its directory.

    Raise RunError if a required program is missing, or a download or compilation fails.
    """
    target = _directory(library, version)
    if is_installed(library, version):
        return target
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        runtime = runtimes()[library.runtime]
        for name, text in runtime.files.items():
            (partial / name).write_text(text, encoding="utf-8")
        for step in runtime.steps:
            run_step(
                _words(library, version, partial, step),
                directory=partial,
                environment=runtime.environment,
            )
        (partial / _DIGEST).write_text(_driver_digest(library), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


@cache
def driver_command(assignor: LibraryAssignor) -> tuple[str, ...]:
    """Return the command that starts the driver of an installed library.

    Raise NotInstalledError if the library is not installed.
    """
    library, version = assignor.library, assignor.version
    if not is_installed(library, version):
        name = f"{library.name}@{version}"
        raise NotInstalledError(
            f"{name} is not installed in {installations()}; run: kassay libraries install {name}"
        )
    return _command(library, version)


def _command(library: Library, version: str) -> tuple[str, ...]:
    template = runtimes()[library.runtime].command
    program, *words = _words(library, version, _directory(library, version), template)
    return (_find_program(program) or program, *words)


def jvm_command(library: Library, version: str, *, own: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command of an installed JVM driver, with own entries first in its class path."""
    command = list(_command(library, version))
    place = command.index("-classpath") + 1
    command[place] = os.pathsep.join((*own, command[place]))
    return tuple(command)


def _directory(library: Library, version: str) -> Path:
    return installations() / f"{library.name}@{version}"


def _driver_digest(library: Library) -> str:
    """Return a digest of the driver's sources. After a change, libraries must be reinstalled."""
    sources = sorted(path for path in (DRIVERS / library.runtime).rglob("*") if path.is_file())
    content = b"".join(path.name.encode() + path.read_bytes() for path in sources)
    return hashlib.sha256(content).hexdigest()
