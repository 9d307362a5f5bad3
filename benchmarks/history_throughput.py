"""Throughput and peak memory of `kassay history` on Spark, with synthetic records."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.memory import sampled_peak
from benchmarks.synthetic_records import PARTITIONS, TOPIC, TOPIC_ID, write_records
from benchmarks.timing import Timing
from kassay.experiments.spark.history_pipeline import (
    RECORD_SETTINGS,
    ClusterMetadata,
    read_files,
    write_history,
)
from kassay.experiments.spark.session import spark_session

RECORDS = 1_000_000


def history(records: int = RECORDS) -> Iterator[Timing]:
    """Time the complete history pipeline: decode records, find rebalances and solve them."""
    with tempfile.TemporaryDirectory(prefix="kassay-history-") as directory:
        source = Path(directory) / "records"
        source.mkdir()
        write_records(source, records)
        size = sum(path.stat().st_size for path in source.iterdir())
        with (
            spark_session(master="local[2]", settings=RECORD_SETTINGS) as spark,
            sampled_peak() as peak,
        ):
            start = time.perf_counter()
            written = write_history(
                spark,
                read_files(spark, [source]),
                str(Path(directory) / "out"),
                known=ClusterMetadata(
                    partition_counts={TOPIC: PARTITIONS}, topic_names={str(TOPIC_ID): TOPIC}
                ),
                tasks=4,
                manifest=lambda rows: {"rows": rows},
            )
            seconds = time.perf_counter() - start
            counts = written.counts
    case = f"{counts['records']:,} records, {size >> 20} MiB of Parquet"
    yield Timing(
        benchmark="history",
        case=case,
        seconds=seconds,
        note=f"{records / seconds:,.0f} records per second, {counts['rebalances']:,} rebalances; "
        f"peak memory Java {peak.java} MiB, Python {peak.python} MiB",
    )
