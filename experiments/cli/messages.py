"""Exit codes, and messages on standard error."""

import typer

BAD_INPUT = 2
"""Exit code for bad input and usage errors."""
NOT_REACHED = 1
"""Exit code if a requested condition is not met."""
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C stopped."""


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
