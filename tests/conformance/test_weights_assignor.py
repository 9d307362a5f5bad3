"""A plan for weights per window, carried out by `WeightsAssignor.java` on a broker.

A producer repeats a day of traffic within minutes. Two groups consume it at a limited rate: one
with Kafka's range assignor, and one with the weights of the day.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

import pytest
from confluent_kafka import Producer

from kassay import assign, solve
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.load_metrics import Measure, measures
from tests.conformance import jars
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster

pytestmark = pytest.mark.kafka

MEMBERS, HOURS = 3, 24
SECONDS_PER_HOUR = float(os.environ.get("SECONDS_PER_HOUR", "5"))
SOURCES = (
    Path("examples/assignors/WeightsAssignor.java"),
    Path("tests/conformance/clients/PacedConsumers.java"),
)
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "weights": "WeightsAssignor",
}


def day() -> list[list[int]]:
    """Return the records per partition and hour: half of the partitions are busy by night."""
    rows = []
    for partition in range(12):
        busy = range(8, 20) if partition < 6 else (*range(8), *range(20, 24))
        rows.append([60 + 5 * partition if hour in busy else 10 for hour in range(HOURS)])
    return rows


class PacedGroup:
    """Consumers of one group in a Java process, with the lags that they print."""

    def __init__(self, command: list[str]) -> None:
        self.partitions = 0
        self.lags: list[int] = []
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            word, *cells = line.split()
            if word == "partitions":
                self.partitions += int(cells[0])
            if word == "lag":
                self.lags.append(int(cells[1]))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def paced_groups(bootstrap: str, directory: Path, rate: float) -> Iterator[dict[str, PacedGroup]]:
    """Start a group per assignor, and wait until each has all partitions."""
    rows = day()
    weights = directory / "weights.csv"
    weights.write_text(
        "".join(f"t,{number},{','.join(map(str, row))}\n" for number, row in enumerate(rows))
    )
    path = os.pathsep.join([str(directory), *jars.classpath("clients")])
    sources = [*map(str, SOURCES)]
    subprocess.run(["javac", "-cp", path, "-d", str(directory), *sources], check=True)
    with ExitStack() as stack:
        groups = {}
        for name, assignor in ASSIGNORS.items():
            properties = {
                "bootstrap.servers": bootstrap,
                "group.id": name,
                "auto.offset.reset": "earliest",
                "max.poll.records": "5",
                "partition.assignment.strategy": assignor,
                "weights.file": str(weights),
            }
            command = [jars.java(), jars.QUIET, "-Xmx128m", "-cp", path, "PacedConsumers", "t"]
            command += [
                str(MEMBERS),
                str(rate),
                *(f"{key}={properties[key]}" for key in properties),
            ]
            groups[name] = PacedGroup(command)
            stack.callback(groups[name].close)
        while any(group.partitions != len(rows) for group in groups.values()):
            time.sleep(0.1)
        yield groups


def produce(bootstrap: str) -> None:
    """Produce the records of a day to the partitions, evenly within each hour."""
    producer, rows, start = Producer({"bootstrap.servers": bootstrap}), day(), time.monotonic()
    sent = [0] * len(rows)
    while (now := (time.monotonic() - start) / SECONDS_PER_HOUR) < HOURS:
        hour = int(now)
        for number, row in enumerate(rows):
            due = sum(row[:hour]) + row[hour] * (now - hour)
            while sent[number] < due:
                producer.produce("t", b"record", partition=number)
                sent[number] += 1
        producer.poll(0)
        time.sleep(0.05)
    producer.flush()


def test_the_assignor_of_the_weights_lowers_the_peak_of_the_lag(tmp_path: Path) -> None:
    rows = tuple(map(tuple, day()))
    members = tuple(Member(f"c{number}", ("t",)) for number in range(MEMBERS))
    group = Group((Topic("t", len(rows), profiles=rows),), members)
    solution = solve(group)
    assert solution.assignment is not None
    peaks = [
        measures(group, each)[Measure.MAKESPAN]
        for each in (assign(group, "range"), solution.assignment)
    ]
    # Each member can process a little more than the planned peak, and less than that of range.
    rate = 1.15 * peaks[1] / SECONDS_PER_HOUR
    assert rate * SECONDS_PER_HOUR < peaks[0]
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384))
        stack.enter_context(administrator(cluster.bootstrap)).create_topics({"t": len(rows)})
        groups = stack.enter_context(paced_groups(cluster.bootstrap, tmp_path, rate))
        produce(cluster.bootstrap)
        lags = {name: max(group.lags) for name, group in groups.items()}
    print(f"peaks {peaks}, maximum lag of a member {lags}")  # noqa: T201
    assert lags["weights"] < lags["range"] / 2
