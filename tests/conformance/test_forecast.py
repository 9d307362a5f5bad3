"""Forecasts compared with rolling restarts of real consumers on a real broker.

The forecast starts from the group that `kassay import` reads from the cluster. Then the consumers
restart one after another, each after the group is stable again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import pytest

from kassay import Group
from kassay.experiments.prediction.sample import simulate_sample
from kassay.experiments.prediction.scenario import Configuration, RollingRestart
from kassay.experiments.simulation.simulation import SegmentCost
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live
from tests.conformance.admin import Administrator, GroupView, cluster_with_topics
from tests.conformance.broker import KafkaCluster
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

pytestmark = [pytest.mark.kafka, pytest.mark.coordinator]

TOPICS = {"orders": 17, "payments": 5}
CLIENTS = [f"pod-{number}" for number in range(6)]
_BROKER = {"group.consumer.assignment.interval.ms": "0", "group.initial.rebalance.delay.ms": "2000"}


@dataclass
class ObservedCost:
    """Rebalances and moves that the cluster shows."""

    rebalances: int = 0
    moves: int = 0


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[KafkaCluster, Administrator]]:
    with cluster_with_topics(TOPICS, _BROKER) as running:
        yield running


def _imported(bootstrap: str, name: str) -> Group:
    [imported] = import_live(LiveCluster(bootstrap, {}), [name], ImportOptions())
    assert imported.group is not None, imported
    return imported.group


def _generation(live: RunningGroup, view: GroupView) -> int:
    return live.generation if view.epoch is None else view.epoch


def _owners(view: GroupView) -> dict[tuple[str, int], str]:
    return {tp: client for client, member in view.members.items() for tp in member.assigned}


def _restart_all(live: RunningGroup, profile: Profile, ids: dict[str, deque[str]]) -> ObservedCost:
    """Restart the consumers one after another with a new profile, and record their new ids.

    The group has no rebalance while a static consumer is absent, so that only the return of the
    consumer is awaited.
    """
    cost = ObservedCost()
    view = live.await_stable()
    generation, owners = _generation(live, view), _owners(view)
    for client in CLIENTS:
        is_static = view.members[client].instance is not None
        for step in ("leave", "join"):
            if step == "leave" and is_static:
                live.stop(client)
                continue
            if step == "leave":
                live.leave(client)
            else:
                instance = client if profile.instance is not None else None
                live.join(replace(profile, client=client, instance=instance))
            view = live.await_stable()
            now, present = _owners(view), set(view.members)
            cost.moves += sum(owners[tp] != now[tp] and owners[tp] in present for tp in now)
            owners = now
        ids[client].append(view.members[client].id)
    cost.rebalances = _generation(live, view) - generation
    return cost


def _observed(cost: SegmentCost) -> ObservedCost:
    return ObservedCost(cost.rebalances, cost.moves)


@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky"])
def test_a_rolling_restart_and_an_upgrade_cost_what_the_forecast_says(
    cluster: tuple[KafkaCluster, Administrator], assignor: str
) -> None:
    running, admin = cluster
    live = RunningGroup(f"pods/{assignor}", running.bootstrap, admin, TOPICS)
    profile = Profile(client="", topics=tuple(TOPICS), assignor=assignor)
    ids: dict[str, deque[str]] = {client: deque() for client in CLIENTS}
    later = count()

    def new_id(client: str) -> str:
        # The later restart of the simulation has no counterpart on the cluster.
        return ids[client].popleft() if ids[client] else f"{client}-later-{next(later)}"

    try:
        live.join(*(replace(profile, client=client) for client in CLIENTS))
        live.await_stable()
        group = _imported(running.bootstrap, live.name)
        real = _restart_all(live, profile, ids)
        current = replace(Configuration.of(group, assignor), assignment_interval=0)
        restart = RollingRestart()
        [predicted] = simulate_sample(group, current, [restart], new_id=new_id).costs
        expected = _observed(predicted)
        if assignor == "cooperative-sticky":
            # A member can miss the assignment of a round if another member joins the next round
            # earlier. The group then needs one round more, which depends on the machine.
            assert expected.rebalances <= real.rebalances <= expected.rebalances + len(CLIENTS)
            real.rebalances = expected.rebalances
        assert real == expected

        group = _imported(running.bootstrap, live.name)
        upgraded = replace(profile, assignor="uniform")
        real, later_real = (_restart_all(live, upgraded, ids) for _ in range(2))
        [upgrade] = current.steps_to("uniform")
        events = [RollingRestart(to=upgrade), restart]
        change, later_cost = simulate_sample(group, current, events, new_id=new_id).costs
        assert real == _observed(change)
        assert later_real == _observed(later_cost)
    finally:
        live.close()


def test_static_members_restart_without_a_rebalance_as_the_forecast_says(
    cluster: tuple[KafkaCluster, Administrator],
) -> None:
    running, admin = cluster
    live = RunningGroup("pods/static", running.bootstrap, admin, TOPICS)
    profile = Profile(client="", topics=tuple(TOPICS), assignor="range")
    ids: dict[str, deque[str]] = {client: deque() for client in CLIENTS}
    try:
        live.join(*(replace(profile, client=client) for client in CLIENTS))
        live.await_stable()
        group = _imported(running.bootstrap, live.name)
        static = replace(profile, instance="as the client id")
        change, restart = (_restart_all(live, static, ids) for _ in range(2))
        current = Configuration.of(group, "range")
        events = [RollingRestart(to=replace(current, is_static=True)), RollingRestart()]
        sample = simulate_sample(
            group, current, events, new_id=lambda client: ids[client].popleft()
        )
        assert change == _observed(sample.costs[0])
        assert restart == _observed(sample.costs[1]) == ObservedCost(0, 0)
    finally:
        live.close()
