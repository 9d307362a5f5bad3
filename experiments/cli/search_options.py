"""Options for searches and their input: measure, limits, members, seeds and Spark."""

from typing import Annotated

import typer

from kassay.experiments.cli.option_checks import spark_master
from kassay.reference.model.metrics import Measure

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
SparkMaster = Annotated[
    str | None,
    typer.Option(
        "--master",
        callback=spark_master,
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
Like = Annotated[
    str | None,
    typer.Option(
        "--like",
        metavar="MEMBER",
        help="Member that added members copy.",
        show_default="subscription to all topics",
    ),
]
Capacity = Annotated[
    int | None,
    typer.Option(
        "--capacity", min=0, help="Capacity of members that have none.", show_default=False
    ),
]
