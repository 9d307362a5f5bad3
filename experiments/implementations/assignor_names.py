"""Parse, check and display the names of assignors.

A custom assignor is a command, a Python function or a Java class. It runs in a process of its own.
The interface of a Java class determines the driver that runs the class.
The complete name of an assignor contains all that is needed to run it, with absolute paths, so
that Spark workers need nothing else: ``cmd:/home/me/mine``, ``python:/home/me/mine.py:assign`` or
``class:org.example.Mine@/home/me/target/classes``. Tables and results contain `shown_name`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kassay.experiments.implementations.client_libraries import (
    ANSWER_SECONDS,
    driver_command,
    how_to_install,
    installed_versions,
    is_library_assignor,
    jvm_command,
    libraries,
    parse_library_assignor,
    parse_time_limit,
    split_alias,
)
from kassay.reference.assignors import ASSIGNORS, KIND_PORTS, RebalanceProtocol, is_cooperative
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.model.errors import InputError

FORMS = (
    "LIBRARY[@VERSION]:ASSIGNOR",
    "python:MODULE:FUNCTION",
    "cmd:COMMAND",
    "class:CLASS@PATH[:PATH]",
)
_CUSTOM_NAME = re.compile(
    r"(?P<form>cmd|python|class)(@(?P<release>\d+(\.\d+)+))?(@(?P<seconds>[0-9.e+-]+)s)?:"
    r"(?P<target>.+)",
    re.DOTALL,
)
_CALLABLE = re.compile(r"(?P<module>[^:]+):(?P<function>[A-Za-z_][\w.]*)")
_CLASS = re.compile(r"(?P<name>[\w$.]+)@(?P<paths>.+)")
_SERVER = "kassay.experiments.implementations.callable_server"


@dataclass(frozen=True, slots=True)
class JavaClass:
    """Java class of a user that implements the interface of an assignor."""

    name: str
    command: tuple[str, ...]
    library: str
    kind: Kind
    protocol: RebalanceProtocol


def find_java_class(name: str, paths: Sequence[str], *, version: str | None) -> JavaClass:
    """Find a user's Java class and the assignor interface that it implements.

    ``version`` is the version of the library with this interface; None: the newest installed one.
    Raise InputError if a path, the class, the interface or the library is missing.
    """
    for path in paths:
        if not Path(path).exists():
            raise InputError(f"class path: {path!r} does not exist; correct it in class:CLASS@PATH")
    own = [part for path in paths for part in (path, *([f"{path}/*"] * Path(path).is_dir()))]
    installed: dict[str, str] = {}
    for each, release in installed_versions():
        if each.runtime == "jvm" and (each.name not in installed or release == version):
            installed[each.name] = release
    types = _types(name, own, installed)
    if not types:
        raise InputError(
            f"class {name} is in no installed library and in none of these folders and jars; "
            f"correct the paths: {', '.join(paths)}"
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
            f"class {name} implements no known interface of an assignor; if it extends a class of "
            "a library, install it with kassay libraries install LIBRARY"
        )
    if version not in (None, installed.get(library)) or library not in installed:
        needed = version or libraries()[library].versions[0]
        raise InputError(f"class {name}: {how_to_install(libraries()[library], needed)}")
    protocol = RebalanceProtocol.EAGER
    if library == "kafka-broker":
        protocol = RebalanceProtocol.CONSUMER
    elif "COOPERATIVE" in types:
        protocol = RebalanceProtocol.COOPERATIVE
    command = jvm_command(libraries()[library], installed[library], own=own)
    return JavaClass(name, command, library, kind, protocol)


def _types(name: str, own: Sequence[str], installed: Mapping[str, str]) -> list[str]:
    """Return the names of a class, its superclasses and its interfaces, or raise InputError."""
    commands = [jvm_command(libraries()[one], release) for one, release in installed.items()]
    if not commands:
        broker = libraries()["kafka-broker"]
        raise InputError(f"class {name}: {how_to_install(broker, broker.versions[0])}")
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
        raise InputError(f"Java cannot load class {name}; correct this: {done.stderr.strip()}")
    return done.stdout.split()


@dataclass(frozen=True, slots=True)
class CustomAssignor:
    """Command and time limit of a custom assignor, with its Java class if it has one."""

    command: tuple[str, ...]
    seconds: float
    java: JavaClass | None = None


def is_custom_assignor(name: str) -> bool:
    """Return whether a name has the form ``cmd:...``, ``python:...`` or ``class:...``."""
    return _CUSTOM_NAME.fullmatch(split_alias(name)[1]) is not None


@cache
def parse_custom_assignor(name: str) -> CustomAssignor:
    """Parse the name of a custom assignor.

    Raise InputError if the name is invalid, or its class, interface or library is missing.
    """
    match = _match(name)
    has_limit = match["seconds"] is not None
    seconds = parse_time_limit(name, match["seconds"]) if has_limit else ANSWER_SECONDS
    target = match["target"]
    if match["form"] == "class":
        java = find_java_class(*_class_and_paths(target), version=match["release"])
        return CustomAssignor(java.command, seconds, java)
    if match["form"] == "cmd":
        return CustomAssignor(_words(target), seconds)
    if _CALLABLE.fullmatch(target) is None:
        raise InputError(f"python: must be followed by MODULE:FUNCTION, got {target!r}")
    return CustomAssignor((sys.executable, "-m", _SERVER, target), seconds)


def _match(name: str) -> re.Match[str]:
    match = _CUSTOM_NAME.fullmatch(split_alias(name)[1])
    if match is None:
        raise InputError(
            f"unknown assignor {name!r}: the name of a custom assignor must start with cmd:, "
            "python: or class:"
        )
    return match


def _words(command: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise InputError(
            f"the assignor command {command!r} has a syntax error: {str(error).lower()}"
        ) from None
    if not words:
        raise InputError("the assignor name contains no command after cmd:; use cmd:COMMAND")
    return words


def _class_and_paths(target: str) -> tuple[str, list[str]]:
    match = _CLASS.fullmatch(target)
    if match is None:
        raise InputError(f"class: must be followed by CLASS@PATH[:PATH], got {target!r}")
    return match["name"], [path for path in match["paths"].split(":") if path]


def complete_name(name: str) -> str:
    """Check the name of an assignor, and add absolute paths and the version of the library.

    Raise InputError if the name is unknown, or a program, class or library is missing.
    """
    alias, rest = split_alias(name)
    if alias and (alias in ASSIGNORS or alias in KIND_PORTS):
        raise InputError(f"the alias {alias!r} is the name of a Kafka assignor; use another alias")
    if rest in ASSIGNORS or rest in KIND_PORTS:
        return name
    if is_custom_assignor(rest):
        complete = f"{alias}={_absolute(rest)}" if alias else _absolute(rest)
        program = parse_custom_assignor(complete).command[0]
        if shutil.which(program) is None:
            raise InputError(f"cannot run {program!r}: give the path of an executable program")
        return complete
    assignor = parse_library_assignor(name)
    driver_command(assignor)
    return str(assignor)


def _absolute(name: str) -> str:
    """Convert file paths in the name of a custom assignor to absolute paths."""
    match = _match(name)
    prefix, target = name[: match.start("target")], match["target"]
    if match["form"] == "class":
        java_class, paths = _class_and_paths(target)
        return f"{prefix}{java_class}@{':'.join(str(Path(path).absolute()) for path in paths)}"
    if match["form"] == "python":
        module, _, function = target.rpartition(":")
        # A module name means a file of the working directory if there is one.
        file = Path(module if module.endswith(".py") else f"{module}.py")
        return f"{prefix}{file.absolute()}:{function}" if file.is_file() else name
    words = _words(target)
    absolute = [
        str(Path(word).absolute()) if re.search(r"[/.]", word) and Path(word).is_file() else word
        for word in words
    ]
    return name if absolute == [*words] else f"{prefix}{shlex.join(absolute)}"


def shown_name(name: str) -> str:
    """Return the name of an assignor in results, without folders.

    Examples
    --------
    >>> shown_name("python:/home/me/mine.py:assign")
    'python:mine.py:assign'
    >>> shown_name("mine=class:org.example.Mine@/home/me/target/classes")
    'mine'
    """
    alias, rest = split_alias(name)
    match = _CUSTOM_NAME.fullmatch(rest)
    if alias or match is None:
        return alias or name
    target, prefix = match["target"], rest[: match.start("target")]
    if match["form"] == "class":
        return prefix + target.partition("@")[0]
    if match["form"] == "python":
        module, _, function = target.rpartition(":")
        return f"{prefix}{Path(module).name}:{function}"
    return prefix + " ".join(Path(word).name if "/" in word else word for word in target.split(" "))


def check_shown_names(names: Sequence[str]) -> None:
    """Raise InputError if results would show two assignors with the same name."""
    shown: dict[str, str] = {}
    for name in dict.fromkeys(names):
        other = shown.setdefault(shown_name(name), name)
        if other != name:
            raise InputError(
                f"{other} and {name} have the same name {shown_name(name)!r} in results; "
                "give one an alias, such as mine=python:mine.py:assign"
            )


@cache
def kind_of_assignor(name: str) -> Kind:
    """Return the kind of groups for which an assignor is."""
    rest = split_alias(name)[1]
    if rest in KIND_PORTS:
        return KIND_PORTS[rest].kind
    if is_library_assignor(name):
        return parse_library_assignor(name).assignor.kind
    java = parse_custom_assignor(name).java if is_custom_assignor(name) else None
    return Kind.CONSUMER if java is None else java.kind


def check_consumer_kind(name: str) -> None:
    """Raise InputError if an assignor is not for consumer groups."""
    kind = kind_of_assignor(name)
    if kind is not Kind.CONSUMER:
        raise InputError(
            f"{shown_name(name)} reads documents of kind {str(kind)!r}, which this command does "
            "not support; use kassay assign, compare, hunt or study"
        )


def uses_cooperative_protocol(assignor: str) -> bool:
    """Return whether an assignor can use the cooperative protocol."""
    if is_library_assignor(assignor):
        protocol = parse_library_assignor(assignor).assignor.protocol
        return protocol is RebalanceProtocol.COOPERATIVE
    if is_custom_assignor(assignor):
        java = parse_custom_assignor(assignor).java
        return java is not None and java.protocol is RebalanceProtocol.COOPERATIVE
    return is_cooperative(split_alias(assignor)[1])
