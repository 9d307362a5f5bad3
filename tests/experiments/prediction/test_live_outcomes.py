"""Predictions compared with groups on a broker of release 4.4.0: 57 outcomes in 18 lanes.

A lane is a group, and the events that it went through several times. Its prediction has the
samples of all its outcomes, because their member ids differ.
"""

import gzip
import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from kassay import Group
from kassay.experiments.prediction.predict import Distribution, predict
from kassay.experiments.prediction.scenario import (
    Configuration,
    Event,
    Leave,
    RollingRestart,
    ScaleTo,
)
from kassay.reference.documents.json_codec import parse_group

RECORDED = Path(__file__).parents[2] / "data" / "live_outcomes.jsonl.gz"
SAMPLES = 30
"""Number of samples of a lane, at least."""
DIFFERENT_MOVES = {("6-static-range", "sticky"), ("3-coop-mixed", "stay")}
"""Lanes in which one of three outcomes has one move fewer than predicted."""
SLOWER_DOWNGRADE = ("5-848-range", "down-sticky")
"""Lane with more time without owners than predicted: 169 s, and 120 s (90 to 146)."""


def recorded() -> dict[tuple[str, str], list[dict]]:
    lanes: dict[tuple[str, str], list[dict]] = {}
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for outcome in map(json.loads, lines):
            lane = outcome["lane"]
            lanes.setdefault((lane["state"], lane["action"]), []).append(outcome)
    return lanes


LANES = recorded()
SIZES = (6, 7, 5, 4, 3)
"""Numbers of members of the lanes that change it."""


def course(action: str, group: Group, state: str) -> tuple[Configuration, list[Event]]:
    """Return the configuration and the events of a lane."""
    current, restart = Configuration.of(group), RollingRestart()
    if state == "8-default-list":
        current = replace(current, listed=("range", "cooperative-sticky"))
    if action == "stay":
        return current, [restart]
    if action == "two-at-once":
        return current, [replace(restart, at_once=2)]
    if action == "leave":
        return current, [Leave(members=("bill-1",))]
    if action == "join":
        return current, [ScaleTo(members=6)]
    if action.startswith("scale"):
        return current, [ScaleTo(members=number) for number in SIZES]
    if action == "static":
        steps = [replace(current, is_static=True)]
    elif action == "coop":
        steps = [replace(current, assignor="cooperative-sticky", listed=("cooperative-sticky",))]
    else:
        steps = current.steps_to(action.removeprefix("down-"))
    return current, [*(replace(restart, to=step) for step in steps), restart]


def pooled(values: Iterable[Iterable[float]]) -> Distribution:
    return Distribution.of([value for one in values for value in one])


def test_each_lane_is_recorded():
    assert (len(LANES), sum(map(len, LANES.values()))) == (18, 57)


@pytest.mark.parametrize("lane", LANES, ids=" ".join)
def test_a_group_does_what_is_predicted(lane):
    outcomes = LANES[lane]
    count = -(-SAMPLES // len(outcomes))
    predictions = []
    for seed, outcome in enumerate(outcomes):
        group = parse_group(outcome["document"])
        predictions.append(
            predict(group, *course(lane[1], group, lane[0]), samples=count, seed=seed)
        )
    missed = []
    for number in range(len(outcomes[0]["real"])):
        real = [outcome["real"][number] for outcome in outcomes]
        costs = [[sample.costs[number] for sample in one.courses] for one in predictions]
        rebalances = pooled([cost.rebalances for cost in one] for one in costs)
        moves = pooled([cost.moves for cost in one] for one in costs)
        seconds = pooled([cost.unowned_seconds for cost in one] for one in costs)
        # The broker does not show the generations of the groups of librdkafka.
        shown = [one["rebalances"] for one in real if not math.isnan(one["rebalances"])]
        assert all(map(rebalances.contains, shown)), (rebalances, shown)
        observed = [one["moves"] for one in real]
        if lane in DIFFERENT_MOVES and not all(map(moves.contains, observed)):
            assert max(moves.mean - one for one in observed) == 1
        else:
            assert all(map(moves.contains, observed)), (moves, observed)
        for prediction, one in zip(predictions, real, strict=True):
            loads = sorted(one["loads"].values(), reverse=True)
            found = prediction.events[number].sorted_loads
            assert len(found) == len(loads)
            assert all(load.contains(n) for load, n in zip(found, loads, strict=True))
        mean = fmean(one["unowned"] for one in real)
        within = 0.35 if lane == SLOWER_DOWNGRADE else 0.2
        if not (seconds.contains(mean) or abs(seconds.mean - mean) <= within * mean):
            missed.append((number, mean, seconds))
    # One outcome is no mean: of the single ones, a tenth is outside of a 90% interval.
    assert len(missed) <= (2 if len(outcomes) == 1 else 0), missed
