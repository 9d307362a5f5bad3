"""Checks of option values. A failed check is a usage error."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import typer

_PLOT_SUFFIXES = (".svg", ".png")
_SPARK_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|(spark|k8s|sc)://.+|yarn")


def known_names(
    kind: str, choices: Sequence[str], default: Sequence[str] = ()
) -> Callable[[list[str] | None], list[str]]:
    """Return an option callback that removes duplicates and rejects unknown names."""

    def check(names: list[str] | None) -> list[str]:
        for name in names or ():
            check_name(kind, choices, name)
        return list(dict.fromkeys(names or default))

    return check


def check_name(kind: str, choices: Sequence[str], name: str) -> None:
    """Raise a usage error if the name is not one of the choices."""
    if name not in choices:
        raise typer.BadParameter(f"no {kind} {name!r}; choose from {', '.join(choices)}")


def plot_file(file: Path | None) -> Path | None:
    """Check that the suffix of a plot file is supported."""
    if file is not None and file.suffix not in _PLOT_SUFFIXES:
        raise typer.BadParameter(
            f"the file name must end in {' or '.join(_PLOT_SUFFIXES)}, got {file.name!r}"
        )
    return file


def spark_master(master: str | None) -> str | None:
    """Check the form of a Spark master URL."""
    if master is not None and not _SPARK_MASTER.fullmatch(master):
        raise typer.BadParameter(
            f"{master!r} is no Spark master such as local[4] or spark://host:7077"
        )
    return master
