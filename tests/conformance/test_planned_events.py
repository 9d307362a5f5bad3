"""Forecasts of rolling restarts, compared with four Java consumers on a broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.admin import Administrator, cluster_with_topics
from tests.conformance.broker import KafkaCluster
from tests.conformance.rolling_restarts import CASES, SETTINGS, TOPICS, compared, observe

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[KafkaCluster, Administrator]]:
    with cluster_with_topics(TOPICS, SETTINGS) as running:
        yield running


@pytest.mark.parametrize("name", CASES)
def test_the_group_does_what_the_forecast_of_the_restart_says(
    cluster: tuple[KafkaCluster, Administrator], name: str
) -> None:
    running, admin = cluster
    assignor, subscriptions = CASES[name]
    recorded = observe(running.bootstrap, admin, name, assignor, subscriptions)
    found = compared(assignor, recorded)
    assert len(found.observed) == 8
    assert found.predicted[: found.certain] == found.observed[: found.certain]
    loads = [
        [sorted(map(len, state.values())) for state in states]
        for states in (found.predicted, found.observed)
    ]
    assert loads[0] == loads[1]
    if found.certain == len(found.observed):
        assert found.moves[0] == found.moves[1]
    fewest = found.forecast.fewest
    assert fewest.is_optimal
    assert all(fewest.moves <= (one.moves or 0) for one in found.forecast.courses)
