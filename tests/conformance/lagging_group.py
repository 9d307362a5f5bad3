"""Record ``examples/lagging-group``: the output of Kafka's tools for a group that falls behind.

``python -m tests.conformance.lagging_group [DIRECTORY]`` starts a broker, a producer with equal
traffic per partition and four Java consumers with limited throughput. The range assignor gives two
of them six partitions and the others three, so that only the first two fall behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import Producer

from tests.conformance import jars
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.captures import GROUP_TOOL, TOPIC_TOOL, run_tool

LAGGING_GROUP = Path(__file__).parents[2] / "examples" / "lagging-group"
GROUP = "billing"
TOPICS = {"invoices": 6, "payments": 6, "refunds": 6}
MEMBERS = 4
PRODUCED_PER_PARTITION = 5
"""Records per second and partition."""
CONSUMED_PER_MEMBER = 27
"""Maximum number of records that a member processes per second."""
SECONDS = 150
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
# A pipe stores few records of this size, so that the consumer waits for its reader.
RECORD = b"x" * 4096


def produce(bootstrap: str, stop: threading.Event) -> None:
    """Append records to all partitions until ``stop`` is set."""
    producer = Producer({"bootstrap.servers": bootstrap})
    while not stop.wait(1 / PRODUCED_PER_PARTITION):
        for topic, count in TOPICS.items():
            for partition in range(count):
                producer.produce(topic, RECORD, partition=partition)
        producer.poll(0)
    producer.flush(10)


@contextmanager
def running_consumer(bootstrap: str, client: str) -> Iterator[None]:
    """Run Kafka's console consumer with a reader of limited speed."""
    command = [jars.java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command += ["-cp", os.pathsep.join(jars.classpath("tools")), CONSUMER]
    command += ["--bootstrap-server", bootstrap, "--group", GROUP, "--include", "|".join(TOPICS)]
    properties = {
        "client.id": client,
        "partition.assignment.strategy": RANGE,
        "auto.commit.interval.ms": "1000",
        "max.poll.records": "5",
    }
    for key, value in properties.items():
        command += ["--command-property", f"{key}={value}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        reader = threading.Thread(target=_process_records, args=(process.stdout,))
        reader.start()
        try:
            yield
        finally:
            process.kill()
            reader.join()


def _process_records(records: Iterator[bytes]) -> None:
    for _ in records:
        time.sleep(1 / CONSUMED_PER_MEMBER)


def record(directory: Path) -> None:
    """Start the group, wait until it falls behind, and record the output of the tools."""
    stop = threading.Event()
    with ExitStack() as stack:
        bootstrap = stack.enter_context(running_cluster()).bootstrap
        admin = stack.enter_context(administrator(bootstrap))
        admin.create_topics(TOPICS)
        for number in range(MEMBERS):
            stack.enter_context(running_consumer(bootstrap, f"billing-{number}"))
        admin.await_group(GROUP, lambda view: view.is_stable and len(view.members) == MEMBERS)
        thread = threading.Thread(target=produce, args=(bootstrap, stop))
        thread.start()
        stack.callback(thread.join)
        stack.callback(stop.set)
        time.sleep(SECONDS)
        directory.mkdir(parents=True, exist_ok=True)
        server = ("--bootstrap-server", bootstrap, "--describe")
        for name, tool, options in (
            ("offsets", GROUP_TOOL, ("--all-groups",)),
            ("members", GROUP_TOOL, ("--all-groups", "--members", "--verbose")),
            ("topics", TOPIC_TOOL, ("--exclude-internal",)),
        ):
            (directory / f"{name}.txt").write_text(run_tool(tool, *server, *options))


if __name__ == "__main__":
    record(Path(sys.argv[1]) if sys.argv[1:] else LAGGING_GROUP)
