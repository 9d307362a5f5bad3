"""The history in ``__consumer_offsets`` of a real broker is what real consumers went through.

Groups rebalance one event at a time, and after every event it is noted who has what.
`REBALANCES` events are played, by default few; set it to 200 for the long run.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet
import pytest

from kassay.experiments.cli import main
from tests.conformance.admin import Administrator, GroupView, Pairs, administrator
from tests.conformance.broker import KafkaCluster, running_cluster
from tests.conformance.captures import run_tool
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

REBALANCES = int(os.environ.get("REBALANCES", "24"))
SPARK_KAFKA = os.environ.get("KASSAY_SPARK_KAFKA", "")
TOPICS = {"a.orders": 7, "b.payments": 4, "c.clicks": 11}
ASSIGNORS = ("range", "cooperative-sticky", "uniform")
DUMP_TOOL = "org.apache.kafka.tools.DumpLogSegments"
_MOST = 4  # consumers in a group
_SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "log.flush.interval.messages": "1",
}

Table = list[dict]


@dataclass
class Told:
    """What was seen of one group while it was alive."""

    live: RunningGroup
    seen: dict[int, dict[str, Pairs]] = field(default_factory=dict)
    view: GroupView | None = None
    fresh: int = 0

    def note(self) -> None:
        self.view = self.live.await_stable()
        self.seen[self.live.generation] = {
            member.id: member.assigned for member in self.view.members.values()
        }


@dataclass(frozen=True)
class Played:
    """The cluster after all rebalances, and what its history says in each form."""

    cluster: KafkaCluster
    groups: dict[str, Told]
    home: Path

    def table(self, form: str, name: str) -> Table:
        return pyarrow.parquet.read_table(self.home / form / name).to_pylist()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    home = tmp_path_factory.mktemp("history")
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384, settings=_SETTINGS))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(TOPICS)
        groups = {name: Told(_group(name, cluster, admin)) for name in ASSIGNORS}
        for told in groups.values():
            stack.callback(told.live.close)
        _play(groups, random.Random(7))
        _history("--bootstrap-server", cluster.bootstrap, "--output", str(home / "live"))
        _dump(cluster, home)
        yield Played(cluster, groups, home)


def _group(name: str, cluster: KafkaCluster, admin: Administrator) -> RunningGroup:
    return RunningGroup(name, cluster.bootstrap, admin, TOPICS)


def _play(groups: dict[str, Told], rng: random.Random) -> None:
    """Have members join and leave, group by group, one event a rebalance."""
    names = sorted(groups)
    for number in range(REBALANCES):
        told = groups[names[number % len(names)]]
        live = told.live
        here = sorted(live.running)
        if len(here) < 2 or (len(here) < _MOST and rng.random() < 0.5):
            topics = rng.choice((("a.orders", "c.clicks"), tuple(TOPICS)))
            profile = Profile(client=f"c{told.fresh}", topics=topics, assignor=live.name)
            told.fresh += 1
            live.join(profile)
        else:
            live.leave(rng.choice(here))
        told.note()


def _dump(cluster: KafkaCluster, home: Path) -> None:
    """Print the log of the topic with Kafka's own tool, and read that."""
    logs = sorted(cluster.directory.glob("node-1/__consumer_offsets-*/*.log"))
    files = ",".join(str(log) for log in logs if log.stat().st_size)
    text = run_tool(DUMP_TOOL, "--offsets-decoder", "--files", files)
    (home / "dump.txt").write_text(text)
    counts = [
        f"Topic: {name}\tTopicId: x\tPartitionCount: {count}\tReplicationFactor: 1\tConfigs: \n"
        for name, count in TOPICS.items()
    ]
    (home / "topics.txt").write_text("".join(counts))
    metadata = ("--metadata", str(home / "topics.txt"))
    _history(str(home / "dump.txt"), "--output", str(home / "text"), *metadata)


def _history(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["history", *arguments, "--master", "local[2]", "--tasks", "2"])
    assert ended.value.code == 0


