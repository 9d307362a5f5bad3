"""Aggregate pairs of assignors on the same cases of a study, on Spark."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.reference.model.metrics import MEASURES

_SOLVED = "c -> c.proven AND c.ending = 'ok'"
_KEYS = ("family", "scope")
_SIDES = ("one", "two")


def solved_pairs(cases: DataFrame) -> DataFrame:
    """Return one row per case and pair of assignors that both have a result.

    ``cases`` has the scope of each group in the column ``scope``.
    """
    gaps = ", ".join(f"c.{name}_gap" for name in MEASURES)
    solved = cases.select(
        F.col("groups.family").alias("family"),
        "scope",
        F.col("groups.owned").alias("owned"),
        F.expr(f"""transform(filter(comparisons, {_SOLVED}), c -> struct(
            c.assignor, coalesce(c.least_imbalance, false) AS least, c.unnecessary_moves AS moves,
            {gaps}
        ))""").alias("rows"),
    )
    first = solved.select("*", F.explode("rows").alias("one"))
    return first.select(*_KEYS, "owned", "one", F.explode("rows").alias("two"))


def pair_counts(pairs: DataFrame, compared: Sequence[str]) -> DataFrame:
    """Count the cases for each pair of compared assignors, by both assignors' results."""
    order = F.array(*map(F.lit, compared)).cast("array<string>")
    one, two = (F.array_position(order, F.col(f"{name}.assignor")) for name in ("one", "two"))
    columns = {
        "before": "one.assignor",
        "after": "two.assignor",
        "least_before": "one.least",
        "least_after": "two.least",
        "difference": "if(owned > 0, two.moves - one.moves, null)",
    }
    ordered = pairs.where((one > 0) & (one < two))
    return ordered.groupBy(
        *_KEYS, *(F.expr(formula).alias(name) for name, formula in columns.items())
    ).agg(F.count("*").alias("groups"))


def gap_sums(pairs: DataFrame) -> DataFrame:
    """Sum the heuristic gaps of each pair of assignors, over groups where all gaps are known."""
    known = " AND ".join(f"{one}.{name}_gap IS NOT NULL" for name in MEASURES for one in _SIDES)
    sums = (
        F.sum(f"{one}.{name}_gap").alias(f"{one}_{name}") for name in MEASURES for one in _SIDES
    )
    return (
        pairs.where(f"one.assignor < two.assignor AND {known}")
        .groupBy(*_KEYS, F.col("one.assignor").alias("one"), F.col("two.assignor").alias("two"))
        .agg(F.count("*").alias("groups"), *sums)
    )
