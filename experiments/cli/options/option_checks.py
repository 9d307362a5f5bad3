"""Check the values of command-line options, and print given options.

A failed check is a usage error.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
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


def parse_share(text: str) -> Fraction:
    """Parse a share, such as 0.05, 1/20 or 5%. Any other text is a usage error.

    Examples
    --------
    >>> parse_share("2%"), parse_share("0.02")
    (Fraction(1, 50), Fraction(1, 50))
    """
    number = text.strip()
    try:
        share = Fraction(number.removesuffix("%").rstrip()) / (100 if number.endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if share < 0:
        raise typer.BadParameter(f"a share must be at least 0, such as 0.05 or 5%, got {text!r}")
    return share


def check_directory(path: Path | None) -> Path | None:
    """Raise a usage error if an output directory is a file or lies in one."""
    for part in () if path is None else (path, *path.parents):
        if part.exists() and not part.is_dir():
            raise typer.BadParameter(f"must be a directory, but {part} is a file")
    return path


def given_options(*groups: "DataclassInstance", without: Sequence[str] = ()) -> list[str]:
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
