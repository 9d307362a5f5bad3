"""Recommend a configuration and the number of members that restart at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kassay.experiments.planning.change_forecast import LOAD_FACTORS, Forecast
from kassay.experiments.planning.plan_result import unowned_text
from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.prediction.predict import Distribution, PredictedCost, plain
from kassay.experiments.prediction.scenario import Rebalance

HORIZON_WEEKS = 4
"""Weeks after a change in which its cost must pay off."""
_TEMPLATES = Path(__file__).parent / "templates"


class Criterion(StrEnum):
    """Cost by which configurations with equal loads are compared."""

    UNOWNED = "unowned"
    MOVES = "moves"
    REBALANCES = "rebalances"

    def of(self, cost: PredictedCost) -> Distribution:
        """Return the cost as a distribution."""
        name = "unowned_seconds" if self is Criterion.UNOWNED else str(self)
        value: Distribution = getattr(cost, name)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Recommended configuration, number of members that restart at a time, and reason."""

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
    plan: tuple[str, str | None] | None = None,
) -> Recommendation:
    """Recommend the change of ``plan``, else that of `decide`, and give the reason.

    Parameters
    ----------
    forecasts
        Results of `forecast_changes` without ``sizes``; the first has the current configuration.
    optimum
        Maximum load of the optimum, for the reason.
    condition
        Condition under which the forecasts hold, for the reason.
    plan
        Action of the plan in few words, and the name of its change, if it has one.
    """
    times, current = restarts_per_week * HORIZON_WEEKS, forecasts[0]
    best = decide(forecasts, criterion, restarts_per_week=restarts_per_week)
    advised = next((x for x in (best, *forecasts) if plan and x.change.name == plan[1]), None)
    is_waiting = plan is not None and plan[0] == "wait" and best.change.action is not None
    best = advised or (current if is_waiting else best)
    templates = environment(_TEMPLATES, autoescape=False)
    templates.filters.update(plain=plain, unowned_text=unowned_text)
    reason = templates.get_template("recommendation.j2").render(
        current=current,
        best=best,
        criterion=str(criterion),
        costs=[criterion.of(one.over(times)) for one in (current, best)],
        stops=_stops(best),
        times=times,
        weeks=HORIZON_WEEKS,
        factors=LOAD_FACTORS,
        optimum=optimum,
        condition=condition,
        other_action=plan[0] if plan and advised is None and best.change.steps else None,
    )
    return Recommendation(configuration=best.change.name, at_once=best.batch_size, reason=reason)


def decide(
    forecasts: Sequence[Forecast],
    criterion: Criterion = Criterion.UNOWNED,
    *,
    restarts_per_week: float = 2.0,
) -> Forecast:
    """Choose the best forecast by its loads, then its cost, then its stopped seconds.

    Loads are the higher ones of before and after the later rolling restart. A forecast is rejected
    if another one has a lower maximum load in three of four samples. Then the same rule applies to
    the sum of squared loads. With equal loads, a group of the consumer protocol keeps its protocol.
    If the current loads are higher, and an action without a new configuration gives the lowest
    ones, the action with the lowest mean cost wins; a rebalance replaces restarts with overlapping
    costs. Otherwise the cost ``criterion`` decides, of the change and all rolling restarts in four
    weeks. The current configuration wins if no other cost interval is entirely below its own. For
    the time without owners, restarts that stop the whole group are rejected if those of the current
    configuration do not. The remaining forecasts are compared by cost, stopped seconds, number of
    rolling restarts, and moves.
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
    """Return the forecasts with the lowest values, within the tolerance ``factor``."""
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


def _stops(forecast: Forecast) -> bool:
    """Return whether a later rolling restart stops all members for at least 0.05 seconds."""
    return forecast.restart.cost.stopped_seconds.mean >= 0.05
