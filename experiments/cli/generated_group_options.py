"""Command-line options for generated groups: their number and the first random seed."""

from typing import Annotated

import typer

FirstSeed = Annotated[
    int, typer.Option("--first-seed", help="First random seed of each family of generated groups.")
]
Cases = Annotated[
    int,
    typer.Option(
        "--cases", min=0, help="Total number of groups that all families with seeds generate."
    ),
]