def test_every_generation_is_found_in_order_and_none_invented(played: Played) -> None:
    rows = played.table("live", "generations")
    assert {row["group"] for row in rows} == set(played.groups)
    for name, told in played.groups.items():
        mine = [row for row in rows if row["group"] == name]
        last = max(told.seen)
        assert {row["life"] for row in mine} == {0}
        # An epoch may be overtaken by the next before brokers have assigned anything in it.
        overtaken = [row["number"] - 1 - n for row in mine for n in range(row["passed"])]
        first = mine[0]["number"]
        found = sorted([row["number"] for row in mine] + overtaken)
        assert found == list(range(first, last + 1)), name
        # Brokers give a new group of theirs epoch 2 in the batch that creates it.
        assert first == 1 or (name == "uniform" and first == 2)
        assert [row["number"] for row in mine] == sorted({row["number"] for row in mine})
        assert {row["number"] for row in mine} >= set(told.seen)
        assert name == "uniform" or not overtaken


def test_every_generation_seen_alive_says_who_had_what(played: Played) -> None:
    for row in played.table("live", "generations"):
        seen = played.groups[row["group"]].seen.get(row["number"])
        if seen is not None:
            assert {
                member["id"]: frozenset(
                    (each["topic"], number)
                    for each in member["assigned"]
                    for number in each["partitions"]
                )
                for member in row["members"]
            } == seen, (row["group"], row["number"])


def test_every_rebalance_is_judged(played: Played) -> None:
    rows = played.table("live", "rebalances")
    assert {row["ending"] for row in rows} == {"ok"}
    assert all(row["unknown"] is None for row in rows)
    assert all(row["proven"] for row in rows)
    for name, told in played.groups.items():
        mine = [row for row in rows if row["group"] == name]
        assert len(mine) == len(told.seen)
        assert [row["generation"] for row in mine] == sorted(told.seen)
        assert all(row["unnecessary_moves"] >= 0 for row in mine)
    assert not played.table("live", "errors")


def test_the_last_generation_is_the_group_as_it_is(played: Played) -> None:
    lines = (played.home / "live" / "groups.jsonl").read_text().splitlines()
    documents = {document["id"]: document for document in map(json.loads, lines)}
    assert set(documents) == set(played.groups)
    for name, told in played.groups.items():
        document, view = documents[name], told.view
        assert view is not None
        clients = {member.id: client for client, member in view.members.items()}
        found = {member["id"]: member for member in document["members"]}
        assert set(found) == set(clients)
        for id, member in found.items():
            assert set(member["topics"]) == set(told.live.subscriptions[clients[id]])
            assert {tuple(tp) for tp in member.get("owned", ())} == view.members[
                clients[id]
            ].assigned
            assert member["generation"] == told.live.generation
        for topic in {t for m in document["members"] for t in m["topics"]}:
            assert document["topics"][topic] in (TOPICS[topic], {"partitions": TOPICS[topic]})


def test_what_the_tool_prints_tells_the_same_history(played: Played) -> None:
    live, text = (
        {(row["group"], row["number"]): row for row in played.table(form, "generations")}
        for form in ("live", "text")
    )
    assert set(live) == set(text)
    for key, row in live.items():
        if key[0] != "uniform":  # whose topics have ids here and names there
            assert text[key] == row, key


@pytest.mark.skipif(
    not SPARK_KAFKA, reason="KASSAY_SPARK_KAFKA names no package of Spark's Kafka source"
)
def test_sparks_own_source_tells_the_same_history(played: Played, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kassay", "history", "--output", str(tmp_path)]
    command += ["--bootstrap-server", played.cluster.bootstrap, "--spark-package", SPARK_KAFKA]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    for name in ("generations", "rebalances"):
        by_spark, by_client = (
            sorted(pyarrow.parquet.read_table(home / name).to_pylist(), key=str)
            for home in (tmp_path, played.home / "live")
        )
        assert [_untimed(row) for row in by_spark] == [_untimed(row) for row in by_client]


def _untimed(row: dict) -> dict:
    return {key: value for key, value in row.items() if "seconds" not in key}


def test_a_package_of_sparks_that_cannot_be_had_is_one_clear_error(
    played: Played, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "kassay", "history", "--output", str(tmp_path)]
    command += ["--bootstrap-server", played.cluster.bootstrap, "--spark-package", "no:where"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    [error] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert error.startswith("kassay: Spark did not start with the package no:where: ")
