"""The uniform assignor is predicted from the import of a running group."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pytest

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.assignors import assign
from kassay.reference.model.group import Group
from tests.conformance.admin import Administrator, administrator
from tests.conformance.broker import running_cluster
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

pytestmark = pytest.mark.kafka

SEED = 20261122
STEPS = 8
# More topics than a bin of a HashMap holds without collisions, so that the order of ids matters.
TOPICS = {f"t{number:02d}": (1, 2, 3, 5, 7)[number % 5] for number in range(14)}
_SETTINGS = {"group.consumer.assignment.interval.ms": "0", "group.initial.rebalance.delay.ms": "0"}


@dataclass(frozen=True, slots=True)
class Site:
    """Cluster with the topics."""

    bootstrap: str
    admin: Administrator


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384, settings=_SETTINGS))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(TOPICS)
        yield Site(cluster.bootstrap, admin)


@pytest.mark.parametrize("mixed", [False, True])
def test_the_next_assignment_follows_from_the_import(site: Site, *, mixed: bool) -> None:
    rng = random.Random(f"{SEED}/{mixed}")
    name = "mixed" if mixed else "equal"
    live = RunningGroup(name, site.bootstrap, site.admin, TOPICS)

    def join() -> None:
        topics = tuple(sorted(rng.sample(sorted(TOPICS), 7))) if mixed else tuple(TOPICS)
        client = f"c{len(live.subscriptions)}-{rng.randrange(1000)}"
        live.join(Profile(client=client, topics=topics, assignor="uniform"))

    try:
        join()
        live.await_stable()
        for step in range(STEPS):
            before = _imported(live, site)
            if step % 4 < 3:
                join()
            else:
                live.leave(rng.choice(sorted(live.consumers)))
            view = live.await_stable()
            assignment = assign(_rejoined(before, _imported(live, site)), "uniform")
            assert {
                id: {(tp.topic, tp.partition) for tp in partitions}
                for id, partitions in assignment.items()
            } == {member.id: set(member.assigned) for member in view.members.values()}
    finally:
        live.close()


def _imported(live: RunningGroup, site: Site) -> Group:
    [imported] = import_live(LiveCluster(site.bootstrap), [live.name], ImportOptions())
    assert imported.group is not None, imported.error
    return imported.group


def _rejoined(before: Group, after: Group) -> Group:
    """Return the group of the event: the broker adds a new member after the members it has."""
    ids = {member.id for member in after.members}
    kept = [member for member in before.members if member.id in ids]
    known = {member.id for member in kept}
    joined = [
        replace(member, owned=(), generation=-1)
        for member in after.members
        if member.id not in known
    ]
    topics = {topic.name: topic for topic in (*before.topics, *after.topics)}
    return replace(before, members=(*kept, *joined), topics=tuple(topics.values()))
