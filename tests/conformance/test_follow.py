"""Rebalances of groups of a real broker, judged while they happen.

kassay is killed and started again between the rebalances. The environment variables
`REBALANCES` and `RESTARTS` set the numbers of rebalances and of restarts.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.dataset
import pytest

from tests.conformance.broker import KafkaCluster
from tests.conformance.test_history import ObservedGroup, observed_cluster, play

pytestmark = [pytest.mark.kafka, pytest.mark.services]

REBALANCES = int(os.environ.get("REBALANCES", "12"))
RESTARTS = int(os.environ.get("RESTARTS", "1"))
_WAIT_SECONDS = 600
_TIMES = ("--interval", "1", "--quiet-period", "5")


@dataclass
class Follower:
    """A process that follows a cluster, and its files."""

    cluster: KafkaCluster
    home: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def metrics(self) -> Path:
        return self.home / "kassay.prom"

    @property
    def log(self) -> Path:
        return self.home / "follow.log"

    def start(self) -> None:
        command = [sys.executable, "-m", "kassay", "history", "--follow", *_TIMES]
        command += ["--bootstrap-server", self.cluster.bootstrap, "--metrics", str(self.metrics)]
        command += ["-o", str(self.home / "out"), "--master", "local[2]", "--tasks", "2"]
        with self.log.open("a") as log:
            self.processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            )

    def kill(self) -> None:
        """Kill the process and its Java process at once."""
        os.killpg(self.processes[-1].pid, signal.SIGKILL)
        self.processes[-1].wait()

    def rows(self) -> list[dict]:
        """Return all rebalances that are written."""
        files = sorted(self.home.glob("out/followed/batch=*/part-*.parquet"))
        if not files:
            return []
        return pyarrow.dataset.dataset(list(map(str, files))).to_table().to_pylist()

    def await_rebalances(self, expected: set[tuple[str, int]]) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while not expected <= set(_keys(self.rows())):
            assert self.processes[-1].poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, expected - set(_keys(self.rows()))
            time.sleep(1)

    def await_metrics(self, *, rebalances: int) -> dict[tuple[str, str], float]:
        """Return the values by metric and group, when they are sums over all rebalances."""
        sample = re.compile(r'^(\w+)\{group="(.*)"\} (\S+)$', re.MULTILINE)
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            samples = sample.findall(self.metrics.read_text())
            values = {(name, group): float(value) for name, group, value in samples}
            written = sum(n for (name, _), n in values.items() if name == "kassay_rebalances_total")
            if written == rebalances:
                return values
            assert time.monotonic() < deadline
            time.sleep(1)


def _keys(rows: list[dict]) -> list[tuple[str, int]]:
    return sorted((row["group"], row["generation"]) for row in rows)


def _observed(groups: dict[str, ObservedGroup]) -> set[tuple[str, int]]:
    return {(name, number) for name, group in groups.items() for number in group.assignments}


@pytest.fixture(scope="module")
def followed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Follower, dict[str, ObservedGroup]]]:
    """The follower and the groups after all rebalances and restarts."""
    with ExitStack() as stack:
        cluster, groups = stack.enter_context(observed_cluster())
        follower = Follower(cluster, tmp_path_factory.mktemp("follow"))
        rng, part = random.Random(11), REBALANCES // (2 * RESTARTS + 1)
        play(groups, rng, rebalances=part)  # before the first start
        follower.start()
        stack.callback(follower.kill)
        for _ in range(RESTARTS):
            follower.await_rebalances(_observed(groups) - _last(groups))
            play(groups, rng, rebalances=part)
            follower.kill()
            play(groups, rng, rebalances=part)  # while no process follows
            follower.start()
        follower.await_rebalances(_observed(groups))
        yield follower, groups


def _last(groups: dict[str, ObservedGroup]) -> set[tuple[str, int]]:
    return {(name, group.live.generation) for name, group in groups.items() if group.assignments}


def test_every_rebalance_is_judged_exactly_once(followed) -> None:
    follower, groups = followed
    rows = follower.rows()
    assert _keys(rows) == sorted(_observed(groups))
    assert {row["ending"] for row in rows} == {"ok"}
    assert all(row["proven"] and row["unknown"] is None for row in rows)
    for row in rows:
        assigned = json.loads(row["assigned"])["assignment"]
        observed = groups[row["group"]].assignments[row["generation"]]
        assert {
            member: frozenset((topic, number) for topic, number in pairs)
            for member, pairs in assigned.items()
        } == observed


def test_metrics_are_sums_over_the_rebalances(followed) -> None:
    follower, groups = followed
    rows = follower.rows()
    values = follower.await_metrics(rebalances=len(rows))
    for name in groups:
        own = sorted((row for row in rows if row["group"] == name), key=lambda r: r["generation"])
        assert values["kassay_rebalances_total", name] == len(own)
        for metric, column in (
            ("kassay_moves_total", "movement_greedy"),
            ("kassay_unnecessary_moves_total", "unnecessary_moves"),
        ):
            assert values[metric, name] == sum(row[column] for row in own)
        assert values["kassay_imbalance_gap", name] == own[-1]["sum_of_squares_gap"]
        assert values["kassay_seconds_without_owner_total", name] >= 0


def test_following_prints_nothing(followed) -> None:
    follower, _ = followed
    assert follower.log.read_text() == ""
