"""Real groups carry out the first action of their plan, with the promised loads and costs.

`benchmarks.live_actions` runs all groups several times, also with the configurations of forecasts.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.live_groups import GROUPS, TOPICS, LiveRun, Times, events_of
from kassay.experiments.cli import main
from kassay.experiments.prediction.predict import Distribution, predict
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


@pytest.mark.parametrize("name", NAMES)
def test_a_recommended_action_does_what_the_plan_promises(
    name: str, cluster: tuple[KafkaCluster, Administrator], tmp_path: Path
) -> None:
    running, admin = cluster
    [live] = (one for one in GROUPS if one.name == name)
    run = LiveRun(live, name, running.bootstrap, admin, TIMES)
    file = tmp_path / "group.json"
    try:
        run.start()
        _run("import", "--bootstrap-server", running.bootstrap, "--group", name, "-o", file)
        _run("plan", file, "-o", tmp_path / "plan")
        group = parse_group(json.loads(file.read_text()))
        action = json.loads((tmp_path / "plan/plan.json").read_text())["actions"][0]
        events = events_of(action["action"], action["configuration"], group, TIMES)
        real = [run.perform(event) for event in events]
    finally:
        run.close()
    found = predict(group, TIMES.configured(Configuration.of(group)), events)
    assert max(real[-1].loads) == action["maximum_load"]
    for load, predicted in zip(real[-1].loads, found.events[-1].sorted_loads, strict=True):
        assert _is_predicted(load, predicted), real
    for value in ("moves", "rebalances"):
        predicted = getattr(found.total, value)
        assert _is_predicted(sum(getattr(one, value) for one in real), predicted), real
        assert _is_predicted(action[value], predicted), action
    seconds = sum(one.unowned_seconds for one in real)
    assert _is_predicted(seconds, found.total.unowned_seconds, share=0.2), real
