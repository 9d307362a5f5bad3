"""Find and install client libraries, and start their drivers.

``libraries.yaml`` lists the libraries, their assignors and their supported versions. A name is
``sarama@1.43.3:sticky``. Without a version, it means the first version in this list.

All names can start with an alias and contain a time limit per group:
``old=sarama@1.43.3@2.5s:sticky``.

Each installed version of a library has a directory, which is complete when it has its final name.
``KASSAY_IMPLEMENTATIONS`` sets the directory of all installations. The default is
``kassay/implementations`` in the user's cache directory. Only `install` uses the network.

A *driver* is a program that calls the assignors of one version of a library. Its source is in
``drivers/RUNTIME``. It writes one line on standard output when it is ready. Then it reads one
JSON line per group, ``{"assignor": NAME, "group": GROUP_DOCUMENT}``, and writes one line: an
assignment document, or ``{"failed": EXCEPTION, "reason": TEXT}``. It ends when its standard input
ends, even during a call of an assignor.
"""

import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kassay.reference.assignors import RebalanceProtocol
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.model.errors import InputError, RunError

ANSWER_SECONDS = 10.0
"""Default time limit of an assignor per group, in seconds."""


def split_alias(name: str) -> tuple[str | None, str]:
    """Split the name of an assignor into an alias, or None without one, and the rest.

    Examples
    --------
    >>> split_alias("mine=cmd:./mine --level=2"), split_alias("cmd:./mine --level=2")
    (('mine', 'cmd:./mine --level=2'), (None, 'cmd:./mine --level=2'))
    """
    match = _ALIAS.fullmatch(name)
    return (None, name) if match is None else (match["alias"], match["name"])


def parse_time_limit(name: str, seconds: str) -> float:
    """Parse a time limit in seconds, or raise InputError unless it is positive."""
    try:
        limit = float(seconds)
    except ValueError:
        limit = math.nan
    if not 0 < limit < math.inf:
        raise InputError(
            f"the time limit of assignor {name!r} must be a positive number of seconds, "
            f"got {seconds!r}"
        )
    return limit


