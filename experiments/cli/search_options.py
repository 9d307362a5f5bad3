"""Options for searches: measure, limits, workers, seeds and Spark."""

import re
from typing import Annotated

import typer

from kassay.reference.model.metrics import Measure

_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|(spark|k8s|sc)://.+|yarn")

ImbalanceMeasure = Annotated[
    Measure | None,
    typer.Option(
        "--imbalance",
        help="Imbalance measure to minimise.",
        show_default="sum_of_squares, or makespan if weights differ",
    ),
]
TimeLimit = Annotated[
    float, typer.Option("--time-limit", min=0, help="Time limit per search, in seconds.")
]
DeterministicLimit = Annotated[
    float | None,
    typer.Option(
        "--deterministic-limit",
        min=0,
        help="Limit per search in CP-SAT's deterministic time, equal on all machines.",
    ),
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Number of CP-SAT threads.")]
Seed = Annotated[int, typer.Option("--seed", help="Random seed of the search.")]


def _spark_master(master: str | None) -> str | None:
    if master is not None and not _MASTER.fullmatch(master):
        raise typer.BadParameter(
            f"{master!r} is no Spark master such as local[4] or spark://host:7077"
        )
    return master


SparkMaster = Annotated[
    str | None,
    typer.Option(
        "--master",
        callback=_spark_master,
        help="Spark master: local[N], spark://HOST:PORT, yarn, k8s://..., sc://HOST:PORT.",
        show_default="local[*], or the value of spark-submit",
    ),
]
SparkTasks = Annotated[
    int | None,
    typer.Option(
        "--tasks",
        min=1,
        help="Number of Spark tasks.",
        show_default="depends on the number of cases",
    ),
]
FirstSeed = Annotated[int, typer.Option("--first-seed", help="First seed of each family.")]
Cases = Annotated[
    int,
    typer.Option("--cases", min=0, help="Number of seeds, over all seeded families together."),
]
