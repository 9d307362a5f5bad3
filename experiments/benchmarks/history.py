"""Synthetic records of ``__consumer_offsets`` through the pipeline: how fast, in how much memory.

Run as ``python -m experiments.benchmarks.history [RECORDS]``; by default ten million.
"""

import os
import resource
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.spark.history import BATCHES, Known
from experiments.spark.history_output import write_history
from experiments.spark.history_sources import from_files
from experiments.spark.session import spark_session
from reference.coordinator.payload import Subscription
from reference.coordinator.records import GroupMetadata, MemberMetadata, OffsetCommit
from reference.partitions import NOTHING, Partitions, TopicPartition

RECORDS = 10_000_000
GROUPS = 1_000
PARTITIONS = 24
A_FILE = 500_000
EVERY = 2_000
"""One record in so many is a generation, the others commits; about what busy groups write."""
SEED = 20261121


def write_records(directory: Path, records: int) -> None:
    """Write synthetic records as Parquet, `A_FILE` to a file."""
    rng = np.random.default_rng(SEED)
    generations = dict.fromkeys(range(GROUPS), 0)
    for first in range(0, records, A_FILE):
        count = min(A_FILE, records - first)
        groups = rng.integers(0, GROUPS, count).tolist()
        numbers = rng.integers(0, PARTITIONS, count).tolist()
        keys, values = [], []
        for index, (group, number) in enumerate(zip(groups, numbers, strict=True)):
            if (first + index) % EVERY:
                keys.append(_commit_key(group, number))
                values.append(struct.pack(">hqihq", 3, first + index, -1, 0, first + index))
            else:
                generations[group] += 1
                record = _generation(group, generations[group])
                keys.append(record.key)
                values.append(record.value)
        places = [group % 50 for group in groups]
        table = pa.table(
            {
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(values, pa.binary()),
                "partition": pa.array(places, pa.int32()),
                "offset": pa.array(range(first, first + count), pa.int64()),
                "timestamp": pa.array(range(first, first + count), pa.int64()),
            }
        )
        pq.write_table(table, directory / f"{first:012}.parquet")


def _commit_key(group: int, number: int) -> bytes:
    partition = TopicPartition("orders", number)
    return OffsetCommit(f"group-{group}", partition, offset=0, moment=0).key


def _generation(group: int, number: int) -> GroupMetadata:
    """Return a generation of 3 to 6 members among whom partitions are dealt anew."""
    size = 3 + (group + number) % 4
    members = tuple(
        MemberMetadata(
            f"member-{index}",
            None,
            "client",
            "/127.0.0.1",
            1_000,
            1_000,
            Subscription(("orders",), owned=NOTHING, generation=-1, rack=None, memory=None),
            Partitions.of([("orders", n) for n in range(index, PARTITIONS, size)]),
        )
        for index in range(size)
    )
    name = f"group-{group}"
    return GroupMetadata(name, "consumer", number, "roundrobin", "member-0", number, members)


@contextmanager
def sampled() -> Iterator[list[int]]:
    """Sample the memory of this process and all below it twice a second, in MiB."""
    samples: list[int] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.5):
            samples.append(sum(_resident(pid) for pid in _family(os.getpid())) >> 20)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def _family(root: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended since
            parents[int(entry.name)] = int(fields[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def _resident(pid: int) -> int:
    """Return the proportional set size of a process, in bytes: shared pages count once."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    line = next((line for line in text.splitlines() if line.startswith("Pss:")), "Pss: 0")
    return int(line.split()[1]) << 10


def measure(records: int) -> None:
    """Run the pipeline over so many records and print what it took."""
    with tempfile.TemporaryDirectory(prefix="kassay-history-") as home:
        source = Path(home) / "records"
        source.mkdir()
        write_records(source, records)
        with spark_session(master="local[2]", settings=BATCHES) as spark, sampled() as samples:
            begin = time.perf_counter()
            counts = write_history(
                spark,
                from_files(spark, [source]),
                Path(home) / "out",
                known=Known(counts={"orders": PARTITIONS}),
                tasks=4,
                manifest=lambda rows: {"rows": rows},
            )
            seconds = time.perf_counter() - begin
    thirds = [
        samples[len(samples) * part // 3 : len(samples) * (part + 1) // 3] for part in range(3)
    ]
    peaks = ", ".join(str(max(part, default=0)) for part in thirds)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{counts['records']:,} records in {seconds:.0f} s: {records / seconds:,.0f} a second")
    print(f"{counts['generations']:,} generations, {counts['rebalances']:,} rebalances judged")
    print(f"memory of all processes, MiB, greatest in each third of the run: {peaks}")
    print(f"memory of the driver's Python, MiB: {own}")


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
