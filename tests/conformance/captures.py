"""Make ``examples/captures``: what Kafka's own tools print about real groups, verbatim.

Run as ``python -m tests.conformance.captures [DIRECTORY]``. It starts a broker, plays
`SCENARIOS` with real consumers and keeps standard output and standard error of the
tools as one stream, as ``2>&1`` does.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.conformance import jars
from tests.conformance.admin import Administrator, GroupView, MemberView, Pairs, administrator
from tests.conformance.broker import running_cluster
from tests.conformance.livegroup import LiveGroup
from tests.conformance.scenarios import (
    SCENARIOS,
    TOPICS,
    Freeze,
    Join,
    Leave,
    Scenario,
    Step,
    Subscribe,
)

CAPTURES = Path(__file__).parents[2] / "examples" / "captures"
SEED = 20261121
GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
LOG_DIRS_TOOL = "org.apache.kafka.tools.LogDirsCommand"
TOPIC_TOOL = "org.apache.kafka.tools.TopicCommand"
VIEWS = {
    "offsets": ("--describe",),
    "offsets-verbose": ("--describe", "--offsets", "--verbose"),
    "members": ("--describe", "--members"),
    "members-verbose": ("--describe", "--members", "--verbose"),
    "state": ("--describe", "--state"),
    "state-verbose": ("--describe", "--state", "--verbose"),
}
"""File name and options of ``kafka-consumer-groups.sh``, each for one group."""


@dataclass(frozen=True, slots=True)
class Played:
    """A scenario and the group that it was played with."""

    scenario: Scenario
    group: LiveGroup

    def play(self) -> None:
        """Take every step once the one before it has settled; commit while there are members."""
        *steps, last = self.scenario.steps
        for step in steps:
            self._take(step)
            self.group.await_settled()
            if self.scenario.ends == "Empty":
                self._commit()
        self._take(last)
        self.group.await_state(self.scenario.ends)
        if self.scenario.ends == "Stable":
            self._commit()

    def _take(self, step: Step) -> None:
        match step:
            case Join(profiles):
                self.group.join(*profiles)
            case Leave(client):
                self.group.leave(client)
            case Freeze(client):
                self.group.freeze(client)
            case Subscribe(client, topics):
                self.group.subscribe(client, *topics)

    def _commit(self) -> None:
        """Have every member commit offsets that lag behind by a skewed random count."""
        every = self.scenario.uncommitted
        for consumer in self.group.running.values():
            offsets = {}
            for topic, partition in sorted(consumer.seen.assigned):
                if not every or partition % every != every - 1:
                    lag = _skewed(f"{self.scenario.name}/{topic}/{partition}", 30)
                    offsets[topic, partition] = max(0, end_offset(topic, partition) - lag)
            consumer.commit(offsets)

    def truth(self, view: GroupView) -> dict[str, Any]:
        """What was really run and what the cluster says it came to."""
        return {
            "directory": self.scenario.directory,
            "about": self.scenario.about,
            "assignor": self.scenario.assignor,
            "state": view.state,
            "epoch": view.epoch,
            "members": [self._member(view.members[client]) for client in sorted(view.members)],
        }

    def _member(self, member: MemberView) -> dict[str, Any]:
        consumer = self.group.running[member.client]
        return {
            "id": member.id,
            "client": member.client,
            "instance_id": member.instance,
            "protocol": consumer.profile.protocol,
            "generation": consumer.seen.generation,
            "topics": sorted(self.group.subscriptions[member.client]),
            "assigned": _by_topic(member.assigned),
            "target": None if member.target is None else _by_topic(member.target),
        }


def _by_topic(pairs: Pairs) -> dict[str, list[int]]:
    """Partition numbers of each topic, everything sorted."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(pairs):
        topics.setdefault(topic, []).append(partition)
    return topics


def _skewed(key: str, scale: int) -> int:
    """A count of messages with a heavy tail, the same for the same key."""
    return int(scale * (random.Random(f"{SEED}/{key}").paretovariate(0.9) - 1))


def end_offset(topic: str, partition: int) -> int:
    """How many messages a partition is given."""
    return min(5000, 40 + _skewed(f"{topic}/{partition}", 80))


def run_tool(tool: str, *arguments: str) -> str:
    """Run one of Kafka's command line tools; what it prints on both streams."""
    command = [jars.java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    command += ["-cp", os.pathsep.join(jars.classpath("tools")), tool, *arguments]
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120
    )
    return done.stdout.decode()


