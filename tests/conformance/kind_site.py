"""A share group, Streams applications under both protocols, and a Connect cluster on one broker.

``python -m tests.conformance.kind_site`` writes outputs of the tools to ``examples/kinds``.
"""

from __future__ import annotations

import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import ImportedGroup
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.documents.kind_documents import KindDocument
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.captures import run_tool
from tests.conformance.kind_processes import (
    ConnectCluster,
    StreamsApplication,
    running_connect,
    running_share_consumers,
    running_streams,
)

TOPICS = {"orders": 6, "lowrate": 6}
APPLICATION, STREAMS_GROUP, SHARE_GROUP = "streams-classic", "streams-new", "share-orders"
CONNECTORS = {"archive": 4, "audit-log": 3}
SHARED = {"share-0": ["orders"], "share-1": ["orders", "lowrate"], "share-2": ["lowrate"]}
MAX_DELAY = 30_000
"""``scheduled.rebalance.max.delay.ms`` of the Connect cluster."""
_SECONDS = 90.0
_EXAMPLES = Path(__file__).parents[2] / "examples" / "kinds"
_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "500",
}


@dataclass(frozen=True, slots=True)
class KindSite:
    """Running groups of all kinds."""

    bootstrap: str
    directory: Path
    connect: ConnectCluster
    applications: tuple[StreamsApplication, ...]  # three processes of the classic protocol
    streams_group: tuple[StreamsApplication, ...]

    def imported(self) -> dict[str | None, ImportedGroup]:
        live = import_live(LiveCluster(self.bootstrap, timeout=20), (), ImportOptions())
        return {one.id: one for one in live}

    def document(self, name: str) -> KindDocument:
        one = self.imported()[name]
        if one.document is None:
            raise ValueError(f"{name}: {one.error or one.skipped}")
        return one.document


@contextmanager
def running_kinds() -> Iterator[KindSite]:
    """Start the broker and the groups, and wait until all tasks are assigned."""
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(settings=_SETTINGS, heap_mib=384))
        bootstrap = cluster.bootstrap
        admin = stack.enter_context(administrator(bootstrap))
        admin.create_topics(TOPICS)
        admin.produce({("orders", number): 50 for number in range(TOPICS["orders"])})
        directory = Path(stack.enter_context(TemporaryDirectory()))
        clients = [",".join([name, *topics]) for name, topics in SHARED.items()]
        stack.enter_context(running_share_consumers(bootstrap, SHARE_GROUP, clients))
        connect = stack.enter_context(
            running_connect(bootstrap, "connect", directory, workers=1, max_delay=MAX_DELAY)
        )
        for name, tasks in CONNECTORS.items():
            settings = {"connector.class": "FileStreamSink", "topics": "orders"}
            connect.create(
                name, {**settings, "tasks.max": str(tasks), "file": str(directory / name)}
            )
        # The first worker has joined, so it stays the leader.
        connect.processes.extend(connect.start() for _ in range(2))
        started: dict[str, list[StreamsApplication]] = {APPLICATION: [], STREAMS_GROUP: []}
        for number in range(3):
            folder = directory / str(number)
            folder.mkdir()
            start = partial(running_streams, bootstrap, directory=folder)
            started[APPLICATION].append(stack.enter_context(start(APPLICATION, "classic")))
            if number < 2:
                started[STREAMS_GROUP].append(stack.enter_context(start(STREAMS_GROUP, "streams")))
        for applications in started.values():
            await_stable(partial(tasks_of, applications))
        await_stable(partial(tasks_on_workers, connect, 3))
        yield KindSite(
            bootstrap,
            directory,
            connect,
            tuple(started[APPLICATION]),
            tuple(started[STREAMS_GROUP]),
        )


def tasks_of(applications: list[StreamsApplication]) -> list[dict[str, frozenset[str]]]:
    """Return the tasks of each thread of each process, or an empty list while some are missing."""
    found = [one.tasks() for one in applications]
    every = sorted(task for one in found for tasks in one.values() for task in tasks)
    complete = sorted(f"{sub}_{number}" for sub in (0, 1) for number in range(6))
    return found if every == complete else []


def running_tasks(connect: ConnectCluster) -> dict[str, dict[int, str]]:
    """Return the worker of each task by connector, or an empty table while some do not run."""
    try:
        found = {name: connect.workers(name) for name in CONNECTORS}
    except OSError:  # the worker does not answer, or does not know the connector yet
        return {}
    complete = all(len(found[name]) == tasks for name, tasks in CONNECTORS.items())
    return found if complete else {}


def tasks_on_workers(connect: ConnectCluster, workers: int) -> dict[str, dict[int, str]]:
    """Return the worker of each task, or an empty table unless a number of workers has tasks."""
    tasks = running_tasks(connect)
    return tasks if len({w for found in tasks.values() for w in found.values()}) == workers else {}


def await_stable(
    state: Callable[[], object], seconds: float = 5.0, *, within: float = _SECONDS
) -> None:
    """Wait until a state is not empty and does not change for some seconds."""
    deadline = time.monotonic() + within
    since, last = time.monotonic(), None
    while time.monotonic() < deadline:
        found = state()
        if not found or found != last:
            since, last = time.monotonic(), found
        elif time.monotonic() - since > seconds:
            return
        time.sleep(0.5)
    raise TimeoutError(f"the state does not settle: {last}")


def record(site: KindSite) -> None:
    """Write the outputs of the tools."""
    shutil.rmtree(_EXAMPLES, ignore_errors=True)
    _EXAMPLES.mkdir()
    server = ("--bootstrap-server", site.bootstrap, "--describe", "--members")
    for name, tool, group in (
        ("share", "consumer.group.ShareGroupCommand", SHARE_GROUP),
        ("streams", "streams.StreamsGroupCommand", STREAMS_GROUP),
    ):
        for suffix, options in (("", ()), ("-verbose", ("--verbose",))):
            output = run_tool(f"org.apache.kafka.tools.{tool}", *server, *options, "--group", group)
            (_EXAMPLES / f"{name}-members{suffix}.txt").write_text(output)
    with urllib.request.urlopen(f"{site.connect.url}/connectors?expand=status") as answer:
        (_EXAMPLES / "connect-status.json").write_text(answer.read().decode() + "\n")


if __name__ == "__main__":
    with running_kinds() as running:
        record(running)
