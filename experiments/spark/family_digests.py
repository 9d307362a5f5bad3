"""Compute the digest of each family's results, on Spark."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.spark.arrow_map import Row, map_rows
from kassay.experiments.study.case_digests import (
    COMPARISON_FIELDS,
    FRONT_FIELDS,
    GROUP_FIELDS,
    REBALANCE_FIELDS,
    sha256_of_lines,
)

_DIGESTS = pa.schema([("family", pa.string()), ("sha256", pa.string())])


def family_digests(cases: DataFrame) -> DataFrame:
    """Return the `family_digest` of each family in the column ``sha256``.

    Spark sorts the digests of the cases, so that no process has all digests of a family in memory.
    """
    family = F.col("groups.family").alias("family")
    digests = cases.select(family, _case_digest().alias("digest")).repartition("family")
    return map_rows(digests.sortWithinPartitions("family", "digest"), _digest, _DIGESTS)


def _digest(rows: Iterator[Row]) -> Iterator[Row]:
    for family, own in groupby(rows, key=itemgetter("family")):
        yield {"family": family, "sha256": sha256_of_lines(row["digest"] for row in own)}


def _case_digest() -> Column:
    """Return the column with the `case_digest` of each case."""

    def text(row: str, names: Sequence[str]) -> str:
        values = (f"coalesce(cast({row}.{name} AS string), '')" for name in names)
        return f"concat_ws('\\t', {', '.join(values)})"

    rows = ", ".join(
        f"transform(coalesce({table}, array()), row -> {text('row', names)})"
        for table, names in (
            ("comparisons", COMPARISON_FIELDS),
            ("rebalances", REBALANCE_FIELDS),
            ("front_distances", FRONT_FIELDS),
        )
    )
    lines = f"{text('groups', GROUP_FIELDS)}, array_sort(concat({rows}))"
    return F.expr(f"sha2(concat_ws('\\n', {lines}), 256)")
