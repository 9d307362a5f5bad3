"""Recommend a configuration of a group, and the number of members that restart at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kassay.experiments.planning.forecast import Forecast
from kassay.experiments.planning.plan_verdict import count_of
from kassay.experiments.prediction.predict import Distribution, PredictedCost

HORIZON_WEEKS = 4
"""Weeks after a change in which its cost must pay off."""
_LOAD_MARGIN = 0.02
"""Share of the maximum load that is no meaningful difference, as the tolerance of plans."""
_UNOWNED = "partition-seconds without an owner"


class Criterion(StrEnum):
    """Cost that decides between configurations with equal loads."""

    UNOWNED = "unowned"
    MOVES = "moves"
    REBALANCES = "rebalances"

    def of(self, cost: PredictedCost) -> Distribution:
        """Return the value of a cost."""
        name = "unowned_seconds" if self is Criterion.UNOWNED else str(self)
        value: Distribution = getattr(cost, name)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Recommended configuration and batch size, and the reason."""

    configuration: str
    at_once: int
    reason: str


def recommend(
    forecasts: Sequence[Forecast],
    criterion: Criterion = Criterion.UNOWNED,
    *,
    restarts_per_week: float = 2.0,
    load_now: float | None = None,
    optimum: float | None = None,
    condition: str | None = None,
) -> Recommendation:
    """Recommend a configuration and batch size.

    Configurations remain if no other one has lower maximum loads in three of four samples. Of
    these, those remain for which no other one has a lower cost, of the kind that the user
    minimises: the cost of the change and of all rolling restarts in four weeks together. If the
    current configuration remains, it is recommended, otherwise the one in which the whole group
    stands still for the shortest time, then the one with the fewest restarts. A group of the
    consumer protocol stays in it if the maximum loads are equal.

    Parameters
    ----------
    forecasts
        Those of `forecast_changes` without sizes; the first one is the current configuration.
    load_now, optimum
        Maximum load of the current assignment and of the optimum, for the reason.
    condition
        Condition under which the forecasts hold, for the reason.
    """
    times, current = restarts_per_week * HORIZON_WEEKS, forecasts[0]
    best = _choice(forecasts, criterion, times)
    period = f"over {count_of(round(times), 'rolling restart')} in {HORIZON_WEEKS} weeks"
    unit = _UNOWNED if criterion is Criterion.UNOWNED else str(criterion)
    old, new = (criterion.of(one.over(times)) for one in (current, best))
    before, after = current.restart.maximum_load, best.restart.maximum_load
    if best is current:
        parts = [f"the maximum load stays {after}"]
        if load_now is not None and load_now > after.high:
            parts = [f"after a rolling restart, the maximum load is {after}, not {load_now:g}"]
        if optimum is not None and optimum < after.low:
            parts[0] += f" (the optimum is {optimum:g})"
        parts.append(
            f"{period}, it has {new} {unit}, and no configuration without a higher maximum "
            "load has fewer in three of four samples"
        )
    else:
        loads = f"a maximum load of {after} instead of {before}"
        is_lower = before.is_above(after, factor=1 + _LOAD_MARGIN)
        parts = [loads if is_lower else f"{loads}, no meaningful difference"]
        if str(after) == str(before):
            parts = [f"the same maximum load, {after}"]
        change = " and for the change" if best.change.steps else ""
        equal = "" if old.is_above(new) or new.is_above(old) else ", no meaningful difference"
        parts.append(f"{period}{change}, {new} instead of {old} {unit}{equal}")
    reason = "; ".join(filter(None, (*parts, _behaviour(best))))
    if best.cost is not None:
        cost = best.cost
        reason += (
            f". The change itself takes {count_of(len(best.change.steps), 'rolling restart')} with "
            f"{cost.unowned_seconds} {_UNOWNED}, {cost.rebalances} rebalances and "
            f"{cost.moves} moves"
        )
    if best.change.start.listed:
        reason += f". Condition: the members list {' and '.join(best.change.start.listed)}"
    if best.change.note is not None:
        reason += f". Note: {best.change.note}"
    if condition is not None:
        reason = f"if {condition}: {reason}"
    return Recommendation(configuration=best.change.name, at_once=best.batch_size, reason=reason)


def _choice(forecasts: Sequence[Forecast], criterion: Criterion, times: float) -> Forecast:
    """Return the recommended forecast for a number of later rolling restarts."""
    current = forecasts[0]
    complete = [one for one in forecasts if not one.prediction.stopped_members] or [current]
    by_load = _best(complete, lambda one: one.restart.maximum_load, factor=1 + _LOAD_MARGIN)
    if current.change.start.is_consumer_protocol:
        by_load = [one for one in by_load if one.change.final.is_consumer_protocol] or by_load
    by_cost = _best(by_load, lambda one: criterion.of(one.over(times)))
    if current in by_cost:
        return current
    by_stop = _best(by_cost, lambda one: one.over(times).stopped_seconds)
    return min(by_stop, key=lambda one: len(one.change.steps))


def _best(
    forecasts: Sequence[Forecast], value: Callable[[Forecast], Distribution], factor: float = 1.0
) -> list[Forecast]:
    """Return the forecasts with a value that is not above that of another one."""
    values = [value(one) for one in forecasts]
    found = [
        one
        for one, mine in zip(forecasts, values, strict=True)
        if not any(mine.is_above(other, factor=factor) for other in values)
    ]
    return found or list(forecasts)


def _behaviour(best: Forecast) -> str:
    """Describe what the members do at a later rolling restart."""
    cost = best.restart.cost
    if best.change.final.is_static and not cost.rebalances.high:
        return "static members return within the session timeout and keep their partitions"
    if cost.stopped_seconds.mean >= 0.05:  # It is shown with one digit.
        return f"each rolling restart stops the whole group for {cost.stopped_seconds} s"
    if not cost.stopped_seconds.high and cost.rebalances.low:
        return "the group as a whole never stands still"
    return ""
