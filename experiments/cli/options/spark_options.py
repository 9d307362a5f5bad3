"""Command-line options for the Spark master, configuration and number of tasks."""

import re
from dataclasses import dataclass
from typing import Annotated

import typer

_SPARK_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|(spark|k8s|sc)://.+|yarn")


def _spark_master(master: str | None) -> str | None:
    if master is not None and not _SPARK_MASTER.fullmatch(master):
        raise typer.BadParameter(
            f"must be a Spark master such as local[4] or spark://host:7077, got {master!r}"
        )
    return master


def _pairs(pairs: list[str] | None) -> list[str]:
    for pair in pairs or ():
        if not re.match("[^=]+=", pair):
            raise typer.BadParameter(f"must be KEY=VALUE, got {pair!r}")
    return pairs or []


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Command-line options for the master and the configuration of the Spark session."""

    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            callback=_spark_master,
            metavar="MASTER",
            help="Spark master: local[N], spark://HOST:PORT, yarn, k8s://..., sc://HOST:PORT.",
            show_default="local[*], or the value of spark-submit",
        ),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            callback=_pairs, metavar="KEY=VALUE", help="Spark configuration property; repeatable."
        ),
    ] = None

    def settings(self) -> dict[str, str]:
        """Return the Spark configuration properties as a dictionary."""
        return {key: value for key, _, value in (pair.partition("=") for pair in self.conf or ())}


SparkTasks = Annotated[
    int | None,
    typer.Option(
        "--tasks",
        min=1,
        help="Number of Spark tasks among which the work is divided.",
        show_default="depends on the number of cases",
    ),
]
