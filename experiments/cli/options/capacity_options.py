"""Command-line options for members' capacities and the properties of added members."""

from typing import Any

from kassay.experiments.cli.options.option_groups import option


def like_option() -> Any:
    """Declare the member that added members resemble."""
    return option(
        None,
        "Added members get the subscription, capacity, speed and rack of this member. Required "
        "if members differ in speed.",
        metavar="MEMBER",
        show_default="subscription to all topics, no rack",
    )


def capacity_option() -> Any:
    """Declare the default capacity of members."""
    return option(
        None, "Maximum load of each member without a capacity in the group document.", min=0
    )


def allow_lag_option() -> Any:
    """Declare that lag may be the weight."""
    return option(
        False,
        "Compute a number of members even if lag is the weight. Lag measures the backlog, not "
        "the traffic: the result is the number of members that can share the backlog.",
    )
