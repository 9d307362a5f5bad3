"""Histories on Spark equal those without Spark, and captures are one table."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kassay.experiments.cli.commands.survey import group_histories
from kassay.experiments.history.log_summary import rebalance_record, summarise_logs
from kassay.experiments.history.recorded_rebalances import (
    compared_row,
    generation_rows,
    rebalance_rows,
)
from kassay.experiments.spark.history_pipeline import (
    GENERATIONS,
    GROUPS,
    ClusterMetadata,
    read_files,
    summarise_logs_on_spark,
    write_history,
)
from kassay.experiments.study.output_reader import read_manifest
from tests.experiments.history.sample_records import PARTITION_COUNTS, decode_rows, sample_rows

pytestmark = pytest.mark.spark

ASSIGNORS = {"g": "sticky", "h": "range", "i": "cooperative-sticky"}


def test_logs_on_spark_have_the_rebalances_of_logs_without_it(spark: SparkSession) -> None:
    files = sorted((Path(__file__).parents[2] / "data" / "logs").glob("*.log"))
    expected: list[dict] = []
    summaries = summarise_logs(
        files, on_rebalance=lambda one: expected.append(rebalance_record(one))
    )
    found: list[Mapping[str, object]] = []
    assert summarise_logs_on_spark(spark, files, on_rebalance=found.append) == summaries
    assert sorted(map(str, found)) == sorted(map(str, expected))


def _records() -> list[dict]:
    histories = (
        sample_rows(name, assignor, seed=1, steps=5) for name, assignor in ASSIGNORS.items()
    )
    return [row for history in histories for row in history]


def _write(
    spark: SparkSession, records: list[dict], home: Path, *, tasks: int
) -> Mapping[str, int]:
    home.mkdir()
    half = len(records) // 2
    for name, part in (("a.parquet", records[:half]), ("b.parquet", records[half:])):
        pq.write_table(pa.Table.from_pylist(part), home / name)
    return write_history(
        spark,
        read_files(spark, [home / "a.parquet", home / "b.parquet"]),
        str(home / "out"),
        known=ClusterMetadata(partition_counts=PARTITION_COUNTS),
        tasks=tasks,
        manifest=lambda counts: {"rows": counts},
    ).counts


@pytest.mark.long
def test_tables_do_not_depend_on_the_order_of_records(spark: SparkSession, tmp_path: Path) -> None:
    records = _records()
    group_records = sorted(
        (row for row in decode_rows(records) if row["kind"] == 2),
        key=lambda row: (row["group"], row["offset"]),
    )
    rows = [*generation_rows(group_records, topic_names={})]
    generations = pa.Table.from_pylist(rows, GENERATIONS).to_pylist()
    solved = [
        compared_row(row) for row in rebalance_rows(generations, partition_counts=PARTITION_COUNTS)
    ]
    random.Random(5).shuffle(records)
    metadata = next(row for row in records if row["key"].startswith(b"\0\2"))
    damaged = {**metadata, "value": b"\0\3\0", "partition": 9, "offset": 7}
    counts = _write(spark, [*records, damaged, records[3]], tmp_path / "once", tasks=2)
    out = tmp_path / "once" / "out"
    manifest = read_manifest(out)
    tables = out / manifest["history"]

    def read(name: str) -> list[dict]:
        return pyarrow.dataset.dataset(tables / name, format="parquet").to_table().to_pylist()

    assert sorted(read("generations"), key=_generation) == generations
    assert sorted(read("rebalances"), key=_case) == sorted(solved, key=_case)
    [error] = read("errors")
    assert (error["partition"], error["offset"]) == (9, 7)
    assert counts["records"] == len(records) + 2
    documents = [json.loads(line) for line in (out / GROUPS).read_text().splitlines()]
    assert [document["id"] for document in documents] == sorted(ASSIGNORS)
    totals = group_histories(out)
    for name in ASSIGNORS:
        own = [row for row in solved if row["group"] == name]
        known = [row for row in own if row["unnecessary_moves"] is not None]
        assert totals[name].rebalances == len(own)
        assert totals[name].moves == sum(row["movement_greedy"] for row in known)
        assert totals[name].unnecessary_moves == sum(row["unnecessary_moves"] for row in known)


def test_a_history_without_members_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    commits = [row for row in _records() if int.from_bytes(row["key"][:2], "big") < 2]
    counts = _write(spark, commits, tmp_path / "home", tasks=1)
    out = tmp_path / "home" / "out"
    assert (counts["rebalances"], (out / GROUPS).read_text()) == (0, "")
    assert any(path.stat().st_size == 0 for path in out.rglob("part-*"))
    assert group_histories(out) == {}


def _generation(row: dict) -> tuple:
    return row["group"], row["incarnation"], row["number"]


def _case(row: dict) -> str:
    return row["case"]
