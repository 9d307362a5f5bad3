"""Groups of real consumers of eight client libraries, which join and leave step by step."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock, Thread

from tests.conformance import jars
from tests.conformance.consumers import Profile, RunningConsumer
from tests.installed_library import require_library

CLIENTS = Path(__file__).with_name("clients")
BUILD = jars.CACHE.parent / "clients"
PYTHON_PACKAGES = ("kafka-python==3.0.12", "confluent-kafka==2.12.0", "aiokafka==0.14.0")
TOPICS = {"a.orders": 7, "b.payments": 4, "c.clicks": 5}
EQUAL = ("a.orders", "b.payments")
MIXED = ("b.payments", "c.clicks")
_BUILD_SECONDS = 600
_GO = ("franz-go", "sarama", "kafka-go")
_STOP_SECONDS = 20


def require_libraries(*names: str) -> None:
    """Skip a test if the newest release of a library is not installed with its driver."""
    for name in names:
        require_library("kafka-clients" if name == "java" else name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientGroup:
    """A group of three consumers of one library.

    The third consumer subscribes to other topics if ``mixed``.
    """

    library: str
    assignor: str
    mixed: bool = True
    rack: str | None = None

    @property
    def name(self) -> str:
        return f"{self.library}-{self.assignor}" + ("" if self.mixed else "-equal")


GROUPS = (
    ClientGroup(library="java", assignor="range", rack="left"),
    ClientGroup(library="java", assignor="sticky"),
    ClientGroup(library="java", assignor="cooperative-sticky"),
    ClientGroup(library="java", assignor="uniform"),
    ClientGroup(library="java", assignor="server-range"),
    ClientGroup(library="librdkafka", assignor="range"),
    ClientGroup(library="librdkafka", assignor="cooperative-sticky"),
    ClientGroup(library="librdkafka", assignor="uniform"),
    ClientGroup(library="franz-go", assignor="cooperative-sticky"),
    ClientGroup(library="franz-go", assignor="range"),
    ClientGroup(library="sarama", assignor="range"),
    ClientGroup(library="sarama", assignor="sticky"),
    ClientGroup(library="kafka-go", assignor="range"),
    ClientGroup(library="kafka-go", assignor="roundrobin"),
    ClientGroup(library="kafkajs", assignor="RoundRobinAssigner"),
    ClientGroup(library="kafkajs", assignor="RoundRobinAssigner", mixed=False),
    ClientGroup(library="kafka-python", assignor="range"),
    ClientGroup(library="kafka-python", assignor="sticky"),
    ClientGroup(library="aiokafka", assignor="range"),
    ClientGroup(library="aiokafka", assignor="sticky"),
)


class ClientProcess:
    """A consumer in a separate process, which reads its subscriptions from standard input."""

    def __init__(
        self,
        library: str,
        bootstrap: str,
        group: str,
        assignor: str,
        topics: Sequence[str],
        *,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        command, environment = _command(library)
        self._process = subprocess.Popen(
            [*command, bootstrap, group, assignor, ",".join(topics)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment | {"CONSUMER": json.dumps(settings or {})},
        )
        self.ownership: list[str] = []
        """Output of the Python consumers: their assignments and revocations."""
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        if self._process.stdout is not None:
            self.ownership.extend(self._process.stdout)

    def subscribe(self, *topics: str) -> None:
        """Change the subscription."""
        if self._process.stdin is not None:
            self._process.stdin.write(",".join(topics) + "\n")
            self._process.stdin.flush()

    def end(self) -> None:
        """Let the consumer leave its group, and do not wait for its end."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def leave(self) -> None:
        """Stop the consumer, which leaves its group."""
        self.end()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclass(slots=True)
