"""Command-line options of planned changes: added members, capacities and restarts."""

from dataclasses import dataclass
from typing import Any

from kassay.experiments.cli.option_groups import option


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


def downtime_option() -> Any:
    """Declare the time of a restart."""
    return option(10.0, "Time during which the process of a restarting member does not run.", min=0)


def pause_option() -> Any:
    """Declare the time between the restarts of a rolling restart."""
    return option(
        30.0, "Time from the start of a restarted member to the stop of the next one.", min=0.1
    )
