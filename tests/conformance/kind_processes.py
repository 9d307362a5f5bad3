"""Kafka Streams applications and Kafka Connect workers in separate processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance import jars
from tests.stored_cases import stored_cases

_CLIENTS = Path(__file__).with_name("clients")
_APPLICATION = _CLIENTS / "StreamsApplication.java"
_START_SECONDS = 120.0
_STOP_SECONDS = 20.0
_SETTINGS = stored_cases("settings_of_connect_workers")


@dataclass(frozen=True, slots=True)
class StreamsApplication:
    """A running Kafka Streams application."""

    process: subprocess.Popen[str]

    def tasks(self) -> dict[str, frozenset[str]]:
        """Return the active tasks by client id: subtopology 0 reads orders, 1 reads lowrate."""
        requests, answers = self.process.stdin, self.process.stdout
        if requests is None or answers is None:
            raise ValueError("the process has no pipes")
        requests.write("\n")
        requests.flush()
        _, *threads = answers.readline().strip().split(";")
        numbers = {"orders": 0, "lowrate": 1}
        return {
            client: frozenset(
                f"{numbers[topic]}_{number}"
                for word in words
                for topic, _, number in (word.rpartition(":"),)
            )
            for client, *words in map(str.split, threads)
        }


@contextmanager
def running_streams(
    bootstrap: str,
    name: str,
    protocol: str,
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    classes: Path | None = None,
) -> Iterator[StreamsApplication]:
    """Run a Kafka Streams application with the group protocol ``classic`` or ``streams``.

    ``classes`` is a directory of compiled classes that the settings name.
    """
    arguments = [str(_APPLICATION), bootstrap, name, protocol, str(directory / name)]
    arguments += [f"{key}={value}" for key, value in (settings or {}).items()]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with running_java(arguments, classes=classes, **pipes) as process:
        yield StreamsApplication(process)


@contextmanager
def running_share_consumers(bootstrap: str, group: str, clients: Sequence[str]) -> Iterator[None]:
    """Run consumers of a share group, each given as its client id and topics with commas."""
    arguments = [str(_CLIENTS / "ShareConsumers.java"), bootstrap, group, *clients]
    with running_java(arguments, stdin=subprocess.PIPE):
        yield


@dataclass(frozen=True, slots=True)
class ConnectCluster:
    """Running Kafka Connect workers, each with a REST interface.

    All requests except those of ``await_answer`` are sent to the first worker.
    """

    urls: list[str]
    start: Callable[[], subprocess.Popen[Any]]  # starts a further worker
    processes: list[subprocess.Popen[Any]]

    @property
    def url(self) -> str:
        """Return the address of the REST interface of the first worker."""
        return self.urls[0]

    def await_answer(self) -> float:
        """Wait until the worker that was started last answers requests; return the time."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(self.urls[-1], timeout=10):
                    return time.monotonic()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def workers(self, connector: str) -> dict[int, str]:
        """Return the worker of each running task of a connector."""
        tasks = self._request(f"connectors/{connector}/status")["tasks"]
        return {task["id"]: task["worker_id"] for task in tasks if task["state"] == "RUNNING"}

    def create(self, connector: str, settings: Mapping[str, str]) -> None:
        """Create a connector; wait for the workers.

        A request without an answer in time may have succeeded.
        """
        document = {"name": connector, "config": dict(settings)}
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._request("connectors", document)
            except (urllib.error.URLError, OSError) as error:
                if isinstance(error, urllib.error.HTTPError) and b"already exists" in error.read():
                    return
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return

    def _request(self, path: str, document: Mapping[str, object] | None = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/{path}",
            None if document is None else json.dumps(document).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


@contextmanager
def running_connect(
    bootstrap: str, name: str, directory: Path, *, workers: int, max_delay: int = 0
) -> Iterator[ConnectCluster]:
    """Run the workers of a Kafka Connect cluster.

    ``max_delay`` is ``scheduled.rebalance.max.delay.ms``.
    """
    urls: list[str] = []
    with ExitStack() as stack:

        def start() -> subprocess.Popen[Any]:
            with socket.socket() as opened:
                opened.bind(("127.0.0.1", 0))
                url = f"http://127.0.0.1:{opened.getsockname()[1]}"
            settings = _SETTINGS | {
                "bootstrap.servers": bootstrap,
                "group.id": name,
                "client.id": f"{name}-{len(urls)}",
                "listeners": url,
                "scheduled.rebalance.max.delay.ms": str(max_delay),
            }
            path = directory / f"{name}-{len(urls)}.properties"
            path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            main = "org.apache.kafka.connect.cli.ConnectDistributed"
            log = stack.enter_context(path.with_suffix(".log").open("wb"))
            urls.append(url)
            return stack.enter_context(running_java([main, str(path)], stdout=log, stderr=log))

        processes = [start() for _ in range(workers)]
        yield ConnectCluster(urls, start, processes)


@contextmanager
def running_java(
    arguments: list[str], *, classes: Path | None = None, **streams: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Run a class or a source file with the jars of Streams and Connect."""
    classpath = os.pathsep.join([*jars.classpath("kinds"), *([str(classes)] if classes else [])])
    command = [jars.java(), "-Xmx192m", "-XX:+UseSerialGC", jars.QUIET, "-cp", classpath]
    with subprocess.Popen([*command, *arguments], **streams) as process:
        try:
            yield process
        finally:
            if process.stdin is not None:
                process.stdin.close()
            else:
                process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
