"""Check the values of command-line options, and print given options.

A failed check is a usage error.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def known_names(
    kind: str, choices: Sequence[str], default: Sequence[str] = ()
) -> Callable[[list[str] | None], list[str]]:
    """Return a Typer callback that removes duplicate names and rejects unknown names."""

    def check(names: list[str] | None) -> list[str]:
        for name in names or ():
            check_name(kind, choices, name)
        return list(dict.fromkeys(names or default))

    return check


def check_name(kind: str, choices: Sequence[str], name: str) -> None:
    """Raise a usage error if the name is not one of the choices."""
    if name not in choices:
        raise typer.BadParameter(f"unknown {kind} {name!r}; choose from {', '.join(choices)}")


def given_options(*groups: "DataclassInstance", without: Sequence[str]) -> list[str]:
    """Return the options with other values than their defaults, as arguments of a command.

    ``without`` are names of options to leave out.
    """
    arguments = []
    for group in groups:
        for option in fields(group):
            value = getattr(group, option.name)
            name = "--" + option.name.replace("_", "-")
            if value == option.default or name in without:
                continue
            if value is True:
                arguments.append(name)
            else:
                for one in value if isinstance(value, list) else [value]:
                    arguments += [name, str(one)]
    return arguments
