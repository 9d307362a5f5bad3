"""Command-line options that select Kafka's assignors and custom assignors."""

import importlib.machinery
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import typer

from kassay.experiments.cli.application import check_name, option
from kassay.experiments.implementations.installation import driver_command
from kassay.experiments.implementations.library_catalogue import (
    ANSWER_SECONDS,
    custom_assignor_names,
    is_library_assignor,
    kind_of_assignor,
    parse_library_assignor,
)
from kassay.reference.assignors import ASSIGNORS, DEFAULT_ASSIGNORS
from kassay.reference.assignors.kind_ports import KIND_PORTS
from kassay.reference.model.errors import InputError, UsageError


def known_assignor(name: str, *, of_each_kind: bool = False) -> str:
    """Check the name of a port or of an assignor of an installed library.

    Return the complete name, with the version of the library. Assignors of other kinds of groups
    are errors unless ``of_each_kind`` is true.
    """
    if name in KIND_PORTS:
        if of_each_kind:
            return name
        raise typer.BadParameter(
            f"{name} reads documents of kind {str(KIND_PORTS[name].kind)!r}, which this "
            "command does not support; use kassay assign, compare, hunt or study"
        )
    if not is_library_assignor(name):
        check_name("assignor", [*ASSIGNORS, "LIBRARY[@VERSION]:ASSIGNOR"], name)
        return name
    try:
        assignor = parse_library_assignor(name)
        if not of_each_kind:
            assignor.check_kind()
        driver_command(assignor)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return str(assignor)


def assignors_of_one_kind(names: Sequence[str] | None) -> list[str]:
    """Check the names of assignors of one kind. The default is `DEFAULT_ASSIGNORS`."""
    known = [known_assignor(name, of_each_kind=True) for name in names or DEFAULT_ASSIGNORS]
    if len({kind_of_assignor(name) for name in known}) > 1:
        raise typer.BadParameter(f"assignors of different kinds of documents: {', '.join(known)}")
    return list(dict.fromkeys(known))


_LIBRARIES = (
    "or an assignor of an installed library, such as kafka-clients@2.4.0:sticky (see "
    "`kassay libraries`)."
)


def assignor_option(*, text: str = "Kafka assignor", of_each_kind: bool = False) -> Any:
    """Declare one assignor: of consumer groups, or of each kind of documents."""
    names = [*ASSIGNORS, *KIND_PORTS] if of_each_kind else ASSIGNORS

    def check(name: str | None) -> str | None:
        return None if name is None else known_assignor(name, of_each_kind=of_each_kind)

    text = f"{text}: {', '.join(names)}; {_LIBRARIES}"
    return option(None, text, callback=check, metavar="NAME")


def assignors_option(*, is_checked: bool = True) -> Any:
    """Declare the assignors of a comparison, of one kind of documents."""
    return option(
        None,
        f"Kafka assignor, repeatable: {', '.join([*ASSIGNORS, *KIND_PORTS])}; {_LIBRARIES}",
        callback=assignors_of_one_kind if is_checked else None,
        metavar="NAME",
        show_default="all but legacy-range and legacy-roundrobin",
    )


def _finite(seconds: float) -> float:
    if not isfinite(seconds):
        raise typer.BadParameter(f"--assignor-timeout: expected a finite number, got {seconds}")
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomAssignors:
    """Command-line options that select custom assignors."""

    assignor_cmd: list[str] | None = option(
        None,
        "Custom assignor: a command that reads one group document per line and writes one "
        "assignment document per line.",
        metavar="COMMAND",
    )
    assignor_python: list[str] | None = option(
        None,
        "Custom assignor: a Python function that takes a Group and returns an Assignment. MODULE "
        "is a module name or a .py file.",
        metavar="MODULE:NAME",
    )
    assignor_timeout: float = option(
        ANSWER_SECONDS,
        "Time limit per group for a custom assignor or an assignor of a library, in seconds.",
        min=0.001,
        callback=_finite,
    )

    def names(self, selected: Sequence[str] = ()) -> list[str]:
        """Check the custom assignors of the options, and return their names.

        The names ``selected`` precede them. They receive the time limit, if they have none.
        """
        for command in self.assignor_cmd or ():
            _check_command(command)
        for function in self.assignor_python or ():
            _check_module(function.rpartition(":")[0])
        try:
            custom = custom_assignor_names(
                commands=self.assignor_cmd or (),
                callables=self.assignor_python or (),
                seconds=self.assignor_timeout,
            )
            return [*(self._limited(name) for name in selected), *custom]
        except (InputError, UsageError) as error:
            raise typer.BadParameter(str(error)) from None

    def single(self, name: str | None) -> str:
        """Return the name of the one assignor that the options must select.

        Raise a usage error unless exactly one is selected.
        """
        names = self.names([name] if name else [])
        if len(names) != 1:
            raise typer.BadParameter(
                f"give exactly one of --assignor, --assignor-cmd and --assignor-python, "
                f"got {len(names)}"
            )
        return names[0]

    def _limited(self, name: str) -> str:
        """Return the name with the time limit, if it is the name of an assignor of a library."""
        if not is_library_assignor(name):
            return name
        assignor = parse_library_assignor(name)
        if assignor.seconds is not None or self.assignor_timeout == ANSWER_SECONDS:
            return name
        return str(replace(assignor, seconds=self.assignor_timeout))


def _check_command(command: str) -> None:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise typer.BadParameter(f"--assignor-cmd: {command!r}: {str(error).lower()}") from None
    if not words:
        raise typer.BadParameter("--assignor-cmd: the command is empty")
    if shutil.which(words[0]) is None:
        raise typer.BadParameter(
            f"--assignor-cmd: {words[0]!r} does not exist or is not executable"
        )


def _check_module(module: str) -> None:
    if module.endswith(".py"):
        found = Path(module).is_file()
    else:
        root = module.partition(".")[0]
        here = [str(Path.cwd()), *sys.path]
        found = not root or importlib.machinery.PathFinder.find_spec(root, here) is not None
    if not found:
        raise typer.BadParameter(f"--assignor-python: module {module!r} does not exist")


def cases_option(default: int) -> Any:
    """Declare the number of generated groups."""
    return option(
        default,
        "Number of generated groups, divided evenly among the families. Families of fixed size "
        "are not counted: all their groups are included.",
        min=0,
    )
