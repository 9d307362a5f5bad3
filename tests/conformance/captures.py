"""Create ``examples/captures``: the output of Kafka's tools for real groups.

``python -m tests.conformance.captures [DIRECTORY]`` starts a broker, plays `BUILT_IN_SCRIPTS` with
Java consumers and records standard output and standard error of the tools as one stream.
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
from tests.conformance.capture_scenarios import (
    BUILT_IN_SCRIPTS,
    TOPICS,
    CaptureScenario,
    ScenarioStep,
)
from tests.conformance.running_group import RunningGroup

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
"""Options of ``kafka-consumer-groups.sh`` for one group, by file name."""


@dataclass(frozen=True, slots=True)
class PlayedScenario:
    """A scenario and its running group."""

    scenario: CaptureScenario
    group: RunningGroup

    def play(self) -> None:
        """Run every step after the group is stable; commit while there are members."""
        *steps, last = self.scenario.steps
        for step in steps:
            self._run(step)
            self.group.await_stable()
            if self.scenario.final_state == "Empty":
                self._commit()
        self._run(last)
        self.group.await_state(self.scenario.final_state)
        if self.scenario.final_state == "Stable":
            self._commit()

    def _run(self, step: ScenarioStep) -> None:
        match step.action:
            case "join":
                self.group.join(*step.profiles)
            case "leave":
                self.group.leave(step.client)
            case "freeze":
                self.group.freeze(step.client)
            case "subscribe":
                self.group.subscribe(step.client, *step.topics)

    def _commit(self) -> None:
        """Commit offsets of all members, with random lags."""
        every = self.scenario.uncommitted
        for consumer in self.group.running.values():
            offsets = {}
            for topic, partition in sorted(consumer.membership.assigned):
                if not every or partition % every != every - 1:
                    lag = _skewed(f"{self.scenario.name}/{topic}/{partition}", 30)
                    offsets[topic, partition] = max(0, end_offset(topic, partition) - lag)
            consumer.commit(offsets)

    def description(self, view: GroupView) -> dict[str, Any]:
        """Return the scenario and the state of its group as JSON."""
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
            "generation": consumer.membership.generation,
            "topics": sorted(self.group.subscriptions[member.client]),
            "assigned": _by_topic(member.assigned),
            "target": None if member.target is None else _by_topic(member.target),
        }


def _by_topic(pairs: Pairs) -> dict[str, list[int]]:
    """Return sorted partition numbers per topic."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(pairs):
        topics.setdefault(topic, []).append(partition)
    return topics


def _skewed(key: str, scale: int) -> int:
    """Return a number of messages from a heavy-tailed distribution, seeded by the key."""
    return int(scale * (random.Random(f"{SEED}/{key}").paretovariate(0.9) - 1))


def end_offset(topic: str, partition: int) -> int:
    return min(5000, 40 + _skewed(f"{topic}/{partition}", 80))


def run_tool(tool: str, *arguments: str, kind: jars.Kind = "tools") -> str:
    """Run one of Kafka's command line tools; return its output and errors."""
    command = [jars.java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    command += ["-cp", os.pathsep.join(jars.classpath(kind)), tool, *arguments]
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120
    )
    return done.stdout.decode()


def capture_group(bootstrap: str, name: str, directory: Path) -> None:
    """Record the tools' output for one group."""
    directory.mkdir(parents=True)
    for view, options in VIEWS.items():
        output = run_tool(GROUP_TOOL, "--bootstrap-server", bootstrap, *options, "--group", name)
        (directory / f"{view}.txt").write_text(output)


def capture_cluster(bootstrap: str, directory: Path) -> None:
    """Record the tools' output for all groups and for the topics."""
    server = ("--bootstrap-server", bootstrap)
    (directory / "all-groups").mkdir()
    for view in ("offsets", "members-verbose", "state"):
        output = run_tool(GROUP_TOOL, *server, *VIEWS[view], "--all-groups")
        (directory / "all-groups" / f"{view}.txt").write_text(output)
    (directory / "groups.txt").write_text(run_tool(GROUP_TOOL, *server, "--list", "--state"))
    output = run_tool(TOPIC_TOOL, *server, "--describe", "--exclude-internal")
    (directory / "topics.txt").write_text(output)


def manifest(admin: Administrator, groups: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest with which imports are compared."""
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


def _stable_description(played: PlayedScenario, admin: Administrator) -> dict[str, Any]:
    """Return the description of a group after it has stopped changing.

    Members of a blocked group receive their last response some heartbeats later.
    """
    description: dict[str, Any] = {}
    for _ in range(30):
        previous = description
        description = played.description(admin.group(played.scenario.name))
        if description == previous:
            return description
        time.sleep(2)
    raise RuntimeError(f"group {played.scenario.name!r} does not stop changing")


def _pretty(document: Mapping[str, Any]) -> str:
    """Format JSON with one line per list of scalars."""
    text = json.dumps(document, indent=1)
    return re.sub(r"\[[^][{}]*]", lambda match: " ".join(match[0].split()), text) + "\n"


def make_captures(directory: Path) -> None:
    """Play every scenario on a new cluster and replace the captures in ``directory``."""
    new_directory = directory.with_name(directory.name + ".new")
    shutil.rmtree(new_directory, ignore_errors=True)
    new_directory.mkdir(parents=True)
    settings = {"group.initial.rebalance.delay.ms": "3000"}
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(settings=settings))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(TOPICS)
        admin.produce(
            {(name, n): end_offset(name, n) for name, count in TOPICS.items() for n in range(count)}
        )
        scenarios = [
            PlayedScenario(scenario, RunningGroup(scenario.name, cluster.bootstrap, admin, TOPICS))
            for scenario in BUILT_IN_SCRIPTS
        ]
        descriptions = {}
        for played in scenarios:
            name = played.scenario.name
            print(f"capturing {name}", file=sys.stderr, flush=True)  # noqa: T201 - progress
            played.play()
            descriptions[name] = _stable_description(played, admin)
            capture_group(cluster.bootstrap, name, new_directory / played.scenario.directory)
        capture_group(cluster.bootstrap, "no-such-group", new_directory / "no-such-group")
        capture_cluster(cluster.bootstrap, new_directory)
        for played in scenarios:
            name = played.scenario.name
            if played.description(admin.group(name)) != descriptions[name]:
                raise RuntimeError(f"group {name!r} rebalanced during the capture")
        (new_directory / "manifest.json").write_text(_pretty(manifest(admin, descriptions)))
        for played in scenarios:
            played.group.close()
    _replace(directory, new_directory)


def _replace(directory: Path, new_directory: Path) -> None:
    """Replace the old captures by the new ones; keep the README."""
    readme = directory / "README.md"
    if readme.exists():
        shutil.copy(readme, new_directory / readme.name)
    shutil.rmtree(directory, ignore_errors=True)
    new_directory.rename(directory)


if __name__ == "__main__":
    make_captures(Path(sys.argv[1]) if len(sys.argv) > 1 else CAPTURES)
