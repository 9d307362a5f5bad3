"""Command-line options of a search: limits, threads, seed, groups and added members."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kassay.experiments.cli.options.option_groups import option
from kassay.experiments.cli.run_control import STOP
from kassay.solver.limits import SearchLimits

if TYPE_CHECKING:
    from kassay.experiments.comparison.optimum import CaseLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """Command-line options that limit the time of each search."""

    time_limit: float = option(
        60.0,
        "Time limit in seconds per group, for all searches together; the start of kassay and the "
        "output are not counted. If kassay solves a group for both limits of its assumed "
        "subscriptions, the limit applies to each of them (in kassay plan: to both together). In "
        "kassay agreement, study, history and hunt: per search.",
        min=0,
    )
    deterministic_limit: float | None = option(
        None,
        "Limit per search in units of CP-SAT's deterministic time. With this limit, results do "
        "not depend on the speed of the machine, unless --time-limit is reached first. Without "
        "this limit, searches that reach a part of --time-limit can give other results on other "
        "machines.",
        min=0,
        metavar="UNITS",
    )

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

    workers: int = option(1, "Number of CP-SAT threads.", min=1)
    seed: int = option(0, "Random seed of the search.")

    def limits(self) -> SearchLimits:
        """Return the limits for a search that Ctrl-C can stop."""
        return SearchLimits(
            time=self.time_limit,
            deterministic=self.deterministic_limit,
            workers=self.workers,
            stop=STOP,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedMembers:
    """Command-line options for members to add, and for lag as the weight."""

    like: str | None = option(
        None,
        "Added members get the subscription, capacity, speed and rack of this member. Required "
        "if members differ in speed.",
        metavar="MEMBER",
        show_default="subscription to all topics, no rack",
    )
    allow_lag: bool = option(
        False,
        "Compute a number of members even if lag is the weight. Lag measures the backlog, not "
        "the traffic: the result is the number of members that can share the backlog.",
    )


def cases_option(default: int) -> Any:
    """Declare the number of generated groups."""
    return option(
        default,
        "Number of generated groups, divided evenly among the families. Families of fixed size "
        "are not counted: all their groups are included.",
        min=0,
    )


def downtime_option() -> Any:
    """Declare the time of a restart."""
    return option(10.0, "Time during which the process of a restarting member does not run.", min=0)


def pause_option() -> Any:
    """Declare the time between the restarts of a rolling restart."""
    return option(
        30.0, "Time from the start of a restarted member to the stop of the next one.", min=0.1
    )


def capacity_option() -> Any:
    """Declare the default capacity of members."""
    return option(
        None, "Maximum load of each member without a capacity in the group document.", min=0
    )
