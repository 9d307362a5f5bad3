"""Command-line options that select Kafka's assignors and custom assignors."""

import importlib.machinery
import shlex
import shutil
import sys
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.cli.option_checks import check_name, known_names
from kassay.experiments.implementations.user_assignors import ANSWER_SECONDS, user_assignor_names
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.model.errors import InputError, UsageError


def _known_assignor(name: str | None) -> str | None:
    if name is not None:
        check_name("assignor", list(ASSIGNORS), name)
    return name


_ASSIGNOR = typer.Option(
    "--assignor",
    callback=_known_assignor,
    metavar="NAME",
    help=f"Kafka assignor: {', '.join(ASSIGNORS)}.",
)
AssignorName = Annotated[str, _ASSIGNOR]
OptionalAssignorName = Annotated[str | None, _ASSIGNOR]
AssignorNames = Annotated[
    list[str] | None,
    typer.Option(
        "--assignor",
        callback=known_names("assignor", list(ASSIGNORS), list(ASSIGNORS)),
        metavar="NAME",
        help=f"Kafka assignor, repeatable: {', '.join(ASSIGNORS)}.",
        show_default="all",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomAssignors:
    """Command-line options that select custom assignors."""

    assignor_cmd: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help="Custom assignor: a command that reads one group document per line and writes "
            "one assignment document per line.",
            show_default=False,
        ),
    ] = None
    assignor_python: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Custom assignor: a Python function that takes a Group and returns an "
            "Assignment. MODULE is a module name or a .py file.",
            show_default=False,
        ),
    ] = None
    assignor_timeout: Annotated[
        float,
        typer.Option(min=0.001, help="Time limit per group for a custom assignor, in seconds."),
    ] = ANSWER_SECONDS

    def names(self) -> list[str]:
        """Check the custom assignors of the options, and return their names."""
        for command in self.assignor_cmd or ():
            _check_command(command)
        for function in self.assignor_python or ():
            _check_module(function.rpartition(":")[0])
        if not isfinite(self.assignor_timeout):
            raise typer.BadParameter(
                f"--assignor-timeout: expected a finite number, got {self.assignor_timeout}"
            )
        try:
            return user_assignor_names(
                commands=self.assignor_cmd or (),
                callables=self.assignor_python or (),
                seconds=self.assignor_timeout,
            )
        except (InputError, UsageError) as error:
            raise typer.BadParameter(str(error)) from None

    def single(self, name: str | None) -> str:
        """Return the name of the only assignor that the options select.

        Raise a usage error unless exactly one is selected.
        """
        names = [*([name] if name else []), *self.names()]
        if len(names) != 1:
            raise typer.BadParameter(
                f"give exactly one of --assignor, --assignor-cmd and --assignor-python, "
                f"got {len(names)}"
            )
        return names[0]


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
