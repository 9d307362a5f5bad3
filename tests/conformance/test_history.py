"""History in ``__consumer_offsets`` of a real broker, compared with observed assignments.

Groups rebalance one event at a time, and the assignment is recorded after every event. The
environment variable `REBALANCES` sets the number of events.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.dataset
import pytest

from kassay.experiments.cli import main
from kassay.experiments.study.output_reader import read_manifest
from tests.conformance.admin import GroupView, Pairs, administrator
from tests.conformance.broker import KafkaCluster, running_cluster
from tests.conformance.captures import TOPIC_TOOL, run_tool
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

pytestmark = pytest.mark.kafka

REBALANCES = int(os.environ.get("REBALANCES", "24"))
TOPICS = {"a.orders": 7, "b.payments": 4, "c.clicks": 11}
ASSIGNORS = ("range", "cooperative-sticky", "uniform")
DUMP_TOOL = "org.apache.kafka.tools.DumpLogSegments"
_MAX_CONSUMERS = 4
SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "log.flush.interval.messages": "1",
}

Table = list[dict]


@dataclass
class ObservedGroup:
    """A running group and its observed assignments per generation."""

    live: RunningGroup
    assignments: dict[int, dict[str, Pairs]] = field(default_factory=dict)
    view: GroupView | None = None
    num_clients: int = 0

    def record(self) -> None:
        self.view = self.live.await_stable()
        self.assignments[self.live.generation] = {
            member.id: member.assigned for member in self.view.members.values()
        }


@dataclass(frozen=True)
class PlayedHistory:
    """The cluster after all rebalances, and its history in each form."""

    cluster: KafkaCluster
    groups: dict[str, ObservedGroup]
    home: Path

    def table(self, form: str, name: str) -> Table:
        return read_history_table(self.home / form, name)


def read_history_table(output: Path, name: str) -> Table:
    tables = output / read_manifest(output)["history"]
    return pyarrow.dataset.dataset(tables / name, format="parquet").to_table().to_pylist()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedHistory]:
    home = tmp_path_factory.mktemp("history")
    with observed_cluster() as (cluster, groups):
        play(groups, random.Random(7), rebalances=REBALANCES)
        _history("--bootstrap-server", cluster.bootstrap, "--output", str(home / "live"))
        _dump(cluster, home)
        yield PlayedHistory(cluster, groups, home)


@contextmanager
def observed_cluster() -> Iterator[tuple[KafkaCluster, dict[str, ObservedGroup]]]:
    """Run a cluster with a group without members for each assignor."""
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384, settings=SETTINGS))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(TOPICS)
        groups = {}
        for name in ASSIGNORS:
            live = RunningGroup(name, cluster.bootstrap, admin, TOPICS)
            stack.callback(live.close)
            groups[name] = ObservedGroup(live)
        yield cluster, groups


def play(groups: dict[str, ObservedGroup], rng: random.Random, *, rebalances: int) -> None:
    """Let members join and leave the groups in turn, one event per rebalance."""
    names = sorted(groups)
    for number in range(rebalances):
        observed = groups[names[number % len(names)]]
        live = observed.live
        clients = sorted(live.running)
        if len(clients) < 2 or (len(clients) < _MAX_CONSUMERS and rng.random() < 0.5):
            topics = rng.choice((("a.orders", "c.clicks"), tuple(TOPICS)))
            profile = Profile(client=f"c{observed.num_clients}", topics=topics, assignor=live.name)
            observed.num_clients += 1
            live.join(profile)
        else:
            live.leave(rng.choice(clients))
        observed.record()


def _dump(cluster: KafkaCluster, home: Path) -> None:
    """Print the log of the topic with Kafka's tool, and import the output."""
    logs = sorted(cluster.directory.glob("node-1/__consumer_offsets-*/*.log"))
    files = ",".join(str(log) for log in logs if log.stat().st_size)
    text = run_tool(DUMP_TOOL, "--offsets-decoder", "--files", files)
    (home / "dump.txt").write_text(text)
    topics = run_tool(TOPIC_TOOL, "--bootstrap-server", cluster.bootstrap, "--describe")
    (home / "topics.txt").write_text(topics)
    metadata = ("--metadata", str(home / "topics.txt"))
    _history(str(home / "dump.txt"), "--output", str(home / "text"), *metadata)


