"""Command-line options that select assignors."""

from collections.abc import Sequence
from typing import Any

import typer

from kassay.experiments.cli.application import REQUIRED, check_name, option
from kassay.experiments.implementations import assignor_names
from kassay.experiments.implementations.library_catalogue import is_library_assignor, split_alias
from kassay.reference.assignors import ASSIGNORS, DEFAULT_ASSIGNORS, KIND_PORTS
from kassay.reference.model.errors import InputError


def known_assignor(name: str, *, of_each_kind: bool = False) -> str:
    """Check the name of a port, of a custom assignor or of an assignor of an installed library.

    Return the complete name, with the version of the library. Assignors of other kinds of groups
    are errors unless ``of_each_kind`` is true.
    """
    rest = split_alias(name)[1]
    if not (assignor_names.is_custom_assignor(rest) or is_library_assignor(rest)):
        check_name("assignor", [*ASSIGNORS, *KIND_PORTS, *assignor_names.FORMS], rest)
    try:
        complete = assignor_names.complete_name(name)
        if not of_each_kind:
            assignor_names.check_consumer_kind(complete)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return complete


def assignors_of_one_kind(names: Sequence[str] | None) -> list[str]:
    """Check the names of assignors of one kind. The default is `DEFAULT_ASSIGNORS`."""
    known = [known_assignor(name, of_each_kind=True) for name in names or DEFAULT_ASSIGNORS]
    assignor_names.check_shown_names(known)
    if len({assignor_names.kind_of_assignor(name) for name in known}) > 1:
        raise typer.BadParameter(f"assignors of different kinds of documents: {', '.join(known)}")
    return list(dict.fromkeys(known))


_REPEATABLE = "Kafka assignor, repeatable in compare and study"
_FURTHER = (
    "an assignor of an installed library, such as kafka-clients@2.4.0:sticky (see `kassay "
    "libraries`); a custom assignor: python:MODULE:FUNCTION, with a module name or a .py file, "
    "cmd:COMMAND, or class:CLASS@PATH[:PATH], with jars or folders. The time limit per group is 10 "
    "seconds, or as in python@30s:MODULE:FUNCTION. ALIAS=NAME sets its name in results."
)


def assignor_option(
    *, text: str = "Kafka assignor", of_each_kind: bool = False, default: Any = None
) -> Any:
    """Declare one assignor: of consumer groups, or of each kind of documents."""
    names = [*ASSIGNORS, *KIND_PORTS] if of_each_kind else ASSIGNORS

    def check(name: str | None) -> str | None:
        return None if name is None else known_assignor(name, of_each_kind=of_each_kind)

    text = f"{text}: {', '.join(names)}; {_FURTHER}"
    return option(default, callback=check, metavar="NAME", help=text)


def required_assignor() -> Any:
    """Declare the one assignor, of any kind of documents, that a command requires."""
    return assignor_option(text=_REPEATABLE, of_each_kind=True, default=REQUIRED)


def assignors_option() -> Any:
    """Declare the assignors of a comparison; `assignors_of_one_kind` checks them."""
    return option(
        None,
        metavar="NAME",
        show_default="all but legacy-range and legacy-roundrobin",
        help=f"{_REPEATABLE}: {', '.join([*ASSIGNORS, *KIND_PORTS])}; {_FURTHER}",
    )
