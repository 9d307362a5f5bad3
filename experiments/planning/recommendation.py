"""Recommend a configuration of a group, and the number of members that restart at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kassay.experiments.planning.forecast import LOAD_FACTORS, Forecast
from kassay.experiments.planning.plan_verdict import unowned_text
from kassay.experiments.prediction.predict import Distribution, PredictedCost, plain
from kassay.experiments.prediction.scenario import Rebalance
from kassay.reference.model.display import count_of

HORIZON_WEEKS = 4
"""Weeks after a change in which its cost must pay off."""
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
    optimum: float | None = None,
    condition: str | None = None,
) -> Recommendation:
    """Recommend a configuration and batch size, and give the reason for `decide`.

    Parameters
    ----------
    forecasts
        Those of `forecast_changes` without sizes; the first one is the current configuration.
    optimum
        Maximum load of the optimum, for the reason.
    condition
        Condition under which the forecasts hold, for the reason.
    """
    times, current = restarts_per_week * HORIZON_WEEKS, forecasts[0]
    best = decide(forecasts, criterion, restarts_per_week=restarts_per_week)
    period = f"over {count_of(round(times), 'rolling restart')} in {HORIZON_WEEKS} weeks"
    unit = _UNOWNED if criterion is Criterion.UNOWNED else str(criterion)
    old, new = (criterion.of(one.over(times)) for one in (current, best))
    if best is current:
        cost = (
            f"{period}, it has {new} {unit}, and no configuration with as low loads and as few "
            "stops has an interval below that"
        )
    else:
        change = "" if best.cost is None else " and for the change"
        lower, higher = old.samples_above(new), new.samples_above(old)
        difference = "no meaningful difference"
        if old.is_above(new) or new.is_above(old):
            word = "lower" if lower > higher else "higher"
            difference = f"{word} in {max(lower, higher)} of {count_of(len(new.values), 'sample')}"
        cost = f"{period}{change}, {new} instead of {old} {unit}, {difference}"
    reason = "; ".join(filter(None, (_loads_text(current, best, optimum), cost, _behaviour(best))))
    if best.cost is not None:
        steps, taken = len(best.change.steps), f"is a {best.change.action}"
        taken = f"takes {count_of(steps, 'rolling restart')}" if steps else taken
        reason += (
            f". The change itself {taken} with "
            f"{best.cost.unowned_seconds} {_UNOWNED}, {best.cost.rebalances.count('rebalance')} "
            f"and {best.cost.moves.count('move')}"
        )
        restart = current.restart.cost.moves.count("move")
        reason += f" (a restart today: {restart})" if steps else ""
    if best.change.start.listed:
        reason += f". Condition: the members list {' and '.join(best.change.start.listed)}"
    if best.change.note is not None:
        reason += f". Note: {best.change.note}"
    if current.now.unowned:
        reason += f". {unowned_text(current.now.unowned)}"
    if condition is not None:
        reason = f"if {condition}: {reason}"
    return Recommendation(configuration=best.change.name, at_once=best.batch_size, reason=reason)


def decide(
    forecasts: Sequence[Forecast],
    criterion: Criterion = Criterion.UNOWNED,
    *,
    restarts_per_week: float = 2.0,
) -> Forecast:
    """Decide for one forecast, by the loads, then by the cost, then by the times of standstill.

    Configurations remain if no other one has lower maximum loads in three of four samples, then
    if no other one has a lower sum of squared loads. The loads are the higher ones before and
    after a later rolling restart. The cost is of the kind that the user minimises: that of the
    change and of all rolling restarts in four weeks together. If the current configuration
    remains, and no interval of a cost is below its own, it is the result; restarts that stop the
    whole group do not replace others for their time without owners. Otherwise those remain for
    which no other one has a lower cost, then the one with the shortest standstill, then the one
    with the fewest restarts and moves. A group of the consumer protocol stays in it if the loads
    are equal. If the current loads are higher, and a rebalance or the restart of a member gives the
    lowest ones, the configuration also stays: it is not the cause. The action with the lowest mean
    cost wins, but a rebalance replaces restarts with overlapping costs.
    """
    current, times = forecasts[0], restarts_per_week * HORIZON_WEEKS
    default = [one for one in forecasts if not one.change.is_further]
    best = [one for one in default if not one.prediction.stopped_members] or [current]
    # An assignor that does not end leaves partitions without an owner.
    most = max(one.assigned for one in best)
    best = [one for one in best if one.assigned == most]
    best = _best(best, lambda one: one.highest("maximum_load"), LOAD_FACTORS["maximum_load"])
    best = _best(best, lambda one: one.highest("squares"), LOAD_FACTORS["squares"])
    if current not in best:  # Do not change to loads that are lower only than those of a third one.
        best = [one for one in best if _has_lower_loads(one, current)] or best
    if current.change.start.is_consumer_protocol:
        best = [one for one in best if one.change.final.is_consumer_protocol] or best
    actions = [one for one in best if one.change.action is not None]
    if current in best and not (actions and current.now.unowned):  # There is nothing to balance.
        best = [one for one in best if one.change.action is None]
    elif actions:
        # Restarts differ little, and the mean depends less on the seed than single samples.
        cheapest = min(actions, key=lambda one: criterion.of(one.over(0)).mean)
        limit = criterion.of(cheapest.over(0)).high
        calm = (one for one in actions if isinstance(one.change.action, Rebalance))
        return next((one for one in calm if criterion.of(one.over(0)).low <= limit), cheapest)
    if current in best and current.now.maximum_load:  # Other current loads are chance.
        if criterion is Criterion.UNOWNED and not _stops(current):
            best = [one for one in best if not _stops(one)]
        costs = [criterion.of(one.over(times)) for one in best]
        if costs[best.index(current)].low <= min(one.high for one in costs):
            return current
    best = _best(best, lambda one: criterion.of(one.over(times)))
    if current in best:
        return current
    best = _best(best, lambda one: one.over(times).stopped_seconds)
    return min(best, key=lambda one: (len(one.change.steps), one.over(0).moves.mean))


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


def _has_lower_loads(one: Forecast, current: Forecast) -> bool:
    return any(
        current.highest(name).is_above(one.highest(name), factor=factor)
        for name, factor in LOAD_FACTORS.items()
    )


def _loads_text(current: Forecast, best: Forecast, optimum: float | None) -> str:
    before, after = current.highest("maximum_load"), best.highest("maximum_load")
    now, later = current.now.shown, current.maximum_load
    if best.assigned > current.assigned or (current.now.unowned and best.change.action):
        return f"more partitions have an owner, with a maximum load of {after}"
    if best is current:
        text = f"the maximum load stays {after}"
        if not later.contains(now):
            text = f"after a rolling restart, the maximum load is {later}, not {plain(now)}"
        if optimum is None or optimum >= later.low:
            return text
        return f"{text} (the optimum is {plain(optimum)})"
    text = f"a maximum load of {after} instead of {before}"
    is_lower = before.is_above(after, factor=LOAD_FACTORS["maximum_load"])
    if str(after) == str(before):
        text = f"the same maximum load, {after}"
    elif not is_lower:
        text += ", no meaningful difference"
    old, new = current.highest("squares"), best.highest("squares")
    if not is_lower and old.is_above(new, factor=LOAD_FACTORS["squares"]):
        text += f", and more even loads (sum of squares {new}, not {old})"
    return (
        text if before.contains(now) else f"{text} (now {plain(now)}; a rolling restart changes it)"
    )


def _stops(forecast: Forecast) -> bool:
    """Return whether the whole group stands still at a later restart, in the digits shown."""
    return forecast.restart.cost.stopped_seconds.mean >= 0.05


def _behaviour(best: Forecast) -> str:
    """Describe what the members do at a later rolling restart."""
    cost = best.restart.cost
    if best.change.final.is_static and not cost.rebalances.high:
        return "static members return within the session timeout and keep their partitions"
    if _stops(best):
        return f"each rolling restart stops the whole group for {cost.stopped_seconds} s"
    if not cost.stopped_seconds.high and cost.rebalances.low:
        return "the group as a whole never stands still"
    return ""
