"""Groups of real consumers of eight client libraries, which join and leave step by step."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.conformance import jars
from tests.conformance.consumers import Profile, RunningConsumer

CLIENTS = Path(__file__).with_name("clients")
BUILD = jars.CACHE.parent / "clients"
PYTHON_PACKAGES = ("kafka-python==3.0.12", "confluent-kafka==2.16.1", "aiokafka==0.14.0")
TOPICS = {"a.orders": 7, "b.payments": 4, "c.clicks": 5}
EQUAL = ("a.orders", "b.payments")
MIXED = ("b.payments", "c.clicks")
_BUILD_SECONDS = 600
_GO = ("franz-go", "sarama", "kafka-go")
_STOP_SECONDS = 20


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
        """Group id."""
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


@dataclass(slots=True)
class RunningClients:
    """Consumers of one group, by client number."""

    group: ClientGroup
    bootstrap: str
    consumers: dict[int, RunningConsumer | subprocess.Popen[bytes]] = field(default_factory=dict)
    subscriptions: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def join(self, number: int) -> None:
        """Start a consumer."""
        topics = MIXED if number == 2 and self.group.mixed else EQUAL
        self.subscriptions[number] = topics
        if self.group.library == "java":
            profile = Profile(
                client=f"consumer-{self.group.name}-{number + 1}",
                topics=topics,
                assignor=self.group.assignor,
                rack=self.group.rack,
            )
            self.consumers[number] = RunningConsumer(self.bootstrap, self.group.name, profile)
            return
        command = [*_command(self.group, self.bootstrap), ",".join(topics)]
        self.consumers[number] = subprocess.Popen(command, stdin=subprocess.PIPE)

    def leave(self, number: int) -> None:
        """Stop a consumer, which leaves its group."""
        consumer = self.consumers.pop(number)
        del self.subscriptions[number]
        if isinstance(consumer, RunningConsumer):
            consumer.leave()
            return
        if consumer.stdin is not None:
            consumer.stdin.close()
        try:
            consumer.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            consumer.kill()
            consumer.wait()

    def close(self) -> None:
        """Stop all consumers."""
        for number in list(self.consumers):
            self.leave(number)


def _command(group: ClientGroup, bootstrap: str) -> list[str]:
    if group.library in _GO:
        start = [str(_go_consumer()), group.library, bootstrap, group.name, group.assignor]
    elif group.library == "kafkajs":
        start = ["node", str(_node_consumer()), bootstrap, group.name]
    else:
        script = str(CLIENTS / "consumer.py")
        start = [str(_python()), script, group.library, bootstrap, group.name, group.assignor]
    return start


@cache
def _go_consumer() -> Path:
    """Compile the Go consumer with the versions of ``go.mod``."""
    target = BUILD / "consumer"
    BUILD.mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-o", str(target), "."]
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


@cache
def _python() -> Path:
    """Create a virtual environment with the Python clients."""
    directory = BUILD / "python"
    interpreter = directory / "bin" / "python"
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
