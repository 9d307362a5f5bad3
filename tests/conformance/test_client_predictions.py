"""The drivers predict the assignments of real consumers of four client libraries.

Consumers join, leave and change their subscriptions. ``REBALANCES=50`` sets the number of these
events per group.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import combinations

import pytest

from kassay.experiments.implementations.client_libraries import libraries, repetitions_of
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.client_groups import TOPICS, ClientGroup, RunningClients, require_libraries
from tests.conformance.client_rebalances import (
    ObservedRebalance,
    observed_rebalances,
    predicts,
    unstable_groups,
)

pytestmark = [pytest.mark.kafka, pytest.mark.clients]

REBALANCES = int(os.environ.get("REBALANCES", "3"))
LIBRARIES = ("librdkafka", "sarama", "franz-go", "kafka-python")
EQUAL_ONLY = ("kafka-python", "roundrobin")
"""An assignor that fails on mixed subscriptions, see docs/results/clients.md."""
GROUPS = [
    ClientGroup(library=name, assignor=assignor, mixed=(name, assignor) != EQUAL_ONLY)
    for name in LIBRARIES
    for assignor in libraries()[name].assignors
]
LATE_METADATA = ("kafka-python",)
"""Libraries whose leader assigns only the topics that it knows, and rebalances again later."""
SUBSCRIPTIONS = [each for n in (1, 2, 3) for each in combinations(sorted(TOPICS), n)]
SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
_MAX_CONSUMERS = 4
_STABLE_SECONDS = 20.0
_RUNS = 100
"""Runs of an assignor with results that vary, per order of the topics."""


def play(running: Sequence[RunningClients], bootstrap: str, *, events: int) -> None:
    """Let a consumer of each group join, leave or change its subscription, once per event."""
    rng = random.Random(7)
    for number in range(events):
        for clients in running:
            _change(clients, number, rng)
        unstable = unstable_groups(bootstrap, running, seconds=_STABLE_SECONDS)
        if unstable:
            print(f"event {number}: not stable: {', '.join(unstable)}")  # noqa: T201


def _change(clients: RunningClients, number: int, rng: random.Random) -> None:
    size = len(clients.consumers)
    chance = rng.random()
    if size < 2 or (size < _MAX_CONSUMERS and chance < 0.4):
        clients.join(
            number, rng.choice(SUBSCRIPTIONS) if clients.group.mixed else SUBSCRIPTIONS[-1]
        )
    elif chance < 0.7 or not clients.group.mixed:
        clients.leave(rng.choice(sorted(clients.consumers)))
    else:
        client = rng.choice(sorted(clients.consumers))
        others = [each for each in SUBSCRIPTIONS if each != clients.subscriptions[client]]
        clients.subscribe(client, rng.choice(others))


@pytest.fixture(scope="module")
def rebalances() -> Iterator[dict[str, list[ObservedRebalance]]]:
    require_libraries(*LIBRARIES)
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384, settings=SETTINGS))
        stack.enter_context(administrator(cluster.bootstrap)).create_topics(TOPICS)
        running = [RunningClients(group, cluster.bootstrap) for group in GROUPS]
        for clients in running:
            stack.callback(clients.close)
        play(running, cluster.bootstrap, events=REBALANCES)
        yield observed_rebalances(cluster.bootstrap, TOPICS)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_driver_predicts_the_assignments_of_real_consumers(
    library: str, rebalances: dict[str, list[ObservedRebalance]]
) -> None:
    for group in (each for each in GROUPS if each.library == library):
        name = f"{library}:{group.assignor}"
        runs = 1 if repetitions_of(name) == 1 else _RUNS
        observed = rebalances[group.name]
        full = [predicts(name, each.group, each.assignment, runs=runs) for each in observed]
        rest = [each for each, is_equal in zip(observed, full, strict=True) if not is_equal]
        wrong = [
            each
            for each in rest
            if library not in LATE_METADATA
            or not predicts(name, each.without_unassigned_topics(), each.assignment, runs=runs)
        ]
        print(  # noqa: T201
            f"{name}: {len(observed)} rebalances, {sum(full)} as predicted, "
            f"{len(rest) - len(wrong)} as predicted without topics unknown to the leader"
        )
        assert not wrong, wrong[0]
        assert len(observed) >= REBALANCES
