"""Command-line options for the Spark master, configuration and number of tasks."""

import re
import time
from dataclasses import dataclass
from typing import Any

import typer

from kassay.experiments.cli.option_groups import option

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

    master: str | None = option(
        None,
        "Spark master: local[N], spark://HOST:PORT, yarn, k8s://..., sc://HOST:PORT.",
        callback=_spark_master,
        metavar="MASTER",
        show_default="local[*], or the value of spark-submit",
    )
    conf: list[str] | None = option(
        None, "Spark configuration property; repeatable.", callback=_pairs, metavar="KEY=VALUE"
    )

    def settings(self) -> dict[str, str]:
        """Return the Spark configuration properties as a dictionary."""
        return {key: value for key, _, value in (pair.partition("=") for pair in self.conf or ())}

    def run_record(self, session: Any, begin: float) -> dict[str, object]:
        """Return the part of a manifest that differs between runs: master and elapsed time."""
        return {
            "master": self.master or session.conf.get("spark.master"),
            "seconds": round(time.perf_counter() - begin, 1),
        }


def tasks_option() -> Any:
    """Declare the number of Spark tasks."""
    return option(
        None,
        "Number of Spark tasks among which the work is divided.",
        min=1,
        show_default="depends on the number of cases",
    )
