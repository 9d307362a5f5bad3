"""Options that several commands share."""

from typing import Annotated

import typer

from kassay.experiments.study.families.registry import FAMILIES, USUAL
from kassay.reference.assignors import ASSIGNORS


def _known_assignors(names: list[str] | None) -> list[str]:
    return _known(names, list(ASSIGNORS), "assignor")


def _known_families(names: list[str] | None) -> list[str]:
    return _known(names, list(FAMILIES), "family") if names else list(USUAL)


def _known(names: list[str] | None, all_names: list[str], kind: str) -> list[str]:
    if not names:
        return all_names
    unknown = next((name for name in names if name not in all_names), None)
    if unknown is not None:
        raise typer.BadParameter(f"no {kind} {unknown!r}; there are {', '.join(all_names)}")
    return list(dict.fromkeys(names))


def _known_assignor(name: str) -> str:
    return _known([name], list(ASSIGNORS), "assignor")[0]


AssignorName = Annotated[
    str,
    typer.Option(
        "--assignor",
        callback=_known_assignor,
        metavar="NAME",
        help=f"One of {', '.join(ASSIGNORS)}.",
    ),
]
AssignorNames = Annotated[
    list[str] | None,
    typer.Option(
        "--assignor",
        callback=_known_assignors,
        help=f"Which assignors, repeated; all by default: {', '.join(ASSIGNORS)}.",
        show_default=False,
    ),
]
FamilyNames = Annotated[
    list[str] | None,
    typer.Option(
        "--family",
        callback=_known_families,
        help=f"Which families, repeated: {', '.join(FAMILIES)}. "
        f"By default {USUAL[0]} to {USUAL[-1]}.",
        show_default=False,
    ),
]
TimeLimit = Annotated[
    float, typer.Option("--time-limit", min=0.001, help="Seconds that one search may take.")
]
DeterministicLimit = Annotated[
    float | None,
    typer.Option(
        "--deterministic-limit",
        min=0.001,
        help="CP-SAT's own time for one search, the same on every machine.",
    ),
]
