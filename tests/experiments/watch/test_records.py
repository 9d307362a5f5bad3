"""Rebalances between two observations are counted from the records of ``__consumer_offsets``."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from sqlite3 import OperationalError
from typing import Any
from unittest.mock import Mock

import pytest

from benchmarks.record_encoder import encode_record
from kassay.experiments.watch.event_database import POSITION, Store
from kassay.experiments.watch.server import Pages
from kassay.experiments.watch.watcher import Watcher
from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.reference.protocol import group_messages as messages
from tests.experiments.watch.scripted_cluster import Owners, ScriptedCluster, ScriptedRecords

BALANCED: Owners = {"a-1": [0, 1, 2, 3], "b-1": [4, 5, 6, 7]}
ALONE: Owners = {"a-1": range(8)}
GROWN: Owners = {"a-1": [0, 1, 2], "b-1": [4, 5, 3], "c-1": [6, 7]}


def record(
    number: int, owners: Owners, assignor: str = "sticky", claims: Owners = BALANCED
) -> tuple[bytes, bytes | None]:
    members = []
    for member, owned in owners.items():
        claimed = Partitions.of([("t", one) for one in claims.get(member, ())])
        is_cooperative = assignor == "cooperative-sticky"
        subscription = messages.ConsumerSubscription(("t",), *[claimed] * is_cooperative)
        offers = (messages.SupportedProtocol(assignor, subscription),)
        instance = member.partition("@")[2] or None
        request = messages.JoinRequest(member, offers, member.partition("-")[0], instance)
        assigned = Partitions.of([("t", one) for one in owned])
        members.append(messages.MemberMetadata(request, assigned))
    leader, milliseconds = next(iter(owners), None), number * 1000
    return encode_record(
        messages.GroupMetadata(
            "g", "consumer", number, assignor, leader, milliseconds, tuple(members)
        )
    )


COMMIT = encode_record(messages.OffsetCommit("g", TopicPartition("t", 1), offset=1, timestamp=5))


class Watched:
    """Watcher of a group ``g`` that was observed once, after a record of generation 3."""

    def __init__(self, directory: Path, **options: Any) -> None:
        self.path, self.options = directory / "watch.sqlite", options
        self.cluster = ScriptedCluster({"g": BALANCED})
        self.records = ScriptedRecords([COMMIT, record(3, BALANCED)])
        self.changes: list[str] = []
        self.restart()

    def restart(self) -> None:
        self.store = Store(self.path)
        options = {"records": self.records, "on_change": self.changes.append, **self.options}
        clock = count(60.0, 60.0).__next__
        self.watcher = Watcher(lambda: self.cluster, self.store, clock=clock, **options)  # type: ignore[arg-type,return-value]
        self.watcher.observe()

    def observe(self, owners: Owners, *written: tuple[bytes, bytes | None]) -> None:
        self.cluster.groups["g"] = owners
        self.records.log += written
        self.watcher.observe()

    def seen(self, *names: str) -> list[tuple[object, ...]]:
        """Return values of all rebalances, in order of time."""
        found = [event for event in self.store.events() if event["kind"] == "rebalance"]
        return [tuple(event[name] for name in names) for event in reversed(found)]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_each_rebalance_between_two_observations_has_its_generation_time_and_cause(
    watched: Watched,
) -> None:
    watched.observe(BALANCED, record(4, BALANCED))
    watched.observe(GROWN, record(5, ALONE), COMMIT, record(6, BALANCED), record(7, GROWN))
    assert watched.seen("generation", "time", "cause", "joined", "left", "moves") == [
        (4, 4.0, "other", [], [], 0),
        (5, 5.0, "left", [], ["b"], 0),
        (6, 6.0, "joined", ["b"], [], 4),
        (7, 7.0, "joined", ["c"], [], 3),
    ]
    assert watched.store.values("rebalances") == [
        ("g", "joined", 2),
        ("g", "left", 1),
        ("g", "other", 1),
    ]
    page = Pages(watched.watcher, watched.store, source="").find("/groups/g")
    assert "joined: c; generation 7" in str(page)


def test_old_records_are_never_read(watched: Watched) -> None:
    watched.observe(BALANCED)
    watched.observe(BALANCED, COMMIT)
    watched.observe(BALANCED)
    assert watched.records.read_from == [2]


def test_a_restart_continues_with_the_first_unread_record(watched: Watched) -> None:
    watched.records.log += [record(5, ALONE), record(6, BALANCED), record(7, BALANCED)]
    watched.restart()
    watched.restart()
    causes = [(5, "left", 1), (6, "joined", 1), (7, "other", 1)]
    assert watched.seen("generation", "cause", "rebalances") == causes


def test_a_cooperative_rebalance_is_one_event_of_two_generations(watched: Watched) -> None:
    name, withheld = "cooperative-sticky", {"a-1": [0, 1, 2], "b-1": [4, 5], "c-1": []}
    after = {"a-1": [0, 1, 2], "b-1": [4, 5], "c-1": [3, 6, 7]}
    watched.observe(withheld, record(4, withheld, name))
    watched.restart()
    watched.observe(after, record(5, after, name, withheld))
    assert watched.seen("generation", "rebalances", "moves", "joined") == [(5, 2, 3, ["c"])]


def test_partitions_that_do_not_exist_any_more_do_not_move(watched: Watched) -> None:
    name, after = "cooperative-sticky", {"a-1": [0, 1, 2, 3], "b-1": []}
    watched.observe(after, record(4, after, name), record(5, after, name, after))
    seen = watched.seen("generation", "rebalances", "cause", "moves", "unnecessary_moves")
    assert seen == [(5, 2, "partitions", 0, 0)]


def test_a_static_member_that_restarts_writes_its_generation_again(watched: Watched) -> None:
    with watched.store.transaction():
        watched.store.remove_group("g")
    watched.cluster.groups["g"] = {"a-1@a": range(8)}
    watched.restart()
    watched.observe({"a-2@a": range(8)}, record(4, {"a-2@a": range(8)}))
    watched.observe({"a-3@a": range(8)}, record(4, {"a-3@a": range(8)}))
    watched.observe({"a-3@a": range(8)}, record(5, {"a-3@a": range(8)}))
    assert watched.seen("generation", "cause") == [(5, "other")]


def test_each_generation_of_a_new_group_is_counted(watched: Watched) -> None:
    del watched.cluster.groups["g"]
    watched.watcher.observe()
    watched.observe(BALANCED, record(1, ALONE), record(2, BALANCED))
    assert watched.seen("generation", "joined", "moves") == [(1, ["a"], 0), (2, ["b"], 4)]


def test_a_group_whose_last_member_leaves_has_a_rebalance(watched: Watched) -> None:
    watched.observe({}, record(5, {}), record(7, {}))
    watched.observe(ALONE, record(8, ALONE))
    assert watched.seen("cause", "left", "joined", "rebalances") == [
        ("left", ["a", "b"], [], 1),
        ("other", [], [], 2),
        ("joined", [], ["a"], 1),
    ]


def test_observations_count_while_the_records_are_denied(watched: Watched) -> None:
    watched.records.is_denied = True
    for number, owners in enumerate((ALONE, BALANCED, ALONE), 5):
        watched.observe(owners, record(number, owners))
    assert watched.seen("cause", "generation") == [("left", None), ("joined", None), ("left", None)]
    assert "authorization failed" in str(Pages(watched.watcher, watched.store, source="").find("/"))
    assert len(watched.changes) == 2
    watched.records.is_denied = False
    watched.observe(ALONE)
    watched.observe(BALANCED, record(8, BALANCED))
    assert watched.seen("cause", "generation")[3:] == [("joined", 8)]
    assert watched.watcher.records_problem is None


@pytest.mark.parametrize("damaged", [(None, b"\0\3"), record(5, {"a-1": [-1]})])
def test_a_damaged_record_is_skipped(watched: Watched, damaged: tuple[bytes, bytes]) -> None:
    watched.cluster.is_away = True
    watched.observe(ALONE, damaged)
    watched.cluster.is_away = False
    watched.observe(ALONE)
    assert "skipped 1 damaged record: " in watched.changes[1]
    watched.observe(BALANCED, record(6, BALANCED), damaged, record(7, ALONE), record(8, BALANCED))
    seen = [("left", None), ("joined", 6), ("left", 7), ("joined", 8)]
    assert watched.seen("cause", "generation") == seen
    assert watched.watcher.records_problem is None


def test_a_locked_database_loses_no_event(watched: Watched) -> None:
    watched.store.add_total = Mock(side_effect=[OperationalError, *[None] * 3])  # type: ignore[method-assign]
    watched.observe(ALONE, record(5, ALONE))
    assert watched.seen("cause") == [("left",)]


def test_observations_replace_unread_records(watched: Watched) -> None:
    watched.store.remove(POSITION)
    watched.records.end_offsets = lambda: {0: len(watched.records.log), **last}  # type: ignore[method-assign]
    last: dict[int, int] = {}
    for last[1], owners in ((-1, BALANCED), (-1, ALONE), (7, BALANCED), (3, ALONE)):
        watched.observe(owners)  # no leader, no position, truncated
    watched.observe(BALANCED, record(5, BALANCED))
    assert watched.seen("generation") == [(None,), (None,), (None,), (5,)]


def test_events_between_failure_and_success_are_counted_once(watched: Watched) -> None:
    watched.records.problem = "no answer"
    watched.observe(ALONE, record(5, ALONE))
    watched.records.problem = None
    watched.observe(ALONE)
    watched.observe(BALANCED, record(6, BALANCED))
    assert watched.seen("cause", "generation") == [("left", None), ("joined", 6)]


def test_a_cluster_that_is_away_keeps_the_position(watched: Watched) -> None:
    watched.cluster.is_away, watched.records.problem = True, "no answer"
    watched.observe(BALANCED)
    watched.cluster.is_away, watched.records.problem = False, None
    watched.observe(BALANCED, record(4, ALONE), record(5, BALANCED))
    assert watched.seen("cause") == [("left",), ("joined",)]


def test_hashed_names_of_records_are_those_of_observations(tmp_path: Path) -> None:
    watched = Watched(tmp_path, hash_names=True)
    name, withheld = "cooperative-sticky", {**BALANCED, "b-1": [4, 5, 6], "c-1": []}
    after = {**withheld, "c-1": [7]}
    watched.observe(after, record(4, withheld, name), record(5, after, name, withheld))
    assert watched.seen("cause", "rebalances", "moves") == [("joined", 2, 1)]
    assert "client-" in str(watched.seen("joined"))


def test_the_lag_of_unchanged_groups_is_read(watched: Watched) -> None:
    watched.cluster.committed["g"] = {("t", 0): 990, ("t", 1): 1_010}
    watched.observe(BALANCED)
    pages = Pages(watched.watcher, watched.store, source="")
    assert 'kassay_survey_lag_messages{group="g"} 10\n' in str(pages.find("/metrics")[1])  # type: ignore[index]
    assert "lag of 10 messages" in str(pages.find("/groups/g"))