def capture_group(bootstrap: str, name: str, directory: Path) -> None:
    """Write what the tools print about one group."""
    directory.mkdir(parents=True)
    for view, options in VIEWS.items():
        printed = run_tool(GROUP_TOOL, "--bootstrap-server", bootstrap, *options, "--group", name)
        (directory / f"{view}.txt").write_text(printed)


def capture_cluster(bootstrap: str, directory: Path) -> None:
    """Write what the tools print about all groups at once, and about the topics."""
    server = ("--bootstrap-server", bootstrap)
    (directory / "all-groups").mkdir()
    for view in ("offsets", "members-verbose", "state"):
        printed = run_tool(GROUP_TOOL, *server, *VIEWS[view], "--all-groups")
        (directory / "all-groups" / f"{view}.txt").write_text(printed)
    (directory / "groups.txt").write_text(run_tool(GROUP_TOOL, *server, "--list", "--state"))
    printed = run_tool(TOPIC_TOOL, *server, "--describe", "--exclude-internal")
    (directory / "topics.txt").write_text(printed)


def manifest(admin: Administrator, groups: Mapping[str, Any]) -> dict[str, Any]:
    """The truth that captures are compared with."""
    known = admin.topics(*TOPICS)
    return {
        "captured": datetime.now(UTC).isoformat(timespec="seconds"),
        "kafka": {"broker": jars.version("broker"), "tools": jars.version("tools")},
        "topics": {
            topic: {
                "id": str(known[topic].id),
                "partitions": count,
                "end_offsets": [end_offset(topic, partition) for partition in range(count)],
            }
            for topic, count in TOPICS.items()
        },
        "groups": groups,
    }


def _steady_truth(one: Played, admin: Administrator) -> dict[str, Any]:
    """The truth about a group once it has been the same for a while.

    A group that is stuck on purpose is in its state some heartbeats before its members
    have heard all that there is to hear.
    """
    truth: dict[str, Any] = {}
    for _ in range(30):
        before, truth = truth, one.truth(admin.group(one.scenario.name))
        if truth == before:
            return truth
        time.sleep(2)
    raise RuntimeError(f"{one.scenario.name!r} does not come to rest")


def _pretty(document: Mapping[str, Any]) -> str:
    """JSON with one line a list of numbers or words, so that a person can read it."""
    text = json.dumps(document, indent=1)
    return re.sub(r"\[[^][{}]*]", lambda found: " ".join(found[0].split()), text) + "\n"


def make_captures(directory: Path) -> None:
    """Play every scenario on a new cluster and replace the captures in ``directory``."""
    fresh = directory.with_name(directory.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    settings = {"group.initial.rebalance.delay.ms": "3000"}
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(settings=settings))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(TOPICS)
        admin.produce(
            {(name, n): end_offset(name, n) for name, count in TOPICS.items() for n in range(count)}
        )
        played = [
            Played(scenario, LiveGroup(scenario.name, cluster.bootstrap, admin, TOPICS))
            for scenario in SCENARIOS
        ]
        truths = {}
        for one in played:
            name = one.scenario.name
            _say(f"playing and capturing {name}")
            one.play()
            truths[name] = _steady_truth(one, admin)
            capture_group(cluster.bootstrap, name, fresh / one.scenario.directory)
        capture_group(cluster.bootstrap, "no-such-group", fresh / "no-such-group")
        capture_cluster(cluster.bootstrap, fresh)
        for one in played:
            if one.truth(admin.group(one.scenario.name)) != truths[one.scenario.name]:
                raise RuntimeError(f"{one.scenario.name!r} rebalanced while it was captured")
        (fresh / "manifest.json").write_text(_pretty(manifest(admin, truths)))
        for one in played:
            one.group.close()
    _replace(directory, fresh)


def _replace(directory: Path, fresh: Path) -> None:
    """Put the new captures where the old ones are, keeping what is written by hand."""
    readme = directory / "README.md"
    if readme.exists():
        shutil.copy(readme, fresh / readme.name)
    shutil.rmtree(directory, ignore_errors=True)
    fresh.rename(directory)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)  # noqa: T201 - progress of a command


if __name__ == "__main__":
    make_captures(Path(sys.argv[1]) if len(sys.argv) > 1 else CAPTURES)
