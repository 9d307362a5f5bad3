"""Check the values of command-line options. A failed check is a usage error."""

from collections.abc import Callable, Sequence

import typer


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