NAMES_IN_PROTOCOL = {"kafkajs": "RoundRobinAssigner"}
"""Assignor name in the JoinGroup request, by library, if it differs from Kafka's name."""
LIBRARIES_FILE = Path(__file__).with_name("libraries.yaml")
_REPETITIONS = 5
_LIBRARY_VERSION = re.compile(r"(?P<library>[a-z][a-z0-9-]*)(@v?(?P<version>\d+(\.\d+)*))?")
_ALIAS = re.compile(r"(?P<alias>[\w.-]+)=(?P<name>.+)", re.DOTALL)
_NAME = re.compile(
    _LIBRARY_VERSION.pattern + r"(@(?P<seconds>[0-9.e+-]+)s)?:(?P<assignor>[a-z0-9-]+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedAssignor:
    """Assignor that a client library or the broker contains.

    ``kind`` is the kind of groups for which it is.
    ``since`` is the first version of the library with the assignor, or None if all have it.
    ``is_repeatable`` is False if two runs on equal groups can return different assignments.
    """

    name: str
    kind: Kind = Kind.CONSUMER
    protocol: RebalanceProtocol = RebalanceProtocol.EAGER
    since: str | None = None
    is_repeatable: bool = True


@dataclass(frozen=True, slots=True)
class UpstreamChange:
    """Change in a version of a library that can change assignments."""

    version: str
    assignors: Sequence[str]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Runtime that drivers require, such as the JVM, according to ``libraries.yaml``."""

    programs: Sequence[str] = ()
    needs: str  # the required programs and their versions, for people
    files: Mapping[str, str] = field(default_factory=dict)
    steps: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    command: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Library:
    """Client library or broker, with its assignors and supported versions.

    ``package`` is the name in the registry of the library, or of a package that contains it. If a
    package contains it, ``packaged`` has the version of the package by version of the library.
    ``driver`` is the class of the JVM driver. ``interfaces`` maps interfaces to kinds of groups.
    """

    name: str
    title: str
    runtime: str
    package: str
    assignors: Mapping[str, OfferedAssignor]
    versions: Sequence[str]
    packaged: Mapping[str, str] = field(default_factory=dict)
    driver: str | None = None
    interfaces: Mapping[str, Kind]
    changes: Sequence[UpstreamChange]

    def changes_between(self, before: str, version: str, assignor: str) -> tuple[str, ...]:
        """Return descriptions of the known changes of an assignor between two versions."""
        return tuple(
            change.text
            for change in self.changes
            if assignor in change.assignors
            and version_key(before) < version_key(change.version) <= version_key(version)
        )

    def assignors_of(self, version: str) -> list[str]:
        """Return the names of the assignors for consumer groups that a version contains."""
        return [
            name
            for name, offered in self.assignors.items()
            if offered.kind is Kind.CONSUMER and self.offers(name, version)
        ]

    def offers(self, assignor: str, version: str) -> bool:
        """Return whether a version of the library contains the assignor."""
        offered = self.assignors.get(assignor)
        if offered is None:
            return False
        return offered.since is None or version_key(version) >= version_key(offered.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryAssignor:
    """Assignor in one version of a library.

    ``seconds`` is the time limit per group in the name, if any. ``alias`` is the name in results.
    """

    library: Library
    version: str
    assignor: OfferedAssignor
    seconds: float | None = None
    alias: str | None = None

    @property
    def time_limit(self) -> float:
        """Return the time limit per group in seconds. The default is 10 seconds."""
        return ANSWER_SECONDS if self.seconds is None else self.seconds

    def __str__(self) -> str:
        """Return the complete name, with the version."""
        limit = "" if self.seconds is None else f"@{self.seconds:g}s"
        name = f"{self.library.name}@{self.version}{limit}:{self.assignor.name}"
        return name if self.alias is None else f"{self.alias}={name}"


def version_key(version: str) -> tuple[int, ...]:
    """Convert a version such as 1.10.0 to integers, as a sort key."""
    return tuple(map(int, version.split(".")))


@cache
def _sections() -> tuple[dict[str, Any], dict[str, Any]]:
    import yaml  # noqa: PLC0415 - only names of libraries need it

    known, content = yaml.safe_load_all(LIBRARIES_FILE.read_text(encoding="utf-8"))
    return known, content


@cache
def runtimes() -> Mapping[str, Runtime]:
    """Load the runtimes in ``libraries.yaml``, by name."""
    return {name: Runtime(**fields) for name, fields in _sections()[0].items()}


@cache
def libraries() -> Mapping[str, Library]:
    """Load the libraries in ``libraries.yaml``, by name."""
    return {
        name: Library(
            name=name,
            **fields
            | {
                "interfaces": {one: Kind(it) for one, it in fields.get("interfaces", {}).items()},
                "changes": [UpstreamChange(**change) for change in fields.get("changes", ())],
                "assignors": {
                    assignor: OfferedAssignor(
                        name=assignor,
                        kind=Kind(properties.get("kind", Kind.CONSUMER)),
                        protocol=RebalanceProtocol(properties.get("protocol", "eager")),
                        since=properties.get("since"),
                        is_repeatable=properties.get("repeatable", True),
                    )
                    for assignor, properties in fields["assignors"].items()
                },
            },
        )
        for name, fields in _sections()[1].items()
    }


def is_library_assignor(name: str) -> bool:
    """Return whether a name has the form ``[ALIAS=]LIBRARY[@VERSION]:ASSIGNOR``."""
    match = _NAME.fullmatch(split_alias(name)[1])
    return match is not None and match["library"] not in {"cmd", "python", "class"}


def parse_library_assignor(name: str) -> LibraryAssignor:
    """Parse the assignor name ``[ALIAS=]LIBRARY[@VERSION][@SECONDSs]:ASSIGNOR``.

    Raise InputError for an unknown library, version or assignor, or an invalid time limit.

    Examples
    --------
    >>> parsed = parse_library_assignor("kafka-clients@2.4.0@2s:sticky")
    >>> parsed.version, parsed.assignor.name, parsed.seconds
    ('2.4.0', 'sticky', 2.0)
    """
    alias, rest = split_alias(name)
    match = _NAME.fullmatch(rest)
    if match is None:
        raise InputError(
            f"unknown assignor {name!r}: name an assignor of a library as "
            "LIBRARY[@VERSION]:ASSIGNOR, such as kafka-clients@2.4.0:sticky"
        )
    library, version = _find(match["library"], match["version"])

    def offered(name: str) -> bool:
        return library.offers(name, version)

    if not offered(match["assignor"]):
        raise InputError(
            f"{library.name} {version} has no assignor {match['assignor']!r}; "
            f"choose from {', '.join(filter(offered, library.assignors))}"
        )
    return LibraryAssignor(
        library=library,
        version=version,
        assignor=library.assignors[match["assignor"]],
        seconds=None if match["seconds"] is None else parse_time_limit(name, match["seconds"]),
        alias=alias,
    )


def parse_library_version(text: str) -> tuple[Library, str]:
    """Parse ``LIBRARY[@VERSION]``, with the newest version as default, or raise InputError."""
    match = _LIBRARY_VERSION.fullmatch(text)
    if match is None:
        raise InputError(f"expected LIBRARY[@VERSION], such as sarama@1.43.3, got {text!r}")
    return _find(match["library"], match["version"])


def repetitions_of(assignor: str) -> int:
    """Return the number of runs per group: 1, or 5 if the results of the assignor vary."""
    if not is_library_assignor(assignor):
        return 1
    return 1 if parse_library_assignor(assignor).assignor.is_repeatable else _REPETITIONS


def _find(name: str, version: str | None) -> tuple[Library, str]:
    library = libraries().get(name)
    if library is None:
        raise InputError(f"unknown library {name!r}; choose from {', '.join(libraries())}")
    if version is None:
        return library, library.versions[0]
    if version not in library.versions:
        raise InputError(
            f"unknown version {version!r} of {name}; choose from {', '.join(library.versions)}"
        )
    return library, version


DRIVERS = Path(__file__).with_name("drivers")
_INSTALL_SECONDS = 1800


def run_step(command: Sequence[str], *, directory: Path, environment: Mapping[str, str]) -> None:
    """Run an installation command, or raise RunError with its error output."""
    program = _find_program(command[0])
    if program is None:
        raise RunError(f"PATH does not contain the required program {command[0]!r}; install it")
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
        raise RunError(f"{command[0]} did not end within {_INSTALL_SECONDS} s; try again") from None
    if done.returncode != 0:
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines[-3:]
        raise RunError(f"{command[0]} failed: {' '.join(errors[:3])[:600]}")


def _find_program(name: str) -> str | None:
    """Find a program on PATH (Java first in JAVA_HOME), or return None."""
    home = os.environ.get("JAVA_HOME")
    if home and name in {"java", "javac"}:
        found = shutil.which(name, path=f"{home}/bin")
        if found is not None:
            return found
    return shutil.which(name)


def missing_programs(runtime: Runtime) -> list[str]:
    """Return the programs that a runtime requires and that PATH does not contain."""
    return [name for name in runtime.programs if _find_program(name) is None]


def _command_words(library: Library, version: str, directory: Path, template: str) -> list[str]:
    """Insert values into a command of ``libraries.yaml``, and split the command into words."""
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
    """Error for an assignor of a library that is not installed."""


def installations() -> Path:
    """Return the directory that contains the installed libraries."""
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "kassay" / "implementations"


def is_installed(library: Library, version: str) -> bool:
    """Return whether a library version is installed with the current driver."""
    digest = _directory(library, version) / _DIGEST
    return digest.is_file() and digest.read_text(encoding="utf-8") == _driver_digest(library)


def how_to_install(library: Library, version: str) -> str:
    """Describe why a version of a library cannot run, with the command that installs it."""
    outdated = (_directory(library, version) / _DIGEST).is_file()
    state = "was installed by another version of kassay" if outdated else "is not installed"
    name = f"{library.name}@{version}"
    return f"{name} {state} in {installations()}; run: kassay libraries install {name}"


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
                _command_words(library, version, partial, step),
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
    """Return the command that starts the driver of a library, or raise NotInstalledError."""
    library, version = assignor.library, assignor.version
    if not is_installed(library, version):
        raise NotInstalledError(how_to_install(library, version))
    return _command(library, version)


def _command(library: Library, version: str) -> tuple[str, ...]:
    template = runtimes()[library.runtime].command
    program, *words = _command_words(library, version, _directory(library, version), template)
    return (_find_program(program) or program, *words)


def jvm_command(library: Library, version: str, *, own: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command of a JVM driver, with the entries ``own`` first in the class path."""
    command = list(_command(library, version))
    place = command.index("-classpath") + 1
    command[place] = os.pathsep.join((*own, command[place]))
    return tuple(command)


def _directory(library: Library, version: str) -> Path:
    return installations() / f"{library.name}@{version}"


def _driver_digest(library: Library) -> str:
    """Return a digest of the source files of a driver, to detect outdated installations."""
    sources = sorted(path for path in (DRIVERS / library.runtime).rglob("*") if path.is_file())
    content = b"".join(path.name.encode() + path.read_bytes() for path in sources)
    return hashlib.sha256(content).hexdigest()
