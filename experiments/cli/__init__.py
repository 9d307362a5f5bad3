"""The command line: ``kassay COMMAND``."""

import importlib
import importlib.metadata
import os
import sys
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from typer.core import TyperGroup

from kassay.reference.model.errors import KassayError

BAD_INPUT = 2


class _Entry(NamedTuple):
    module: str
    function: str


COMMANDS = {
    "import": _Entry("kassay.experiments.cli.commands.import_", "import_"),
    "assign": _Entry("kassay.experiments.cli.commands.assign", "assign"),
    "solve": _Entry("kassay.experiments.cli.commands.solve", "solve"),
    "compare": _Entry("kassay.experiments.cli.commands.compare", "compare"),
    "explain": _Entry("kassay.experiments.cli.commands.explain", "explain"),
    "frontier": _Entry("kassay.experiments.cli.commands.frontier", "frontier"),
    "members": _Entry("kassay.experiments.cli.commands.members", "members"),
    "verify": _Entry("kassay.experiments.cli.commands.verify", "verify"),
    "what-if": _Entry("kassay.experiments.cli.commands.what_if", "what_if"),
    "plan": _Entry("kassay.experiments.cli.commands.plan", "plan"),
    "simulate": _Entry("kassay.experiments.cli.commands.simulate", "simulate"),
    "study": _Entry("kassay.experiments.cli.commands.study", "study"),
    "history": _Entry("kassay.experiments.cli.commands.history", "history"),
    "hunt": _Entry("kassay.experiments.cli.commands.hunt", "hunt"),
    "report": _Entry("kassay.experiments.cli.commands.report", "report"),
    "doctor": _Entry("kassay.experiments.cli.commands.doctor", "doctor"),
}


class CommandTable(TyperGroup):
    """Loads a command's module when it is asked for: OR-Tools and Spark are slow to import."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Name the commands, in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        entry = COMMANDS[cmd_name]
        function = getattr(importlib.import_module(entry.module), entry.function)
        single = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        single.command(cmd_name, no_args_is_help=False)(function)
        return typer.main.get_command(single)


app = typer.Typer(
    cls=CommandTable,
    name="kassay",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        packages = ("ortools", "pyspark", "networkx", "pandas")
        parts = [f"{name} {importlib.metadata.version(name)}" for name in packages]
        version = importlib.metadata.version("kassay")
        python = sys.version.split()[0]
        typer.echo(f"kassay {version} ({', '.join(parts)}, Python {python})")
        raise typer.Exit


@app.callback()
def kassay(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show versions."),
    ] = False,
) -> None:
    """Assay how Kafka spreads partitions over consumers: greedy against the proven optimum.

    Commands read group documents (JSON or JSON Lines) from a file or from standard
    input, and write one JSON line a group. Exit codes: 0 done; 1 something asked for was
    not reached; 2 bad input or usage.

    Example: `kassay import captures/ | kassay compare - --assignor sticky`
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; bad input becomes one line on stderr and exit code 2."""
    try:
        return app(arguments)
    except (KassayError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader of our output went away; leave quietly, as any filter does.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        print_error(_words(error))
        sys.exit(BAD_INPUT)


def print_error(message: str) -> None:
    """Write one error line to stderr."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    # Under NO_COLOR rich leaves out colours but not bold.
    console.print("kassay:", style="" if console.no_color else "bold red", end=" ")
    console.print(message, markup=False)


def print_note(message: str) -> None:
    """Write one line to stderr that is no error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"kassay: {message}", markup=False)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or 'cannot be read').lower()}"
    return str(error)
