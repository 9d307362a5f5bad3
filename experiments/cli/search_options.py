"""Options for measures, search limits, added members, seeds and Spark."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kassay.reference.model.metrics import Measure
from kassay.solver.limits import SearchLimits

if TYPE_CHECKING:
    from kassay.experiments.compare import CaseLimits

_SPARK_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|(spark|k8s|sc)://.+|yarn")


def _spark_master(master: str | None) -> str | None:
    if master is not None and not _SPARK_MASTER.fullmatch(master):
        raise typer.BadParameter(
            f"must be a Spark master such as local[4] or spark://host:7077, got {master!r}"
        )
    return master


ImbalanceMeasure = Annotated[
    Measure | None,
    typer.Option(
        "--imbalance",
        metavar="NAME",
        help=f"Imbalance measure to minimise: {', '.join(Measure)}.",
        show_default="sum_of_squares, or makespan if weights differ",
    ),
]
SparkMaster = Annotated[
    str | None,
    typer.Option(
        "--master",
        callback=_spark_master,
        metavar="MASTER",
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
FirstSeed = Annotated[
    int, typer.Option("--first-seed", help="First random seed of each family of generated groups.")
]
Cases = Annotated[
    int,
    typer.Option(
        "--cases", min=0, help="Number of generated groups, over all seeded families together."
    ),
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like",
        metavar="MEMBER",
        help="Added members get the subscription of this member.",
        show_default="subscription to all topics",
    ),
]
Capacity = Annotated[
    int | None,
    typer.Option(
        "--capacity",
        min=0,
        help="Maximum load of each member without a capacity in the group document.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """Options that limit each search."""

    time_limit: Annotated[float, typer.Option(min=0, help="Time limit per search, in seconds.")] = (
        60.0
    )
    deterministic_limit: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="UNITS",
            help="Limit per search in units of CP-SAT's deterministic time. With it, results do "
            "not depend on the speed of the machine, unless --time-limit is reached first. Without "
            "it, only --time-limit stops a search.",
        ),
    ] = None

    def case_limits(self) -> "CaseLimits":
        """Return the limits of a comparison of assignors."""
        from kassay.experiments.compare import CaseLimits

        return CaseLimits(time=self.time_limit, deterministic=self.deterministic_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(LimitOptions):
    """Options for the limits, threads and seed of each search."""

    workers: Annotated[int, typer.Option(min=1, help="Number of CP-SAT threads.")] = 1
    seed: Annotated[int, typer.Option(help="Random seed of the search.")] = 0

    def limits(self) -> SearchLimits:
        """Return the limits of a search."""
        return SearchLimits(
            time=self.time_limit, deterministic=self.deterministic_limit, workers=self.workers
        )
