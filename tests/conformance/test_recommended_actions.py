"""Real groups carry out the first action of their plan, with the promised loads and costs.

`benchmarks.live_actions` runs all groups several times, also with the configurations of forecasts.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.live_groups import GROUPS, TOPICS, LiveRun, RealCost, Times, events_of
from kassay.experiments.cli import main
from kassay.experiments.prediction.predict import Distribution, Prediction, predict
from kassay.experiments.prediction.scenario import Configuration
from kassay.reference.documents.json_codec import parse_group
from tests.conformance.admin import Administrator, cluster_with_topics
from tests.conformance.broker import KafkaCluster

pytestmark = pytest.mark.kafka

TIMES = Times(heartbeat=0.5, consumer_heartbeat=0.5, downtime=1.5, pause=3.0)
NAMES = (
    *("range", "range, after a crash", "range, static", "sticky, mixed"),
    *("cooperative-sticky, mixed", "server-range"),
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[KafkaCluster, Administrator]]:
    with cluster_with_topics(TOPICS, TIMES.settings()) as running:
        yield running


def _run(*arguments: str | Path) -> None:
    with pytest.raises(SystemExit) as exited:
        main([str(argument) for argument in arguments])
    assert not exited.value.code


def _is_predicted(value: float, predicted: Distribution, *, share: float = 0.0) -> bool:
    """Return whether a value is among those of the samples, or outside by a share of it at most."""
    return (1 - share) * min(predicted.values) <= value <= (1 + share) * max(predicted.values)


@dataclass(frozen=True)
class _Run:
    """First action of a plan, with its prediction and what real members did."""

    action: dict[str, Any]
    predicted: Prediction
    real: list[RealCost]

    def deviations(self) -> list[str]:
        """Return the costs that no sample of the prediction has."""
        found = []
        # The samples are of usual machines; the seconds of this one can differ from theirs.
        for value, share in (("moves", 0.0), ("rebalances", 0.0), ("unowned_seconds", 0.5)):
            total, predicted = (
                sum(getattr(one, value) for one in self.real),
                getattr(self.predicted.total, value),
            )
            if not _is_predicted(total, predicted, share=share):
                found.append(f"{value}: {total}, predicted {predicted.mean}, {self.real}")
        return found


def _carried_out(name: str, id: str, cluster: KafkaCluster, admin: Administrator, at: Path) -> _Run:
    [live] = (one for one in GROUPS if one.name == name)
    run = LiveRun(live, id, cluster.bootstrap, admin, TIMES)
    file = at / "group.json"
    try:
        run.start()
        _run("import", "--bootstrap-server", cluster.bootstrap, "--group", id, "-o", file)
        _run("plan", file, "-o", at / "plan")
        group = parse_group(json.loads(file.read_text()))
        action = json.loads((at / "plan/plan.json").read_text())["actions"][0]
        events = events_of(action["action"], action["configuration"], group, TIMES)
        real = [run.perform(event) for event in events]
    finally:
        run.close()
    predicted = predict(group, TIMES.configured(Configuration.of(group)), events)
    return _Run(action, predicted, real)


@pytest.mark.parametrize("name", NAMES)
def test_a_recommended_action_does_what_the_plan_promises(
    name: str, cluster: tuple[KafkaCluster, Administrator], tmp_path: Path
) -> None:
    deviations = []
    # The loads hold in each run. The costs depend on the heartbeats of a run, which other work of
    # the machine delays, and are outside of the samples in a few per cent of the runs.
    for attempt in range(3):
        run = _carried_out(name, f"{name}/{attempt}", *cluster, tmp_path)
        loads = run.real[-1].loads
        assert max(loads) == run.action["maximum_load"]
        for load, predicted in zip(loads, run.predicted.events[-1].sorted_loads, strict=True):
            assert _is_predicted(load, predicted), run.real
        for value in ("moves", "rebalances"):
            assert _is_predicted(run.action[value], getattr(run.predicted.total, value)), run.action
        deviations = run.deviations()
        if not deviations:
            break
    assert not deviations
