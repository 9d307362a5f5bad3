"""Options of the commands that search: how long, and how."""

from typing import Annotated

import typer

from kassay.solver.objective import Measure

FirstLevel = Annotated[
    Measure | None,
    typer.Option(
        "--imbalance",
        help="Measure of imbalance.",
        show_default="sum_of_squares, or makespan where weights differ",
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        "--time-limit",
        min=0,
        help="Seconds a group, number of members or scenario; spending them costs proof.",
    ),
]
WorkLimit = Annotated[
    float | None,
    typer.Option(
        "--deterministic-limit",
        min=0,
        help="CP-SAT's own time for each search, the same on every machine.",
    ),
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Threads of CP-SAT.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the search.")]
