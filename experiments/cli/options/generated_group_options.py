"""Command-line options for generated groups."""

from typing import Annotated

import typer

Cases = Annotated[
    int,
    typer.Option(
        "--cases",
        min=0,
        help="Number of generated groups, divided evenly among the families. Families of fixed "
        "size are not counted: all their groups are included.",
    ),
]
