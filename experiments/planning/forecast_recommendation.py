"""Recommend a configuration of a group from the forecasts of a rolling restart."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kassay.experiments.planning.configuration_forecast import (
    Forecast,
    RestartSettings,
    current_assignor,
    forecast,
)
from kassay.experiments.planning.preparation.identify_assignor import identify_assignor
from kassay.experiments.planning.preparation.plan_verdict import count_of
from kassay.experiments.simulation.policies import POLICIES
from kassay.experiments.simulation.simulation import SegmentCost
from kassay.reference.assignors import RebalanceProtocol
from kassay.reference.model.group import Group

_UNOWNED = "partition-seconds without an owner"


class Criterion(StrEnum):
    """Cost that decides between configurations."""

    UNOWNED = "unowned"
    MOVES = "moves"
    REBALANCES = "rebalances"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Configuration and batch size with the lowest cost of a rolling restart, and the reason."""

    configuration: str
    batch_size: int
    reason: str

    def record(self) -> dict[str, object]:
        """Return the recommendation as a JSON object."""
        return {
            "configuration": self.configuration,
            "at_once": self.batch_size,
            "reason": self.reason,
        }


def forecast_record(
    group: Group,
    *,
    assignors: Sequence[str] | None,
    current: str | None,
    batch_sizes: Sequence[int],
    settings: RestartSettings,
    criterion: Criterion,
) -> dict[str, object]:
    """Return the forecasts of a group and the recommended configuration as a JSON object."""
    found = forecast(
        group, assignors=assignors, current=current, batch_sizes=batch_sizes, settings=settings
    )
    return {
        "id": group.id,
        "current": current_assignor(group, current),
        "own_assignor": identify_assignor(group).record(),
        "forecasts": [one.record() for one in found],
        "recommendation": recommend(found, criterion).record(),
    }


def recommend(
    forecasts: Sequence[Forecast], criterion: Criterion = Criterion.UNOWNED
) -> Recommendation:
    """Recommend the configuration and batch size with the cheapest later rolling restart.

    The other costs, and then those of the change, decide between equal values of the criterion.
    The reason compares the result with the current configuration and the first batch size, and
    its change with the cheapest change to another assignor or to static members.
    """
    best = min(forecasts, key=lambda one: (_costs(one.restart, criterion), _change(one, criterion)))
    old, new = forecasts[0].restart, best.restart
    if best is forecasts[0]:
        unit = _UNOWNED if criterion is Criterion.UNOWNED else str(criterion)
        reason = (
            f"a later rolling restart has {_text(new)}; no other configuration has fewer {unit}"
        )
    else:
        reason = (
            f"a later rolling restart has {_seconds(new)} instead of {_seconds(old)} {_UNOWNED}, "
            f"{_compared(new.rebalances, old.rebalances, 'rebalances')}, and "
            f"{_compared(new.moves, old.moves, 'moves')}: {_cause(best)}"
        )
    changes = [one for one in forecasts if one.change is not None]
    if best.change is not None:
        reason += f". The change itself takes {_change_text(best)}"
        cheapest = min(changes, key=lambda one: _change(one, criterion))
        if cheapest.change != best.change:
            reason += f". The cheapest change is {cheapest.configuration.name}: "
            reason += _change_text(cheapest)
        if best.configuration.listed:
            reason += f". Condition: the members list {' and '.join(best.configuration.listed)}"
    return Recommendation(
        configuration=best.configuration.name, batch_size=best.batch_size, reason=reason
    )


def _costs(cost: SegmentCost, criterion: Criterion) -> tuple[int, ...]:
    """Return the cost of a criterion, and then all costs, which decide between equal values."""
    costs = {
        Criterion.UNOWNED: cost.unowned_ms,
        Criterion.MOVES: cost.moves,
        Criterion.REBALANCES: cost.rebalances,
    }
    return costs[criterion], *costs.values()


def _change(one: Forecast, criterion: Criterion) -> tuple[int, ...]:
    """Return the costs of the change to a configuration; none for the current one."""
    return () if one.change is None else _costs(one.change, criterion)


def _change_text(one: Forecast) -> str:
    cost = "" if one.change is None else f" with {_text(one.change)}"
    return f"{count_of(len(one.configuration.steps), 'rolling restart')}{cost}"


def _seconds(cost: SegmentCost) -> str:
    return f"{cost.unowned_ms / 1000:.1f}"


def _compared(new: int, old: int, unit: str) -> str:
    return f"{new} {unit} as before" if new == old else f"{new} instead of {old} {unit}"


def _text(cost: SegmentCost) -> str:
    return f"{_seconds(cost)} {_UNOWNED}, {cost.rebalances} rebalances and {cost.moves} moves"


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