class RunningClients:
    """Consumers of one group, by client number. ``partitions`` are those of all topics."""

    group: ClientGroup
    bootstrap: str
    partitions: Mapping[str, int] = field(default_factory=lambda: TOPICS)
    consumers: dict[int, RunningConsumer | ClientProcess] = field(default_factory=dict)
    subscriptions: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def join(
        self,
        number: int,
        topics: Sequence[str] | None = None,
        *,
        library: str | None = None,
        assignor: str | None = None,
    ) -> None:
        """Start a consumer, by default of the library and with the assignor of the group."""
        if topics is None:
            topics = MIXED if number == 2 and self.group.mixed else EQUAL
        library, assignor = library or self.group.library, assignor or self.group.assignor
        self.subscriptions[number] = tuple(topics)
        if library == "java":
            profile = Profile(
                client=f"consumer-{self.group.name}-{number + 1}",
                topics=tuple(topics),
                assignor=assignor,
                rack=self.group.rack,
            )
            self.consumers[number] = RunningConsumer(self.bootstrap, self.group.name, profile)
            return
        self.consumers[number] = ClientProcess(
            library, self.bootstrap, self.group.name, assignor, topics
        )

    def subscribe(self, number: int, topics: Sequence[str]) -> None:
        """Change the subscription of a consumer."""
        self.subscriptions[number] = tuple(topics)
        self.consumers[number].subscribe(*topics)

    def leave(self, number: int) -> None:
        """Stop a consumer, which leaves its group."""
        del self.subscriptions[number]
        self.consumers.pop(number).leave()

    def close(self) -> None:
        """Stop all consumers."""
        for consumer in self.consumers.values():
            if isinstance(consumer, ClientProcess):
                consumer.end()
        for number in list(self.consumers):
            self.leave(number)


def _command(library: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of a consumer."""
    if library in _GO:
        return [str(_go_consumer()), library], {}
    if library == "kafkajs":
        return ["node", str(_node_consumer())], {}
    packages = sysconfig.get_path("purelib", vars={"base": str(_python().parents[1])})
    return [sys.executable, str(CLIENTS / "consumer.py"), library], {
        "PYTHONPATH": packages,
        "PYTHONHASHSEED": "0",  # as in the driver
    }


@cache
def _go_consumer() -> Path:
    """Compile the Go consumer with the versions of ``go.mod``."""
    target = BUILD / "consumer"
    BUILD.mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-o", str(target), "consumer.go"]
    subprocess.run(command, cwd=CLIENTS, check=True, timeout=_BUILD_SECONDS)
    return target


@cache
def _node_consumer() -> Path:
    """Install the packages of ``package.json``."""
    directory = BUILD / "node"
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("consumer.js", "package.json"):
        shutil.copy(CLIENTS / name, directory / name)
    command = ["npm", "install", "--silent", "--no-fund", "--no-audit"]
    subprocess.run(command, cwd=directory, check=True, timeout=_BUILD_SECONDS)
    return directory / "consumer.js"


_INSTALLING = Lock()
"""Lock of the installation, because groups of a benchmark start in several threads."""


@cache
def _python() -> Path:
    """Create a virtual environment with the Python clients."""
    directory = BUILD / "python"
    interpreter = directory / "bin" / "python"
    with _INSTALLING:
        if not interpreter.exists():
            venv.create(directory, with_pip=True)
        command = [str(interpreter), "-m", "pip", "install", "--quiet", *PYTHON_PACKAGES]
        subprocess.run(command, check=True, timeout=_BUILD_SECONDS)
    return interpreter


def versions() -> Mapping[str, str]:
    """Return the versions of the client libraries."""
    modules = (CLIENTS / "go.mod").read_text().split("\n")
    wanted = {"franz-go": "franz-go", "IBM/sarama": "sarama", "kafka-go": "kafka-go"}
    found = {"java": jars.version("clients"), "python": sys.version.split()[0]}
    for line in modules:
        words = line.split()
        for end, name in wanted.items():
            if len(words) == 2 and words[0].endswith(f"/{end}"):
                found[name] = words[1]
    package = (CLIENTS / "package.json").read_text()
    found["kafkajs"] = package.split('"kafkajs": "')[1].split('"')[0]
    return found | dict(each.split("==") for each in PYTHON_PACKAGES)
