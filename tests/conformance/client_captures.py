"""Create ``tests/data/clients``: groups of eight client libraries on a real broker.

``python -m tests.conformance.client_captures`` starts a broker, lets `GROUPS` join and leave,
and records the tools' output of two releases, the answers to the admin requests of kassay, the
dump of ``__consumer_offsets``, and the assignments that Java's ``Admin`` client reports.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.reference.model.errors import InputError
from tests.conformance import jars
from tests.conformance.admin import Administrator, administrator
from tests.conformance.broker import KafkaCluster, running_cluster
from tests.conformance.captures import GROUP_TOOL, TOPIC_TOOL, VIEWS, run_tool
from tests.conformance.client_groups import GROUPS, TOPICS, RunningClients, versions

DATA = Path(__file__).parents[1] / "data" / "clients"
_RACKS = ("left", "right")
_SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "3000"}
_DUMP_TOOLS: Mapping[jars.Kind, str] = {
    "tools": "org.apache.kafka.tools.DumpLogSegments",
    "older-tools": "kafka.tools.DumpLogSegments",
}
_STABLE_SECONDS = 150.0


def record(directory: Path) -> None:
    """Run all groups and replace the recorded files."""
    new = directory.with_name(directory.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(racks=_RACKS, settings=_SETTINGS))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(TOPICS)
        admin.produce({(name, n): 5 + n for name, count in TOPICS.items() for n in range(count)})
        running = [RunningClients(group, cluster.bootstrap) for group in GROUPS]
        for clients in running:
            stack.callback(clients.close)
        for step in (0, 1, 2):
            _play(running, admin, lambda clients, number=step: clients.join(number))
        _play(running, admin, lambda clients: clients.leave(0))
        expected = {each.group.name: _expected(each, admin) for each in running}
        _capture(cluster, new)
        (new / "live.json").write_text(_compact(_live(cluster, admin)))
        for name, known in expected.items():
            if known["members"] != _members(admin, name):
                raise RuntimeError(f"group {name!r} changed during the capture")
        (new / "expected.json").write_text(_compact(expected))
        _dump(cluster, new)
        stated = {"broker": jars.version("broker"), "tools": jars.version("tools")}
        stated |= {"older tools": jars.version("older-tools"), **versions()}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = {"recorded": now, "versions": stated}
        (new / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    shutil.rmtree(directory, ignore_errors=True)
    new.rename(directory)


def _play(running: Sequence[RunningClients], admin: Administrator, step: Any) -> None:
    """Run one step in every group and wait until all groups are stable."""
    for clients in running:
        step(clients)
    deadline = time.monotonic() + _STABLE_SECONDS
    before: dict[str, Any] = {}
    while time.monotonic() < deadline:
        members = {each.group.name: _members(admin, each.group.name) for each in running}
        settled = all(
            known is None or len(known) == len(each.consumers)
            for each in running
            for known in (members[each.group.name],)
        )
        if settled and members == before:
            print("stable", file=sys.stderr, flush=True)  # noqa: T201 - progress
            return
        before = members
        time.sleep(6)
    counts = {name: None if known is None else len(known) for name, known in before.items()}
    raise TimeoutError(f"groups are not stable after {_STABLE_SECONDS} s: {counts}")


def _members(admin: Administrator, name: str) -> dict[str, list[list[Any]]] | None:
    """Return the assignments of a stable group; None if Java's client cannot read it."""
    try:
        if admin.group(name).state != "Stable":
            return {}
        described = admin.members(name)
    except Exception as error:  # noqa: BLE001 - any error of Java's client
        print(name, error, file=sys.stderr, flush=True)  # noqa: T201 - progress
        return None
    if any(member.target not in (None, member.assigned) for member in described):
        return {}
    return {member.id: [list(pair) for pair in sorted(member.assigned)] for member in described}


def _expected(clients: RunningClients, admin: Administrator) -> dict[str, Any]:
    return {
        "library": clients.group.library,
        "assignor": clients.group.assignor,
        "subscriptions": [list(topics) for topics in clients.subscriptions.values()],
        "members": _members(admin, clients.group.name),
    }


def _capture(cluster: KafkaCluster, directory: Path) -> None:
    server = ("--bootstrap-server", cluster.bootstrap)
    kinds: tuple[jars.Kind, ...] = ("tools", "older-tools")
    for kind in kinds:
        home = directory / f"kafka-{jars.version(kind)}"
        home.mkdir()
        for view in ("offsets", "members-verbose", "state"):
            output = run_tool(GROUP_TOOL, *server, *VIEWS[view], "--all-groups", kind=kind)
            (home / f"{view}.txt").write_text(output)
    output = run_tool(TOPIC_TOOL, *server, "--describe", "--exclude-internal")
    (directory / "topics.txt").write_text(output)


def _live(cluster: KafkaCluster, admin: Administrator) -> dict[str, Any]:
    """Return the answers to the requests of an import of the cluster."""
    client = LiveCluster(cluster.bootstrap)
    names = sorted({*client.group_ids(), *(group.name for group in GROUPS)})
    return {
        "groups": {name: _answer(each) for name, each in client.describe(names).items()},
        "subscriptions": {id: data.hex() for id, data in client.subscriptions(names).items()},
        "offsets": {
            name: {"error": str(each)}
            if isinstance(each, InputError)
            else [[topic, number, offset] for (topic, number), offset in sorted(each.items())]
            for name, each in client.committed_offsets(names).items()
        },
        "topics": {name: _answer(each) for name, each in client.topics(list(TOPICS)).items()},
    }


def _answer(answer: Any) -> Any:
    if isinstance(answer, InputError):
        return {"error": str(answer)}
    return json.loads(json.dumps(asdict(answer), default=_plain))


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, set) else str(value)


def _dump(cluster: KafkaCluster, directory: Path) -> None:
    """Record the dumps of ``__consumer_offsets`` without the offset commits."""
    log = next(cluster.directory.glob("node-*/__consumer_offsets-0/*.log"))
    for kind, tool in _DUMP_TOOLS.items():
        text = run_tool(tool, "--offsets-decoder", "--files", str(log), kind=kind)
        lines = [line for line in text.splitlines() if 'key: {"type":"1"' not in line]
        text = "\n".join(
            line.replace(str(log.parent), "/data/__consumer_offsets-0") for line in lines
        )
        target = directory / f"kafka-{jars.version(kind)}" / "dump.txt.gz"
        target.write_bytes(gzip.compress(text.encode() + b"\n", mtime=0))


def _compact(document: Mapping[str, Any]) -> str:
    """Format JSON with one line per entry of the first two levels."""
    parts = []
    for key, value in document.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            parts.append(f" {json.dumps(key)}: {{\n{inner}\n }}")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    record(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
