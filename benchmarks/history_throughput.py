"""Synthetic records of ``__consumer_offsets`` through the pipeline: how fast, in how much memory.

Run as ``python -m benchmarks.history_throughput [RECORDS]``; by default ten million.
"""

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.memory_sampling import by_parts, sampled
from benchmarks.synthetic_records import PARTITIONS, TOPIC, TOPIC_ID, write_records
from kassay.experiments.spark.history_output import write_history
from kassay.experiments.spark.history_pipeline import RECORD_SETTINGS, ClusterMetadata
from kassay.experiments.spark.record_sources import read_files
from kassay.experiments.spark.session import spark_session

RECORDS = 10_000_000
_PARTS = 10


def measure(records: int) -> None:
    """Run the pipeline over so many records and print what it took."""
    with tempfile.TemporaryDirectory(prefix="kassay-history-") as home:
        source = Path(home) / "records"
        source.mkdir()
        write_records(source, records)
        size = sum(path.stat().st_size for path in source.iterdir())
        with (
            spark_session(master="local[2]", settings=RECORD_SETTINGS) as spark,
            sampled() as samples,
        ):
            begin = time.perf_counter()
            counts = write_history(
                spark,
                read_files(spark, [source]),
                Path(home) / "out",
                known=ClusterMetadata(
                    partition_counts={TOPIC: PARTITIONS}, topic_names={str(TOPIC_ID): TOPIC}
                ),
                tasks=4,
                manifest=lambda rows: {"rows": rows},
            )
            seconds = time.perf_counter() - begin
    print(f"{counts['records']:,} records, {size >> 20} MiB of Parquet, in {seconds:.0f} s:")
    print(f"{records / seconds:,.0f} records a second")
    print(", ".join(f"{counts[name]:,} {name}" for name in sorted(counts) if name != "records"))
    print("greatest memory in each tenth of the run, MiB: seconds, Java, Python")
    for part in by_parts(samples, _PARTS):
        print(f"{part.seconds:8.0f} {part.java:6} {part.python:6}")


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
