"""Command-line options for generated groups: their number and the first random seed."""

from typing import Annotated

import typer

FirstSeed = Annotated[
    int, typer.Option("--first-seed", help="First random seed of each family of generated groups.")
]
Cases = Annotated[
    int,
    typer.Option(
        "--cases",
        min=0,
        help="Number of generated groups, divided evenly among the families. Families of fixed "
        "size are not counted: all their groups are included.",
    ),
]
