"""Installation of client libraries with their drivers, in a directory of the user.

Each version of a library has its own directory, which is complete when it has its final name.
``KASSAY_IMPLEMENTATIONS`` selects the directory of all installations, by default
``kassay/implementations`` in the user's cache directory. Only `install` uses the network.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kassay.experiments.implementations.library_catalogue import (
    Library,
    LibraryAssignor,
    libraries,
)
from kassay.experiments.implementations.runtimes import DRIVERS, RUNTIMES
from kassay.reference.model.errors import InputError

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

    Raises
    ------
    RunError
        If a required program is missing, or a download or compilation fails.
    """
    target = _directory(library, version)
    if is_installed(library, version):
        return target
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        RUNTIMES[library.runtime].install(library, version, partial)
        (partial / _DIGEST).write_text(_driver_digest(library), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


@cache
def driver_command(assignor: LibraryAssignor) -> tuple[str, ...]:
    """Return the command that starts the driver of an installed library.

    Raises
    ------
    NotInstalledError
        If the library is not installed.
    """
    library, version = assignor.library, assignor.version
    if not is_installed(library, version):
        name = f"{library.name}@{version}"
        raise NotInstalledError(
            f"{name} is not installed in {installations()}; "
            f"run: kassay implementations install {name}"
        )
    return RUNTIMES[library.runtime].command(library, _directory(library, version))


def _directory(library: Library, version: str) -> Path:
    return installations() / f"{library.name}@{version}"


def _driver_digest(library: Library) -> str:
    """Return a digest of the driver's sources. After a change, libraries must be reinstalled."""
    sources = sorted(path for path in (DRIVERS / library.runtime).rglob("*") if path.is_file())
    content = b"".join(path.name.encode() + path.read_bytes() for path in sources)
    return hashlib.sha256(content).hexdigest()
