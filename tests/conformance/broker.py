"""Apache Kafka cluster on loopback, with free ports and a temporary directory.

The cluster uses KRaft; its first node is controller and broker.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.conformance import jars

START_SECONDS = 90.0
STOP_SECONDS = 20.0
SESSION_MILLIS = 10_000
"""Session timeout of the consumer protocol in ms, a broker setting."""

_SETTINGS = {
    "auto.create.topics.enable": "false",
    "background.threads": "2",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MILLIS),
    "group.initial.rebalance.delay.ms": "1000",
    "group.min.session.timeout.ms": "1000",
    # The default of 128 MiB is a quarter of the heap.
    "log.cleaner.dedupe.buffer.size": str(16 << 20),
    "num.io.threads": "4",
    "num.network.threads": "2",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
}


class BrokerFailedError(RuntimeError):
    """The broker stopped or was not ready in time; the message contains its log."""


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """A running cluster.

    Parameters
    ----------
    bootstrap
        ``host:port`` of every broker, separated by commas.
    directory
        Directory with configuration, data and ``node-<n>.log`` of the nodes.
    listeners
        ``host:port`` of every broker, per additional listener.
    """

    bootstrap: str
    directory: Path
    listeners: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def running_cluster(
    *,
    racks: Sequence[str | None] = (None,),
    heap_mib: int = 512,
    settings: Mapping[str, str] | None = None,
    listeners: Mapping[str, str] | None = None,
) -> Iterator[KafkaCluster]:
    """Run one broker per rack, and stop all brokers at the end.

    Parameters
    ----------
    racks
        ``broker.rack`` of each broker, None for none.
    heap_mib
        Heap limit of each broker, in MiB.
    settings
        Additional broker properties.
    listeners
        Security protocols of additional listeners.
    """
    ports = _free_ports(len(racks) + 1)
    additional = {name: _free_ports(len(racks)) for name in listeners or {}}
    # Kafka's tools would parse an id that starts with a dash as an option.
    cluster_id = "k" + urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
    with tempfile.TemporaryDirectory(prefix="kassay-kafka-") as home, ExitStack() as stack:
        directory = Path(home)
        nodes = []
        for node, rack in enumerate(racks, start=1):
            properties = _properties(node, ports, rack, directory) | dict(settings or {})
            for name, protocol in (listeners or {}).items():
                _add_listener(properties, name, protocol, additional[name][node - 1])
            config = directory / f"node-{node}.properties"
            config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
            _format(config, cluster_id)
            nodes.append(stack.enter_context(_running_node(config, heap_mib)))
        bootstrap = _addresses(ports[1:])
        _await_ready(bootstrap, nodes, directory)
        yield KafkaCluster(
            bootstrap, directory, {name: _addresses(additional[name]) for name in additional}
        )


def _free_ports(count: int) -> list[int]:
    """Return different free ports."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for opened in sockets:
            opened.bind(("127.0.0.1", 0))
        return [int(opened.getsockname()[1]) for opened in sockets]


def _addresses(ports: Sequence[int]) -> str:
    return ",".join(f"127.0.0.1:{port}" for port in ports)


def _add_listener(properties: dict[str, str], name: str, protocol: str, port: int) -> None:
    address = f",{name}://127.0.0.1:{port}"
    properties["listeners"] += address
    properties["advertised.listeners"] += address
    properties["listener.security.protocol.map"] += f",{name}:{protocol}"


def _properties(
    node: int, ports: Sequence[int], rack: str | None, directory: Path
) -> dict[str, str]:
    """Return the configuration of a node; ``ports[0]`` is the controller's port."""
    controller, broker = f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[node]}"
    first = node == 1
    properties = _SETTINGS | {
        "process.roles": "broker,controller" if first else "broker",
        "node.id": str(node),
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "listeners": f"PLAINTEXT://{broker}" + (f",CONTROLLER://{controller}" if first else ""),
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "log.dirs": str(directory / f"node-{node}"),
    }
    return properties if rack is None else properties | {"broker.rack": rack}


def _java(main: str, *arguments: str, heap_mib: int) -> list[str]:
    """Return the command that runs a class of the broker's class path."""
    # For short runs, the first compiler tier and the serial collector are the fastest.
    options = [f"-Xmx{heap_mib}m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return [
        jars.java(),
        *options,
        "-cp",
        os.pathsep.join(jars.classpath("broker")),
        main,
        *arguments,
    ]


def _format(config: Path, cluster_id: str) -> None:
    """Format the storage of a KRaft node."""
    command = _java(
        "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(config), heap_mib=128
    )
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise BrokerFailedError(f"storage was not formatted: {done.stdout}{done.stderr}")


@contextmanager
def _running_node(config: Path, heap_mib: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run one node; stop it at the end, by force if necessary.

    The surrounding shell stops the node when its input is closed, so the node also stops
    when this process dies.
    """
    script = 'exec 3<&0; "$@" & node=$!; (read -r _ <&3; kill "$node") & wait "$node"'
    command = ["sh", "-c", script, "sh", *_java("kafka.Kafka", str(config), heap_mib=heap_mib)]
    with config.with_suffix(".log").open("wb") as log:
        node = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield node
        finally:
            if node.stdin is not None:
                node.stdin.close()
            try:
                node.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(node.pid, signal.SIGKILL)
                node.wait()


def _await_ready(bootstrap: str, nodes: Sequence[subprocess.Popen[bytes]], directory: Path) -> None:
    """Wait until the cluster's metadata contain every broker."""
    deadline = time.monotonic() + START_SECONDS
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    while time.monotonic() < deadline:
        if any(node.poll() is not None for node in nodes):
            raise BrokerFailedError(f"a broker stopped early\n{_tails(directory)}")
        try:
            if len(admin.list_topics(timeout=2).brokers) == len(nodes):
                return
        except KafkaException:
            pass
        time.sleep(0.2)
    raise BrokerFailedError(
        f"the brokers are not ready after {START_SECONDS} s\n{_tails(directory)}"
    )


def _tails(directory: Path) -> str:
    """Return the last lines of every node's log."""
    logs = sorted(directory.glob("node-*.log"))
    return "\n".join("\n".join(log.read_text().splitlines()[-20:]) for log in logs)
