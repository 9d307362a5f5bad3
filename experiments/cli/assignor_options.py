"""Options for assignors of one's own."""

from typing import Annotated

import typer

from kassay.experiments.implementations.user_assignors import ANSWER_SECONDS, user_assignor_names
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.model.errors import InputError


def _known(name: str | None) -> str | None:
    if name is not None and name not in ASSIGNORS:
        raise typer.BadParameter(f"no assignor {name!r}; there are {', '.join(ASSIGNORS)}")
    return name


OptionalAssignorName = Annotated[
    str | None,
    typer.Option(
        "--assignor",
        callback=_known,
        metavar="NAME",
        help=f"One of {', '.join(ASSIGNORS)}.",
        show_default=False,
    ),
]
AssignorCommand = Annotated[
    list[str] | None,
    typer.Option(
        "--assignor-cmd",
        metavar="COMMAND",
        help="An assignor of your own: a command that reads a group document a line and "
        "answers each with an assignment document on a line.",
        show_default=False,
    ),
]
AssignorFunction = Annotated[
    list[str] | None,
    typer.Option(
        "--assignor-python",
        metavar="MODULE:FUNCTION",
        help="An assignor of your own: a function of a Group, in a module or a .py file.",
        show_default=False,
    ),
]
AssignorSeconds = Annotated[
    float | None,
    typer.Option(
        "--assignor-timeout",
        min=0.001,
        help="Seconds that one answer of an assignor of your own may take.",
        show_default=f"{ANSWER_SECONDS:g}",
    ),
]


def custom_assignors(
    commands: list[str] | None, functions: list[str] | None, seconds: float | None
) -> list[str]:
    """Name the assignors of one's own that were asked for."""
    try:
        return user_assignor_names(
            commands=commands or (),
            callables=functions or (),
            seconds=ANSWER_SECONDS if seconds is None else seconds,
        )
    except InputError as error:
        raise typer.BadParameter(str(error)) from None


def only_assignor(
    name: str | None,
    commands: list[str] | None,
    functions: list[str] | None,
    seconds: float | None,
) -> str:
    """Name the one assignor that was asked for."""
    asked = [*([name] if name else []), *custom_assignors(commands, functions, seconds)]
    if len(asked) != 1:
        raise typer.BadParameter(
            "name one assignor, by --assignor, --assignor-cmd or --assignor-python"
        )
    return asked[0]