def _history(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["history", *arguments, "--master", "local[2]", "--tasks", "2"])
    assert ended.value.code == 0


def test_history_contains_exactly_the_generations_in_order(played: PlayedHistory) -> None:
    rows = played.table("live", "generations")
    assert {row["group"] for row in rows} == set(played.groups)
    for name, observed in played.groups.items():
        group_rows = [row for row in rows if row["group"] == name]
        last = max(observed.assignments)
        assert {row["incarnation"] for row in group_rows} == {0}
        # The broker may start the next epoch before it assigns anything in this one.
        skipped = [
            row["number"] - 1 - n for row in group_rows for n in range(row["skipped_epochs"])
        ]
        first = group_rows[0]["number"]
        found = sorted([row["number"] for row in group_rows] + skipped)
        assert found == list(range(first, last + 1)), name
        # The broker creates a group of the consumer protocol with epoch 2.
        assert first == 1 or (name == "uniform" and first == 2)
        assert [row["number"] for row in group_rows] == sorted(
            {row["number"] for row in group_rows}
        )
        assert {row["number"] for row in group_rows} >= set(observed.assignments)
        assert name == "uniform" or not skipped


def test_history_contains_the_observed_assignments(played: PlayedHistory) -> None:
    for row in played.table("live", "generations"):
        expected = played.groups[row["group"]].assignments.get(row["number"])
        if expected is not None:
            assert {
                member["id"]: frozenset(
                    (each["topic"], number)
                    for each in member["assigned"]
                    for number in each["partitions"]
                )
                for member in row["members"]
            } == expected, (row["group"], row["number"])


def test_every_rebalance_is_compared_with_the_optimum(played: PlayedHistory) -> None:
    rows = played.table("live", "rebalances")
    assert {row["ending"] for row in rows} == {"ok"}
    assert all(row["unknown"] is None for row in rows)
    assert all(row["proven"] for row in rows)
    for name, observed in played.groups.items():
        group_rows = [row for row in rows if row["group"] == name]
        assert len(group_rows) == len(observed.assignments)
        assert sorted(row["generation"] for row in group_rows) == sorted(observed.assignments)
        assert all(row["unnecessary_moves"] >= 0 for row in group_rows)
    assert not played.table("live", "errors")


def test_last_generation_equals_the_current_group(played: PlayedHistory) -> None:
    lines = (played.home / "live" / "groups.jsonl").read_text().splitlines()
    documents = {document["id"]: document for document in map(json.loads, lines)}
    assert set(documents) == set(played.groups)
    for name, observed in played.groups.items():
        document, view = documents[name], observed.view
        assert view is not None
        clients = {member.id: client for client, member in view.members.items()}
        found = {member["id"]: member for member in document["members"]}
        assert set(found) == set(clients)
        for id, member in found.items():
            assert set(member["topics"]) == set(observed.live.subscriptions[clients[id]])
            assert {tuple(tp) for tp in member.get("owned", ())} == view.members[
                clients[id]
            ].assigned
            assert member["generation"] == observed.live.generation
        for topic in {t for m in document["members"] for t in m["topics"]}:
            assert document["topics"][topic] in (TOPICS[topic], {"partitions": TOPICS[topic]})


def test_history_of_the_tools_output_is_equal(played: PlayedHistory) -> None:
    live, text = (
        {(row["group"], row["number"]): row for row in played.table(form, "generations")}
        for form in ("live", "text")
    )
    assert set(live) == set(text)
    for key, row in live.items():
        if key[0] != "uniform":  # Its topics have ids in one form and names in the other.
            assert text[key] == row, key
