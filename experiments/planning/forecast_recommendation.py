"""Recommend a configuration of a group from the forecasts of a rolling restart."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kassay.experiments.planning.forecast import Forecast
from kassay.experiments.simulation.policies import POLICIES
from kassay.experiments.simulation.simulation import SegmentCost
from kassay.reference.assignors import RebalanceProtocol


class Criterion(StrEnum):
    """Cost that decides between configurations."""

    UNOWNED = "unowned"
    MOVES = "moves"
    REBALANCES = "rebalances"


_CRITERIA = {
    Criterion.UNOWNED: "partition-seconds without an owner",
    Criterion.MOVES: "moves",
    Criterion.REBALANCES: "rebalances",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Configuration and batch size with the lowest cost of a rolling restart, and the reason."""

    configuration: str
    batch_size: int
    reason: str


def recommend(
    forecasts: Sequence[Forecast], criterion: Criterion = Criterion.UNOWNED
) -> Recommendation:
    """Recommend the configuration and batch size with the cheapest rolling restart.

    The other costs decide between equal values of the criterion. The reason compares the result
    with the current configuration and the first batch size.
    """

    def cost(one: Forecast) -> tuple[int, ...]:
        costs = {
            Criterion.UNOWNED: one.restart.unowned_ms,
            Criterion.MOVES: one.restart.moves,
            Criterion.REBALANCES: one.restart.rebalances,
        }
        return costs[criterion], *costs.values()

    first = forecasts[0]
    best = min(forecasts, key=cost)
    name, size = best.configuration.name, best.batch_size
    if best is first:
        reason = (
            f"a rolling restart has {_seconds(first.restart)} partition-seconds without an owner, "
            f"{first.restart.rebalances} rebalances and {first.restart.moves} moves; no other "
            f"configuration has fewer {_CRITERIA[criterion]}"
        )
        return Recommendation(configuration=name, batch_size=size, reason=reason)
    reason = (
        f"a rolling restart has {_seconds(best.restart)} instead of {_seconds(first.restart)} "
        f"partition-seconds without an owner, {best.restart.rebalances} instead of "
        f"{first.restart.rebalances} rebalances, and {best.restart.moves} instead of "
        f"{first.restart.moves} moves: {_cause(best)}"
    )
    if best.change is not None:
        reason += (
            f". The change itself has {_seconds(best.change)} partition-seconds without an owner, "
            f"{best.change.rebalances} rebalances and {best.change.moves} moves"
        )
    return Recommendation(configuration=name, batch_size=size, reason=reason)


def _seconds(cost: SegmentCost) -> str:
    return f"{cost.unowned_ms / 1000:.1f}"


def _cause(best: Forecast) -> str:
    if best.configuration.is_static and not best.restart.rebalances:
        return "static members return within the session timeout and keep their partitions"
    names = best.configuration.steps[-1] if best.configuration.steps else ()
    protocol = POLICIES[names[0]].protocol if names else None
    if protocol is RebalanceProtocol.CONSUMER:
        return "under the consumer protocol, only moved partitions wait, for one heartbeat"
    if protocol is RebalanceProtocol.COOPERATIVE:
        return "a cooperative assignor revokes only the partitions that move"
    if names:
        return "this assignor moves fewer partitions"
    return "fewer batches cause fewer rebalances"
