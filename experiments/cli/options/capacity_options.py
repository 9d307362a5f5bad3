"""Command-line options for members' capacities and the properties of added members."""

from typing import Annotated

import typer

SubscriptionLike = Annotated[
    str | None,
    typer.Option(
        "--like",
        metavar="MEMBER",
        help="Added members get the subscription, capacity, speed and rack of this member. "
        "Required if members differ in speed.",
        show_default="subscription to all topics, no rack",
    ),
]
Capacity = Annotated[
    int | None,
    typer.Option(
        "--capacity",
        min=0,
        help="Maximum load of each member without a capacity in the group document.",
    ),
]
AllowLag = Annotated[
    bool,
    typer.Option(
        "--allow-lag",
        help="Compute a number of members even if lag is the weight. Lag measures the backlog, "
        "not the traffic: the result is the number of members that can share the backlog.",
    ),
]
