"""Command-line options of a search: limits, threads and seed."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from kassay.experiments.cli.interruption import STOP
from kassay.solver.limits import SearchLimits

if TYPE_CHECKING:
    from kassay.experiments.comparison.optimum import CaseLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """Command-line options that limit the time of each search."""

    time_limit: Annotated[
        float,
        typer.Option(
            min=0,
            help="Time limit in seconds per group. In kassay what-if: per scenario. In kassay "
            "members: per tested number of members. In kassay compare, agreement, study, history "
            "and hunt: per search of the solver.",
        ),
    ] = 60.0
    deterministic_limit: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="UNITS",
            help="Limit per search in units of CP-SAT's deterministic time. With this "
            "limit, results do not depend on the speed of the machine, unless --time-limit is "
            "reached first. Without this limit, only --time-limit stops a search.",
        ),
    ] = None

    def case_limits(self) -> "CaseLimits":
        """Return the limits for comparisons of assignors in a process that Ctrl-C ends."""
        from kassay.experiments.comparison.optimum import CaseLimits

        return CaseLimits(time=self.time_limit, deterministic=self.deterministic_limit)

    def interruptible_limits(self) -> "CaseLimits":
        """Return the limits for comparisons of assignors that Ctrl-C can stop."""
        return replace(self.case_limits(), stop=STOP)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(LimitOptions):
    """Command-line options for the limits, threads and seed of each search."""

    workers: Annotated[int, typer.Option(min=1, help="Number of CP-SAT threads.")] = 1
    seed: Annotated[int, typer.Option(help="Random seed of the search.")] = 0

    def limits(self) -> SearchLimits:
        """Return the limits for a search that Ctrl-C can stop."""
        return SearchLimits(
            time=self.time_limit,
            deterministic=self.deterministic_limit,
            workers=self.workers,
            stop=STOP,
        )
