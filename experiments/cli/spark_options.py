"""Options that select the Spark master and the number of Spark tasks."""

import re
from typing import Annotated

import typer

_SPARK_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|(spark|k8s|sc)://.+|yarn")


def _spark_master(master: str | None) -> str | None:
    if master is not None and not _SPARK_MASTER.fullmatch(master):
        raise typer.BadParameter(
            f"must be a Spark master such as local[4] or spark://host:7077, got {master!r}"
        )
    return master


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
