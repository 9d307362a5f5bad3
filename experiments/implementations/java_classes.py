"""Commands that run a Java class of a user. Its interface decides which driver runs it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.implementations.installation import installed_versions, jvm_command
from kassay.experiments.implementations.library_catalogue import libraries
from kassay.reference.assignors import RebalanceProtocol
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.model.errors import InputError


@dataclass(frozen=True, slots=True)
class JavaClass:
    """A Java class of a user: the command that runs it, and what its interface implies."""

    name: str
    command: tuple[str, ...]
    library: str
    kind: Kind
    protocol: RebalanceProtocol


def find_java_class(name: str, paths: Sequence[str], *, version: str | None) -> JavaClass:
    """Find the interface of a class in jars, folders, and the jars of the folders.

    ``version`` is that of the library with the interface, None for the newest installed one.

    Raise InputError if a path, the class, its interface or the library is missing.
    """
    for path in paths:
        if not Path(path).exists():
            raise InputError(f"class path: {path!r} does not exist")
    own = [part for path in paths for part in (path, *([f"{path}/*"] * Path(path).is_dir()))]
    installed: dict[str, str] = {}
    for each, release in installed_versions():
        if each.runtime == "jvm" and (each.name not in installed or release == version):
            installed[each.name] = release
    types = _types(name, own, installed)
    if not types:
        raise InputError(
            f"class {name} is in none of these folders and jars, and in no installed library: "
            + ", ".join(paths)
        )
    found = (
        (one.name, one.interfaces[interface])
        for interface in types
        for one in libraries().values()
        if interface in one.interfaces
    )
    library, kind = next(found, (None, None))
    if library is None or kind is None:
        raise InputError(
            f"class {name} implements no interface of an assignor, or extends a class of a library "
            "that is not installed; see kassay libraries"
        )
    if version not in (None, installed.get(library)) or library not in installed:
        missing = f"{library}@{version or libraries()[library].versions[0]}"
        raise InputError(
            f"class {name} needs {missing}, which is not installed; "
            f"run: kassay libraries install {missing}"
        )
    protocol = RebalanceProtocol.EAGER
    if library == "kafka-broker":
        protocol = RebalanceProtocol.CONSUMER
    elif "COOPERATIVE" in types:
        protocol = RebalanceProtocol.COOPERATIVE
    command = jvm_command(libraries()[library], installed[library], own=own)
    return JavaClass(name, command, library, kind, protocol)


def _types(name: str, own: Sequence[str], installed: Mapping[str, str]) -> list[str]:
    """Return the names of a class, the classes that it extends, and its interfaces."""
    commands = [jvm_command(libraries()[one], release) for one, release in installed.items()]
    if not commands:
        raise InputError(
            f"class {name} needs an installed library; run: kassay libraries install kafka-broker"
        )
    place = commands[0].index("-classpath") + 1
    classpath = os.pathsep.join((*own, *(command[place] for command in commands)))
    done = subprocess.run(  # noqa: S603 - the user's own class
        [*commands[0][:place], classpath, "ListTypes", name],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise InputError(f"class {name} cannot be loaded: {done.stderr.strip()}")
    return done.stdout.split()
