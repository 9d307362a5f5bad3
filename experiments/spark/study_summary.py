"""Aggregate the cases of a study into summary tables of counts, on Spark.

`kassay report` computes all figures and statistics from these tables. study_summary.sql has the
query of each table.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.spark.jobs import Row, map_rows, queries_of, run_concurrently
from kassay.experiments.spark.output_files import PARQUET_OPTIONS
from kassay.experiments.study import tables
from kassay.experiments.study.cases import IMPORTED
from kassay.experiments.study.families.all_families import FAMILIES

_CONCURRENT_TABLES = 2  # Spark plans and compiles a query on one core
_QUERIES = queries_of("study_summary.sql")
_DIGESTS = pa.schema([("family", pa.string()), ("sha256", pa.string())])
_CONSTANTS = {
    "named": tables.NAMED_FAMILY,
    "imported": IMPORTED,
    "hindsight": tables.HINDSIGHT,
    "candidates": tables.WORST_CANDIDATES,
}
_LISTS = {"finite": [name for name, family in FAMILIES.items() if family.is_finite]}


def query(
    name: str, *, keys: str = "", compared: Sequence[str] = (), **frames: DataFrame
) -> DataFrame:
    """Run a query on frames. ``keys`` are further columns of its groups."""
    spark = next(iter(frames.values())).sparkSession
    text = _QUERIES[name].replace("$keys", keys)
    lists: dict[str, Any] = {**_LISTS, "compared": list(compared)}
    used = {key: F.lit(value) for key, value in lists.items() if f":{key}" in text}
    return spark.sql(text, used, **_CONSTANTS, **frames)


def write_summary(cases: DataFrame, uri: str, *, chosen: Sequence[str] = ()) -> dict[str, int]:
    """Write the summary tables of a study. Return the number of rows per study table.

    ``chosen`` are the assignors that are compared in pairs, if the user selected them.
    """
    scoped = query("scoped", cases=cases)
    rows = query("rows", scoped=scoped)
    outcomes = _written(query("outcomes", rows=rows), f"{uri}/outcomes").toPandas()
    compared = tables.compared_assignors(outcomes["assignor"], chosen)
    rebalances = query("rebalances", cases=cases)
    sums = partial(query, "rebalance_sums", rebalances=rebalances)
    frames = {
        "pairs": query("pairs", scoped=scoped, compared=compared),
        "worst": query("worst", drawn=query("drawn", rows=rows), compared=compared),
        "fronts": query("fronts", cases=cases),
        "measures": query("measures", cases=cases),
        "run_times": query("run_times", cases=cases),
        "trajectories": sums(keys="seed, start_members"),
        "events": sums(keys="event, period"),
    }
    writes = [partial(_written, frame, f"{uri}/{name}") for name, frame in frames.items()]
    run_concurrently(cases.sparkSession, writes, _CONCURRENT_TABLES)
    counts = query("families", cases=cases).join(_family_digests(cases), "family")
    families = _written(counts, f"{uri}/families")
    totals = (F.expr(f"coalesce(sum({name}), 0) AS {name}") for name in tables.TABLES)
    [found] = families.agg(*totals).collect()
    return found.asDict()


def _written(table: DataFrame, uri: str) -> DataFrame:
    table.coalesce(1).write.options(**PARQUET_OPTIONS).parquet(uri)
    return table.sparkSession.read.parquet(uri)


def _family_digests(cases: DataFrame) -> DataFrame:
    """Return the SHA-256 of the sorted digests of the cases of each family.

    Spark sorts the digests of the cases, so that no process has all digests of a family in memory.
    """
    family = F.col("groups.family").alias("family")
    digests = cases.select(family, _case_digest().alias("digest")).repartition("family")
    return map_rows(digests.sortWithinPartitions("family", "digest"), _digest, _DIGESTS)


def _digest(rows: Iterator[Row]) -> Iterator[Row]:
    for family, own in groupby(rows, key=itemgetter("family")):
        yield {"family": family, "sha256": tables.sha256_of_lines(row["digest"] for row in own)}


def _case_digest() -> Column:
    """Return the column with the SHA-256 of the sorted result rows of each case."""

    def text(row: str, names: Sequence[str]) -> str:
        values = (f"coalesce(cast({row}.{name} AS string), '')" for name in names)
        return f"concat_ws('\\t', {', '.join(values)})"

    rows = ", ".join(
        f"transform(filter(coalesce({table}, array()), "
        f"row -> row.assignor <> '{tables.HINDSIGHT}'), row -> {text('row', names)})"
        for table, names in tables.RESULT_FIELDS.items()
    )
    lines = f"{text('groups', tables.GROUP_FIELDS)}, array_sort(concat({rows}))"
    return F.expr(f"sha2(concat_ws('\\n', {lines}), 256)")
